package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/state"
)

var lookups = Options{Tools: []string{"lookup"}, PerThread: 2}

func lookup() holdfast.Tool {
	return holdfast.NewTool("lookup", "Looks a word up.", func(context.Context, struct{}) (string, error) {
		return "found", nil
	})
}

// once is a model that looks up one word for each message.
func once(runs int) *agenttest.Model {
	m := agenttest.Say()
	for range runs {
		m.Add(agenttest.Call("lookup", `{}`), agenttest.Text("done"))
	}
	return m
}

func TestTheQuotaSurvivesRestarts(t *testing.T) {
	h := agenttest.New(t, agenttest.Config{
		Model:      once(4),
		Tools:      []holdfast.Tool{lookup()},
		Middleware: []holdfast.Middleware{Quota(lookups)},
	})
	for run := range 3 {
		r := h.Run("look it up")
		if want := run < 2; r.Outcome != agenttest.Success || len(r.Started) == 1 != want {
			t.Errorf("run %d: %s %s, started %v", run, r.Outcome, r.Message, r.Started)
		}
		h.Restart(Quota(lookups)) // of the old one, only its state is left
	}
	if got := agenttest.State(h, spentKey); got.ByTool["lookup"] != 2 {
		t.Errorf("the thread has spent %v", got)
	}
	if n := h.Notices(); len(n) != 1 || n[0].Name != "example.quota_used_up" {
		t.Errorf("notices: %s", n)
	}
	h.Thread("another")
	if r := h.Run("look it up"); len(r.Started) != 1 {
		t.Errorf("another thread has a quota of its own; started %v", r.Started)
	}
}

// TestParallelCallsShareTheQuota: a single answer cannot use more than is left.
func TestParallelCallsShareTheQuota(t *testing.T) {
	three := agenttest.Call("lookup", `{}`).And("lookup", `{}`).And("lookup", `{}`)
	h := agenttest.New(t, agenttest.Config{
		Model:      agenttest.Say(three, agenttest.Text("done")),
		Tools:      []holdfast.Tool{lookup()},
		Middleware: []holdfast.Middleware{Quota(lookups)},
	})
	r := h.Run("look three up")
	if got := r.Results(); len(r.Started) != 2 || !strings.Contains(got["call_3"], "quota of 2 calls of lookup") {
		t.Errorf("started %v, results %v", r.Started, got)
	}
}

// TestACrashDoesNotCountTwice: the process dies after the tool has run, before the count
// is stored.
func TestACrashDoesNotCountTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *agenttest.Harness
		died := false
		dying := holdfast.Middleware{
			Name: "test.dying",
			AfterIteration: func(context.Context, *holdfast.Iteration, *holdfast.IterationResult) {
				if !died {
					died = true
					h.Crash()
				}
			},
		}
		h = agenttest.New(t, agenttest.Config{
			Model:      once(1),
			Tools:      []holdfast.Tool{lookup()},
			Middleware: []holdfast.Middleware{Quota(lookups), dying},
		})
		if r := h.Run("look it up"); r.Outcome != agenttest.Cut || len(r.Started) != 1 {
			t.Fatalf("%s, started %v", r.Outcome, r.Started)
		}
		h.Restart(Quota(lookups))
		if r := h.Resume(); r.Outcome != agenttest.Success || len(r.Started) != 0 {
			t.Errorf("%s, started %v", r.Outcome, r.Started)
		}
		if got := agenttest.State(h, spentKey); got.ByTool["lookup"] != 1 {
			t.Errorf("the thread has spent %v, want 1", got)
		}
	})
}

// oldQuota is the previous deployment, with version 1 of the state.
func oldQuota() holdfast.Middleware {
	old := state.Register(state.Spec[spentV1]{Name: "example.quota"})
	return holdfast.Middleware{
		Name:   "example.quota",
		States: []holdfast.State{old},
		BeforeIteration: func(ctx context.Context, _ *holdfast.Iteration) error {
			_, err := old.Update(ctx, func(s spentV1) spentV1 { return spentV1{Lookups: s.Lookups + 1} })
			return err
		},
	}
}

func TestTheStateOfVersion1IsMigrated(t *testing.T) {
	h := agenttest.New(t, agenttest.Config{
		Model: agenttest.Say(agenttest.Call("lookup", `{}`), agenttest.Text("done"),
			agenttest.Call("lookup", `{}`), agenttest.Text("done")),
		Tools:      []holdfast.Tool{lookup()},
		Middleware: []holdfast.Middleware{oldQuota()},
	})
	h.Run("look it up") // two iterations, which the old quota counts
	h.Restart(Quota(lookups))
	if got := agenttest.State(h, spentKey); got.ByTool["lookup"] != 2 {
		t.Errorf("migrated: %v", got)
	}
	if r := h.Run("and again"); len(r.Started) != 0 || r.Notices()[0].Name != "holdfast.schema_changed" {
		t.Errorf("what was spent before no longer counts: started %v, notices %s", r.Started, r.Notices())
	}
}

func TestOneHookAlone(t *testing.T) {
	ctx, run := agenttest.Context(t, agenttest.WithState(spentKey, Spent{ByTool: map[string]int{"lookup": 2}}))
	b := holdfast.NewBatch(&holdfast.Iteration{}, []holdfast.ToolCall{{Name: "lookup"}, {Name: "other"}})
	if err := Quota(lookups).Batch(ctx, b); err != nil {
		t.Fatal(err)
	}
	first, _ := b.Decided(0)
	second, _ := b.Decided(1)
	if first == nil || !first.NotRun || second != nil || len(run.Notices()) != 1 {
		t.Errorf("decided %+v and %+v, notices %s", first, second, run.Notices())
	}
}

// TestOnThePage is the code that docs/extending.md shows.
func TestOnThePage(t *testing.T) {
	lookup, options := lookup(), lookups
	h := agenttest.New(t, agenttest.Config{
		Model:      agenttest.Say(agenttest.Call("lookup", `{}`), agenttest.Text("done")), // one turn after another
		Tools:      []holdfast.Tool{lookup},
		Middleware: []holdfast.Middleware{Quota(options)},
	})
	r := h.Run("look it up")              // r.Outcome, r.Messages, r.Questions, r.Events, r.Started (calls that ran)
	h.Restart(Quota(options))             // the process dies, and the next one has only the store
	spent := agenttest.State(h, spentKey) // as the newest checkpoint holds it
	if len(r.Started) != 1 || spent.ByTool["lookup"] != 1 {
		t.Errorf("started %v, spent %v", r.Started, spent)
	}
}

func TestOptions(t *testing.T) {
	for raw, want := range map[string]string{
		`{"tools":["lookup"],"perThread":2}`: "",
		`{"tools":["lookup"]}`:               "",
		`{}`:                                 "name the tools that cost something",
		`{"tools":["a"],"perThread":-1}`:     "perThread is -1",
		`{"tool":"a"}`:                       `unknown field "tool"`,
	} {
		_, err := Kind().New(json.RawMessage(raw))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

// TestTheProgram: what main runs, on the demo model, with and without a file.
func TestTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agents.yaml")
	text := "agents:\n  - name: demo\n    model: demo\n    tools: [lookup]\n    middleware:\n      - example.quota: " +
		"{tools: [lookup], perThread: 2}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", file} {
		loaded, err := load(name)
		if err != nil {
			t.Fatal(err)
		}
		defer loaded.Close()
		h := agenttest.New(t, agenttest.Config{Agent: loaded.Agents[0]})
		for range 3 {
			h.Run("lookup fence")
		}
		if n := h.Notices(); len(n) != 1 || n[0].Name != "example.quota_used_up" {
			t.Errorf("file %q: notices %s", name, n)
		}
	}
}
