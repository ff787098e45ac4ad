package middleware

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/canonical"
	"github.com/holdfast-agents/holdfast/middleware/internal/glob"
)

// ToolPermissionOptions are the options of [ToolPermission].
type ToolPermissionOptions struct {
	// Rules are looked at in their order: the first that matches a call decides.
	Rules []PermissionRule `json:"rules,omitempty"`
	// Default decides about a call that no rule matches; default ask.
	Default Permission `json:"default,omitempty"`
	// Now is the clock; default time.Now.
	Now func() time.Time `json:"-"`
}

// PermissionRule says what becomes of some calls.
type PermissionRule struct {
	// Tool is the name of the tool; "*" in it stands for any characters.
	Tool string `json:"tool"`
	// Args are conditions that must all hold, by the path of the argument: "amount",
	// "to.country", "items.0.sku". An argument that is not there matches nothing.
	Args map[string]Condition `json:"args,omitempty"`
	// Then is allow, ask or deny.
	Then Permission `json:"then"`
	// Reason is told to the model when a call is denied, and to the person who is
	// asked.
	Reason string `json:"reason,omitempty"`
	// Remember is what a person may choose among, for an answer that also holds for
	// later calls; default run and thread, an empty list is nothing.
	Remember []PermissionScope `json:"remember,omitempty"`
	// Exact: a remembered answer holds only for calls with the same arguments.
	Exact bool `json:"exact,omitempty"`
}

// Permission is what is decided about a call.
type Permission string

// The decisions.
const (
	PermissionAllow Permission = "allow"
	PermissionAsk   Permission = "ask"
	PermissionDeny  Permission = "deny"
)

// PermissionScope is how long, and where, an answer is remembered.
type PermissionScope string

// The scopes: until the next message of the person, in the thread, or in all
// threads of the user.
const (
	PermissionRun    PermissionScope = "run"
	PermissionThread PermissionScope = "thread"
	PermissionUser   PermissionScope = "user"
)

// ToolPermission decides which tool calls are run: it allows, denies, or asks a
// person, by rules about the tool and its arguments. Calls that run in parallel are
// decided one by one: those that are allowed run at once, the others wait for their
// answers. A person may have an answer remembered for later calls of the same tool
// that the same rule asks about. One per agent is enough; more of them share what
// is remembered, and ask once for a call.
func ToolPermission(o ToolPermissionOptions) holdfast.Middleware {
	mustBeValid("ToolPermission", o)
	p, _ := o.compile()
	return holdfast.Middleware{
		Name:           "holdfast.tool_permission",
		States:         []holdfast.AnyState{permissionState, permissionRunState},
		Batch:          p.batch,
		Tool:           p.tool,
		AfterIteration: forgetApproved,
	}
}

// Validate says what is wrong with the options, and what to write instead.
func (o ToolPermissionOptions) Validate() error {
	_, err := o.compile()
	return err
}

// permissions is a ToolPermission.
type permissions struct {
	rules    []permissionRule
	fallback permissionRule
	now      func() time.Time
}

// permissionRule is a rule that can be used.
type permissionRule struct {
	PermissionRule
	// name tells the rule from others, in what is remembered too. A rule that asks
	// about something else has another name: what was answered does not count for it.
	name string
	args []argCondition
}

type argCondition struct {
	path  []string
	holds argCheck
}

func (o ToolPermissionOptions) compile() (*permissions, error) {
	p := &permissions{now: o.Now}
	if p.now == nil {
		p.now = time.Now
	}
	for i, r := range o.Rules {
		rule, err := r.compile()
		if err != nil {
			return nil, fmt.Errorf("rule %d (tool %q): %w", i+1, r.Tool, err)
		}
		p.rules = append(p.rules, *rule)
	}
	fallback := PermissionRule{Tool: "*", Then: cmp.Or(o.Default, PermissionAsk)}
	rule, err := fallback.compile()
	if err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	p.fallback = *rule
	p.fallback.name = "default"
	return p, nil
}

func (r PermissionRule) compile() (*permissionRule, error) {
	rule := &permissionRule{PermissionRule: r, name: r.Tool}
	if r.Tool == "" {
		return nil, errors.New(`it says no tool: write its name, or "*" for all`)
	}
	switch {
	case !slices.Contains([]Permission{PermissionAllow, PermissionAsk, PermissionDeny}, r.Then):
		return nil, fmt.Errorf("%q is no decision: write allow, ask or deny", r.Then)
	case r.Then != PermissionAsk && (r.Remember != nil || r.Exact):
		return nil, errors.New("remember and exact are for rules that ask: leave them out, or write ask")
	}
	if r.Remember == nil {
		rule.Remember = []PermissionScope{PermissionRun, PermissionThread}
	}
	for i, s := range rule.Remember {
		if !slices.Contains([]PermissionScope{PermissionRun, PermissionThread, PermissionUser}, s) || slices.Contains(rule.Remember[:i], s) {
			return nil, fmt.Errorf("%q cannot be remembered, or is there twice: list run, thread or user", s)
		}
	}
	return rule, rule.addArgs()
}

// addArgs compiles the conditions, and completes the name with them.
func (r *permissionRule) addArgs() error {
	for path, c := range r.Args {
		steps := strings.Split(path, ".")
		if slices.Contains(steps, "") {
			return fmt.Errorf(`the argument %q is no path: write amount, to.country or items.0.sku`, path)
		}
		holds, err := c.compile()
		if err != nil {
			return fmt.Errorf("the argument %q: %w", path, err)
		}
		r.args = append(r.args, argCondition{steps, holds})
	}
	if len(r.Args) > 0 {
		r.name += " " + string(canonical.JSON(r.Args))
	}
	if r.Exact {
		r.name += " exact"
	}
	return nil
}

// verdict is what is decided about a call.
type verdict struct {
	then Permission
	rule *permissionRule
	// args names the arguments, where the rule wants them to be the same.
	args string
	// text is for the model, by is who decided: for a call that is denied.
	text, by string
}

// Who has denied a call, as the notice says.
const (
	byRule       = "rule"
	byPerson     = "person"
	byRemembered = "remembered"
)

// byRules decides as the rules say, without what people have answered.
func (p *permissions) byRules(call *holdfast.ToolCall) verdict {
	raw := call.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	args, unclear := readJSON(raw)
	for i := range p.rules {
		r := &p.rules[i]
		if !glob.Match(r.Tool, call.Name) {
			continue
		}
		matches, err := r.matches(args, unclear)
		if err != nil {
			return verdict{then: PermissionDeny, rule: r, by: byRule, text: "Not allowed: " + err.Error() + "."}
		}
		if matches {
			return r.verdict(args)
		}
	}
	return p.fallback.verdict(args)
}

// matches reports whether the conditions hold. Arguments that cannot be told for
// certain are an error, but only for a rule that looks at them.
func (r *permissionRule) matches(args any, unclear error) (bool, error) {
	if unclear != nil && (len(r.args) > 0 || r.Exact) {
		return false, unclear
	}
	for _, a := range r.args {
		v, ok, err := lookUp(args, a.path)
		if err != nil || !ok || !a.holds(v) {
			return false, err
		}
	}
	return true, nil
}

func (r *permissionRule) verdict(args any) verdict {
	v := verdict{then: r.Then, rule: r}
	switch {
	case r.Then == PermissionDeny:
		v.by, v.text = byRule, "Not allowed: "+cmp.Or(r.Reason, "this agent may not make this call.")
	case r.Exact:
		v.args = permissionHash(canonical.JSON(args))
	}
	return v
}

// batch decides about the calls of an iteration before any of them starts.
func (p *permissions) batch(ctx context.Context, b *holdfast.Batch) error {
	for i := range b.Calls {
		if result, _ := b.Decided(i); result != nil {
			continue
		}
		call := &b.Calls[i]
		v := p.byRules(call)
		if err := p.recall(ctx, call, &v); err != nil {
			return err
		}
		switch v.then {
		case PermissionDeny:
			v.tell(ctx, call)
			b.Deny(i, v.text)
		case PermissionAsk:
			b.Ask(i, v.question(call))
		}
	}
	return nil
}

// tool lets nothing through that was not decided about, here or in the batch: a
// call may also come here after a crash, or with an answer that is its tool's.
func (p *permissions) tool(next holdfast.ToolHandler) holdfast.ToolHandler {
	return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		answered := call.Answer != nil && call.Answer.Reason == permissionReason
		v := p.byRules(&call)
		var err error
		if answered {
			err = p.take(ctx, &call, &v)
		} else {
			err = p.recall(ctx, &call, &v)
		}
		switch {
		case err != nil:
			return holdfast.ToolResult{}, &holdfast.EndRun{Err: holdfast.AsError(err)}
		case v.then == PermissionDeny:
			v.tell(ctx, &call)
			return holdfast.ToolResult{Text: v.text, Failed: true, NotRun: true}, nil
		case v.then == PermissionAsk:
			return holdfast.ToolResult{}, v.question(&call)
		}
		if answered {
			ctx, call = withoutAnswer(ctx, call)
		}
		return next(ctx, tool, call)
	}
}

// withoutAnswer hides our answer from the tool, which would take it for its own.
func withoutAnswer(ctx context.Context, call holdfast.ToolCall) (context.Context, holdfast.ToolCall) {
	call.Answer = nil
	return holdfast.ContextWithCall(ctx, call, func(u holdfast.StateUpdate) {
		_ = holdfast.UpdateState(ctx, u) // it fails only where there is no call
	}), call
}

// tell says that a call was denied.
func (v *verdict) tell(ctx context.Context, call *holdfast.ToolCall) {
	permissionNotice(ctx, "holdfast.permission_denied", map[string]any{"tool": call.Name, "rule": v.rule.name, "by": v.by})
}

// permissionNotice says something in the stream. Where nobody can be told any more,
// the run is over, and the decision stands all the same.
func permissionNotice(ctx context.Context, name string, value any) {
	_ = holdfast.Notify(ctx, name, value)
}
