package loop_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// patching is a thread whose run waits in a tool until it is let go, and then adds to a list.
type patching struct {
	t          *testing.T
	e          *looptest.Engine
	waits, go_ chan struct{}
}

func newPatching(t *testing.T, s store.Store) *patching {
	p := &patching{t: t, waits: make(chan struct{}, 8), go_: make(chan struct{})}
	p.e = p.start(s)
	return p
}

// start starts an engine with the agent.
func (p *patching) start(s store.Store) *looptest.Engine {
	return looptest.Start(p.t, s, nil, holdfast.Agent{
		Name:  "a",
		State: &sharedstate.Options{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
		Model: looptest.Say(looptest.Calls("add", `{}`), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{looptest.Tool("add", holdfast.EffectIdempotent,
			func(ctx context.Context) (string, error) {
				p.waits <- struct{}{}
				select {
				case <-p.go_:
				case <-ctx.Done():
					return "", ctx.Err()
				}
				return "added", holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
					return json.RawMessage(strings.Replace(string(state), `]`, `,"tool"]`, 1)), nil
				})
			})},
	})
}

// begin begins the run and returns its stream.
func (p *patching) begin() (events chan []agui.Event) {
	p.t.Helper()
	in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
	in.State = json.RawMessage(`{"list":["page"]}`)
	reply, err := p.e.Owner.Post(p.t.Context(), looptest.Alice, "", in)
	if err != nil {
		p.t.Fatal(err)
	}
	events = make(chan []agui.Event, 1)
	go func() { events <- looptest.Collect(p.t, reply, nil) }()
	<-p.waits
	return events
}

func patch(t *testing.T, e *looptest.Engine, patch, etag string) (*threads.PatchedState, error) {
	return upkeep.States{Keeper: e.Keeper}.Patch(t.Context(), looptest.Alice, "t",
		threads.StatePatch{Patch: json.RawMessage(patch), ETag: etag, Merge: patch[0] == '{'})
}

// TestPatchWhileItRuns: the owner of a run changes the state between the changes of its tools. Watchers see it,
// the answer names the version, and what is wrong is refused without a trace.
func TestPatchWhileItRuns(t *testing.T) {
	p := newPatching(t, memstore.New())
	events := p.begin()
	first := looptest.Must(patch(t, p.e, `[{"op":"add","path":"/list/-","value":"one"}]`, ""))(t)
	second := looptest.Must(patch(t, p.e, `{"n":1}`, first.Version))(t)
	if second.Version == first.Version || second.Version == "" || second.Status != threads.StatusRunning {
		t.Errorf("the versions are %q and %q", first.Version, second.Version)
	}
	for name, c := range map[string]struct{ patch, etag, code string }{
		"another version":   {`{"n":2}`, first.Version, codes.CheckpointConflict},
		"no such place":     {`[{"op":"remove","path":"/none"}]`, "", codes.StateConflict},
		"against the form":  {`{"n":"x"}`, "", codes.StateInvalid},
		"nothing to change": {`{"n":1}`, "", ""},
	} {
		if _, err := patch(t, p.e, c.patch, c.etag); looptest.Code(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(p.go_)
	shown := <-events
	looptest.Succeeded(t, shown)
	state := looptest.Must(p.e.Keeper.State(t.Context(), looptest.Alice, "t"))(t)
	want := `{"list":["page","one","tool"],"n":1}`
	if got, _ := reduceState(t, shown); got != want || string(state.State) != want {
		t.Errorf("watchers end with %s, the thread with %s, want %s", got, state.State, want)
	}
	told := 0
	for _, ev := range shown {
		if c, is := ev.(agui.Custom); is && c.Name == "holdfast.state_patched" {
			told++
		}
	}
	if told != 3 {
		t.Errorf("the stream tells of %d patches, want 3", told)
	}
}

// TestPatchReachesTheOwner: another server leaves a patch for the one that runs the thread.
func TestPatchReachesTheOwner(t *testing.T) {
	shared := memstore.New()
	p := newPatching(t, shared)
	events := p.begin()
	other := p.start(shared)
	const add = `[{"op":"add","path":"/list/-","value":"one"}]`
	if _, err := patch(t, other, add, ""); err != nil {
		t.Fatal(err)
	}
	close(p.go_)
	if got, _ := reduceState(t, <-events); got != `{"list":["page","one","tool"]}` {
		t.Errorf("watchers end with %s", got)
	}
}
