package permission

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
)

// Rules are compiled once. The first one that matches a call decides about it; the
// answers of people come later, and only where a rule asks.

// permissions are options that have been compiled.
type permissions struct {
	rules    []compiledRule
	fallback compiledRule
	now      func() time.Time
}

// compiledRule is a rule that has been checked and completed.
type compiledRule struct {
	Rule
	// name identifies the rule, also in what is remembered. It contains everything that
	// the rule asks about, so an answer to one rule does not apply to a different one.
	name string
	args []argCondition
}

type argCondition struct {
	path  []string
	holds argCheck
}

// Validate says what is wrong with the options, and what to write instead.
func (o Options) Validate() error {
	_, err := o.compile()
	return err
}

func (o Options) compile() (*permissions, error) {
	o = o.withDefaults()
	p := &permissions{now: o.Now}
	for i, r := range o.Rules {
		rule, err := r.compile()
		if err != nil {
			return nil, fmt.Errorf("rule %d (tool %q): %w", i+1, r.Tool, err)
		}
		p.rules = append(p.rules, *rule)
	}
	fallback := Rule{Tool: "*", Then: o.Default}
	rule, err := fallback.compile()
	if err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	p.fallback = *rule
	p.fallback.name = "default"
	return p, nil
}

func (r Rule) compile() (*compiledRule, error) {
	rule := &compiledRule{Rule: r, name: r.Tool}
	if r.Tool == "" {
		return nil, errors.New(`it names no tool: write its name, or "*" for all`)
	}
	switch {
	case !slices.Contains([]Decision{Allow, Ask, Deny}, r.Then):
		return nil, fmt.Errorf("%q is not a decision: write allow, ask or deny", r.Then)
	case r.Then != Ask && (r.Remember != nil || r.Exact):
		return nil, errors.New("remember and exact are for rules that ask: leave them out, or write ask")
	}
	if r.Remember == nil {
		rule.Remember = []Scope{ScopeRun, ScopeThread}
	}
	for i, s := range rule.Remember {
		if !slices.Contains([]Scope{ScopeRun, ScopeThread, ScopeUser}, s) || slices.Contains(rule.Remember[:i], s) {
			return nil, fmt.Errorf("%q is not a scope, or is listed twice: list run, thread or user", s)
		}
	}
	return rule, rule.addArgs()
}

// addArgs compiles the conditions and appends them to the name.
func (r *compiledRule) addArgs() error {
	for path, c := range r.Args {
		steps := strings.Split(path, ".")
		if slices.Contains(steps, "") {
			return fmt.Errorf(`the argument %q is not a path: write amount, to.country or items.0.sku`, path)
		}
		holds, err := c.compile()
		if err != nil {
			return fmt.Errorf("the argument %q: %w", path, err)
		}
		r.args = append(r.args, argCondition{steps, holds})
	}
	if len(r.Args) > 0 {
		r.name += " " + string(strictjson.Canonical(r.Args))
	}
	if r.Exact {
		r.name += " exact"
	}
	return nil
}

// verdict is the decision about a call.
type verdict struct {
	then Decision
	rule *compiledRule
	// args is a hash of the arguments if the rule is exact.
	args string
	// text is what the model reads, and by is who decided; both are for denied calls.
	text, by string
}

// The authors of a denial, in the notice.
const (
	byRule       = "rule"
	byPerson     = "person"
	byRemembered = "remembered"
)

// byRules decides by the rules alone, without the answers of people.
func (p *permissions) byRules(call *holdfast.ToolCall) verdict {
	raw := call.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	args, unclear := readJSON(raw)
	for i := range p.rules {
		r := &p.rules[i]
		if !shared.Matches(r.Tool, call.Name) {
			continue
		}
		matches, err := r.matches(args, unclear)
		if err != nil {
			return verdict{then: Deny, rule: r, by: byRule, text: "Not allowed: " + err.Error() + "."}
		}
		if matches {
			return r.verdict(args)
		}
	}
	return p.fallback.verdict(args)
}

// matches reports whether all conditions hold. Arguments that can be read in two ways are
// an error, but only for a rule that looks at them.
func (r *compiledRule) matches(args any, unclear error) (bool, error) {
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

func (r *compiledRule) verdict(args any) verdict {
	v := verdict{then: r.Then, rule: r}
	switch {
	case r.Then == Deny:
		v.by, v.text = byRule, "Not allowed: "+cmp.Or(r.Reason, "this agent may not make this call.")
	case r.Exact:
		v.args = hash(strictjson.Canonical(args))
	}
	return v
}
