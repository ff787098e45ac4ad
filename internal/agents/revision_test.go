package agents_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/state"
)

// named is a model with a key, which it also shows in what tells its circuit apart.
type named struct{ provider, name, key string }

func (n named) Stream(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return nil
}
func (n named) ModelName() (provider, model string) { return n.provider, n.name }
func (n named) CircuitKey() string                  { return n.key }

// described is a tool that is only its description. its code is at another address each time.
type described struct {
	holdfast.ToolSpec
	code *int
}

func (d described) Spec() holdfast.ToolSpec { return d.ToolSpec }
func (d described) Call(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) {
	return holdfast.ToolResult{}, nil
}

// set is a toolset with a name.
type set struct {
	name  string
	tools []holdfast.Tool
}

func (s set) Name() string           { return s.name }
func (s set) Tools() []holdfast.Tool { return s.tools }

var (
	count = state.Register(state.Spec[struct{}]{Name: "revision.count"})
	newer = state.Register(state.Spec[struct{}]{Name: "revision.count", Version: 2})
	other = state.Register(state.Spec[struct{}]{Name: "revision.other"})
)

// whole returns an agent in which everything is set, and the parts of it that tests change.
func whole() (a *holdfast.Agent, l *agents.Limits) {
	look := holdfast.ToolSpec{
		Name:        "look",
		Description: "Looks.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},` +
			`"b":{"type":"number","maximum":1.50}}}`),
	}
	sign := holdfast.ToolSpec{
		Name:    "sign",
		Effect:  holdfast.EffectOnce,
		Outside: &holdfast.Outside{Result: json.RawMessage(`{"type":"string"}`), ExpiresAfter: time.Hour},
	}
	return &holdfast.Agent{
		Name:         "support",
		Description:  "Answers.",
		Instructions: "Be kind.",
		Model:        named{"openai", "one", "key-1"},
		Fallbacks:    []holdfast.Model{named{"gemini", "two", ""}},
		Tools: []holdfast.Tool{
			described{look, new(int)},
			described{sign, new(int)},
		},
		Toolsets: []holdfast.Toolset{set{name: "files"}, set{name: "mail"}},
		Middleware: []holdfast.Middleware{
			{Name: "acme.counts", States: []holdfast.State{count}},
			{Name: "acme.signs", Tools: []holdfast.Tool{described{holdfast.ToolSpec{Name: "own"}, new(int)}}},
		},
		Output:   &holdfast.Output{Name: "reply", Schema: json.RawMessage(`{"type":"object","required":["text"]}`)},
		Client:   holdfast.ClientPolicy{Import: "all"},
		Revision: "7",
	}, &agents.Limits{MaxIterations: 50, ToolTimeout: time.Minute}
}

func specOf(a *holdfast.Agent, i int, change func(*holdfast.ToolSpec)) {
	d := a.Tools[i].(described)
	if d.Outside != nil {
		o := *d.Outside
		d.Outside = &o
	}
	change(&d.ToolSpec)
	a.Tools[i] = d
}

// TestStable: a revision is the same in every process of every build, so it is a constant. If
// this test fails, every pinned run of every user waits in vain after the next update.
func TestStable(t *testing.T) {
	a, l := whole()
	if got, want := agents.Revision(a, *l), "9efabe5a6c5c"; got != want {
		t.Errorf("the revision is %s, want %s", got, want)
	}
	if got, want := agents.Revision(&holdfast.Agent{}, agents.Limits{}), "5e2ca966cd55"; got != want {
		t.Errorf("the revision of nothing is %s, want %s", got, want)
	}
}

// TestSame: what does not shape a run does not change the revision: in which order something
// was put together and written, where it is in memory, secrets, and what is for people or
// between runs.
func TestSame(t *testing.T) {
	a, l := whole()
	want := agents.Revision(a, *l)
	for name, change := range map[string]func(*holdfast.Agent){
		"nothing":               func(*holdfast.Agent) {},
		"the order of tools":    func(a *holdfast.Agent) { slices.Reverse(a.Tools) },
		"the order of toolsets": func(a *holdfast.Agent) { slices.Reverse(a.Toolsets) },
		"a schema's writing": func(a *holdfast.Agent) {
			specOf(a, 0, func(s *holdfast.ToolSpec) {
				s.Parameters = json.RawMessage(`{ "properties": {"b": {"maximum": 1.50, "type": "number"}, "a": ` +
					`{"type":"string"}}, "type":"object" }`)
			})
		},
		"an effect's default": func(a *holdfast.Agent) {
			specOf(a, 0, func(s *holdfast.ToolSpec) { s.Effect = holdfast.EffectIdempotent })
		},
		"the model's key":       func(a *holdfast.Agent) { a.Model = named{"openai", "one", "key-2"} },
		"what a toolset lists":  func(a *holdfast.Agent) { a.Toolsets[0] = set{"files", []holdfast.Tool{described{}}} },
		"the description":       func(a *holdfast.Agent) { a.Description = "Helps." },
		"the policy":            func(a *holdfast.Agent) { a.Policy.Chat = true },
		"who answers questions": func(a *holdfast.Agent) { a.Approvals = access.RoleApprover },
		"what follows from it":  func(a *holdfast.Agent) { a.OnRevision = "pin" },
	} {
		t.Run(name, func(t *testing.T) {
			a, l := whole()
			change(a)
			if got := agents.Revision(a, *l); got != want {
				t.Errorf("the revision is %s, want %s", got, want)
			}
		})
	}
}

// TestDifferent: whatever shapes a run changes the revision, each in its own way.
func TestDifferent(t *testing.T) {
	a, l := whole()
	seen := map[string]string{agents.Revision(a, *l): "the agent"}
	tool := func(change func(*holdfast.ToolSpec)) func(*holdfast.Agent, *agents.Limits) {
		return func(a *holdfast.Agent, _ *agents.Limits) { specOf(a, 1, change) }
	}
	for name, change := range map[string]func(*holdfast.Agent, *agents.Limits){
		"instructions": func(a *holdfast.Agent, _ *agents.Limits) { a.Instructions += " And brief." },
		"a provider": func(a *holdfast.Agent, _ *agents.Limits) {
			a.Model = named{provider: "azure",
				name: "one"}
		},
		"a model": func(a *holdfast.Agent, _ *agents.Limits) {
			a.Model = named{provider: "openai",
				name: "three"}
		},
		"a model without a name": func(a *holdfast.Agent, _ *agents.Limits) { a.Model = holdfast.ModelFunc(nil) },
		"the order of models": func(a *holdfast.Agent,
			_ *agents.Limits) {
			a.Model, a.Fallbacks[0] = a.Fallbacks[0], a.Model
		},
		"no fallback":          func(a *holdfast.Agent, _ *agents.Limits) { a.Fallbacks = nil },
		"refusals":             func(a *holdfast.Agent, _ *agents.Limits) { a.FallbackRefused = true },
		"a tool's name":        tool(func(s *holdfast.ToolSpec) { s.Name = "seal" }),
		"a tool's description": tool(func(s *holdfast.ToolSpec) { s.Description = "Signs." }),
		"a tool's parameters": tool(func(s *holdfast.ToolSpec) {
			s.Parameters = json.RawMessage(`{"type":"object"}`)
		}),
		"parameters that are broken": tool(func(s *holdfast.ToolSpec) { s.Parameters = json.RawMessage(`{"type"`) }),
		"a tool's effect":            tool(func(s *holdfast.ToolSpec) { s.Effect = holdfast.EffectPure }),
		"a tool's doubt":             tool(func(s *holdfast.ToolSpec) { s.InDoubt = holdfast.DoubtAsk }),
		"a tool's timeout":           tool(func(s *holdfast.ToolSpec) { s.Timeout = time.Second }),
		"a tool's question": tool(func(s *holdfast.ToolSpec) {
			s.Query = func(context.Context, holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
				return holdfast.ToolResult{}, "", nil
			}
		}),
		"a contract":               tool(func(s *holdfast.ToolSpec) { s.Outside = nil }),
		"a contract's result":      tool(func(s *holdfast.ToolSpec) { s.Outside.Result = nil }),
		"a contract's expiry":      tool(func(s *holdfast.ToolSpec) { s.Outside.ExpiresAfter = 0 }),
		"a contract's abandonment": tool(func(s *holdfast.ToolSpec) { s.Outside.Abandonable = true }),
		"a contract's finisher":    tool(func(s *holdfast.ToolSpec) { s.Outside.FinishedBy = access.RoleUser }),
		"no tools":                 func(a *holdfast.Agent, _ *agents.Limits) { a.Tools = nil },
		"a toolset":                func(a *holdfast.Agent, _ *agents.Limits) { a.Toolsets = a.Toolsets[:1] },
		"the order of middleware":  func(a *holdfast.Agent, _ *agents.Limits) { slices.Reverse(a.Middleware) },
		"a middleware's name": func(a *holdfast.Agent,
			_ *agents.Limits) {
			a.Middleware[0].Name = "acme.tallies"
		},
		"a middleware's states":    func(a *holdfast.Agent, _ *agents.Limits) { a.Middleware[0].States[0] = other },
		"a state's version":        func(a *holdfast.Agent, _ *agents.Limits) { a.Middleware[0].States[0] = newer },
		"a middleware's tools":     func(a *holdfast.Agent, _ *agents.Limits) { a.Middleware[1].Tools = nil },
		"the output's name":        func(a *holdfast.Agent, _ *agents.Limits) { a.Output.Name = "answer" },
		"the output's description": func(a *holdfast.Agent, _ *agents.Limits) { a.Output.Description = "A reply." },
		"the output's schema": func(a *holdfast.Agent,
			_ *agents.Limits) {
			a.Output.Schema = json.RawMessage(`{"type":"object"}`)
		},
		"no output":             func(a *holdfast.Agent, _ *agents.Limits) { a.Output = nil },
		"an import":             func(a *holdfast.Agent, _ *agents.Limits) { a.Client.Import = "none" },
		"clients' instructions": func(a *holdfast.Agent, _ *agents.Limits) { a.Client.Instructions = "drop" },
		"clients' context":      func(a *holdfast.Agent, _ *agents.Limits) { a.Client.Context = "drop" },
		"clients' media":        func(a *holdfast.Agent, _ *agents.Limits) { a.Client.MediaURLs = "none" },
		"clients' files":        func(a *holdfast.Agent, _ *agents.Limits) { a.Client.MediaFiles = true },
		"hidden errors":         func(a *holdfast.Agent, _ *agents.Limits) { a.HideToolErrors = true },
		"what is declared":      func(a *holdfast.Agent, _ *agents.Limits) { a.Revision = "8" },
		"iterations":            func(_ *holdfast.Agent, l *agents.Limits) { l.MaxIterations++ },
		"tries":                 func(_ *holdfast.Agent, l *agents.Limits) { l.ModelTries++ },
		"model timeout":         func(_ *holdfast.Agent, l *agents.Limits) { l.ModelTimeout++ },
		"idle timeout":          func(_ *holdfast.Agent, l *agents.Limits) { l.ModelIdleTimeout++ },
		"answers":               func(_ *holdfast.Agent, l *agents.Limits) { l.MaxAnswer++ },
		"calls":                 func(_ *holdfast.Agent, l *agents.Limits) { l.MaxCalls++ },
		"arguments":             func(_ *holdfast.Agent, l *agents.Limits) { l.MaxArguments++ },
		"media":                 func(_ *holdfast.Agent, l *agents.Limits) { l.MaxMedia++ },
		"tool timeout":          func(_ *holdfast.Agent, l *agents.Limits) { l.ToolTimeout++ },
		"results":               func(_ *holdfast.Agent, l *agents.Limits) { l.MaxToolResult++ },
	} {
		a, l := whole()
		change(a, l)
		got := agents.Revision(a, *l)
		if twin, taken := seen[got]; taken {
			t.Errorf("%s and %s have the same revision", name, twin)
		}
		seen[got] = name
	}
}

// TestSum: what cannot be encoded has a sum too.
func TestSum(t *testing.T) {
	if a, b := agents.Hash(map[string]any{"b": 1, "a": json.Number("1.0")}),
		agents.Hash(map[string]any{"a": json.Number("1.0"), "b": 1}); a != b || len(a) != 12 {
		t.Errorf("the sums are %s and %s", a, b)
	}
	if got := agents.Hash(make(chan int)); len(got) != 12 {
		t.Errorf("the sum is %q", got)
	}
}
