package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// blobless is a store whose blobs cannot be read.
type blobless struct{ *memstore.Store }

func (s blobless) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	if kind == store.KindBlob {
		return nil, errors.New("the store is away")
	}
	return s.Store.Value(ctx, key, kind, id)
}

// TestStateComesFromTheFeed: a watcher that is up to date gets the state that a call leaves
// without the store, which may be away by then.
func TestStateComesFromTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := looptest.Tool("count", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			time.Sleep(time.Second) // the clock of the test: until the watcher waits
			return "counted", holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`{"n":1}`), nil
			})
		})
		agent := holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("count", `{}`), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{count},
		}
		e := looptest.Start(t, blobless{memstore.New()}, nil, agent)
		events := looptest.Started(t, e, "t")
		looptest.Succeeded(t, events)
		if !slices.ContainsFunc(events, func(ev agui.Event) bool {
			s, ok := ev.(agui.StateSnapshot)
			return ok && string(s.Snapshot) == `{"n":1}`
		}) {
			t.Errorf("the state is not shown: %v", events)
		}
	})
}

// TestModelSeesWhatToolsStore: each request has the shared state as the calls before it have left it, for
// an agent that asks for it, and for no other.
func TestModelSeesWhatToolsStore(t *testing.T) {
	for name, c := range map[string]struct {
		show *sharedstate.Options
		want []string
	}{
		"all":     {&sharedstate.Options{Show: "all"}, []string{`{"by":"page"}`, `{"by":"tool"}`}},
		"nothing": {nil, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			says := looptest.Say(looptest.Calls("sign", `{}`), holdfast.Delta{Text: "done"})
			agent := holdfast.Agent{
				Name:  "a",
				State: c.show,
				Model: holdfast.ModelFunc(func(ctx context.Context,
					req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					seen = append(seen, string(req.State))
					return says.Stream(ctx, req)
				}),
				Tools: []holdfast.Tool{looptest.Tool("sign", holdfast.EffectPure,
					func(ctx context.Context) (string, error) {
						return "signed", holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
							return json.RawMessage(`{"by":"tool"}`), nil
						})
					})},
			}
			e := looptest.Start(t, memstore.New(), nil, agent)
			in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
			in.State = json.RawMessage(`{"by":"page"}`)
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
			if !slices.Equal(seen, c.want) {
				t.Errorf("the model has seen %q, want %q", seen, c.want)
			}
		})
	}
}

// TestStateFitsItsSchema: a change of the shared state that does not fit the agent's schema changes
// nothing. A request is refused; a tool's result is kept, and says what is wrong.
func TestStateFitsItsSchema(t *testing.T) {
	next := json.RawMessage(`{"n":"x","m":[]}`)
	write := looptest.Tool("write", holdfast.EffectPure, func(ctx context.Context) (string, error) {
		return "written", holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) { return next, nil })
	})
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name: "a",
		State: &sharedstate.Options{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},` +
			`"m":{"type":"integer"}},"required":["n"]}`)},
		Model: looptest.Say(looptest.Calls("write", `{}`), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{write},
	})
	post := func(run, state string) ([]agui.Event, error) {
		in := looptest.RunInput("t", run, looptest.UserSays("u"+run, "go"))
		in.State = json.RawMessage(state)
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
		if err != nil {
			return nil, err
		}
		return looptest.Collect(t, reply, nil), nil
	}
	if _, err := post("1", `{"m":1.5}`); looptest.Code(err) != codes.StateInvalid ||
		!strings.Contains(err.Error(), `"n" is missing`) || !strings.Contains(err.Error(), "/m") {
		t.Fatalf("a page's state gets %v", err)
	}
	if _, err := e.Keeper.State(t.Context(), looptest.Alice, "t"); looptest.Code(err) != codes.NotFound {
		t.Fatalf("a refused request leaves a thread: %v", err)
	}
	events, err := post("1", `{"n":1}`)
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, ev := range events {
		if result, is := ev.(agui.ToolCallResult); is {
			said = string(result.Content)
		}
	}
	if !strings.HasPrefix(said, `"written`) || !strings.Contains(said, "/n: ") || !strings.Contains(said, "/m: ") {
		t.Errorf("the result is %s", said)
	}
	mark := threads.Mark{State: json.RawMessage(`{"n":null}`)}
	if _, err := e.Keeper.Mark(t.Context(), looptest.Alice, "t", mark); looptest.Code(err) != codes.StateInvalid {
		t.Errorf("a checkpoint with such a state gets %v", err)
	}
	state := looptest.Must(e.Keeper.State(t.Context(), looptest.Alice, "t"))(t)
	if string(state.State) != `{"n":1}` {
		t.Errorf("the state is %s", state.State)
	}
}

// reduceState applies what a stream says of the shared state, and counts patches.
func reduceState(t *testing.T, events []agui.Event) (state string, patches int) {
	t.Helper()
	for _, ev := range events {
		switch ev := ev.(type) {
		case agui.StateSnapshot:
			state = string(ev.Snapshot)
		case agui.StateDelta:
			next, err := jsonpatch.Apply([]byte(state), ev.Delta)
			if err != nil {
				t.Fatalf("%s on %s: %v", ev.Delta, state, err)
			}
			state, patches = string(next), patches+1
		}
	}
	return state, patches
}

// countingAgent is an agent whose tool counts in a document that is larger than a patch on it.
func countingAgent(calls int) holdfast.Agent {
	var says []holdfast.Delta
	for range calls {
		says = append(says, looptest.Calls("count", `{}`))
	}
	return holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(append(says, holdfast.Delta{Text: "done"})...),
		Tools: []holdfast.Tool{looptest.Tool("count", holdfast.EffectIdempotent,
			func(ctx context.Context) (string, error) {
				return "counted", holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
					var doc struct {
						N   int    `json:"n"`
						Pad string `json:"pad"`
					}
					if err := json.Unmarshal(state, &doc); err != nil {
						return nil, err
					}
					doc.N, doc.Pad = doc.N+1, strings.Repeat("pad ", 150)
					return json.Marshal(doc)
				})
			})},
	}
}

// TestStateChangesAreShown: the first change of a run is shown whole and those that follow as patches, to all who
// watch it then or later. A thread that goes back to a state changes it without changing what came after.
func TestStateChangesAreShown(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, countingAgent(5))
	events := looptest.Started(t, e, "t")
	looptest.Succeeded(t, events)
	state := func(id string) string {
		return string(looptest.Must(e.Keeper.State(t.Context(), looptest.Alice, id))(t).State)
	}
	live, patches := reduceState(t, events)
	if patches != 4 || live != state("t") {
		t.Errorf("%d patches lead to %.20s, and the thread has %.20s", patches, live, state("t"))
	}
	reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
	if late, n := reduceState(t, looptest.Collect(t, reply, err)); late != live || n != 4 {
		t.Errorf("later, %d patches lead to %.20s", n, late)
	}
	reply, err = e.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectV1)
	if shown, n := reduceState(t, looptest.Collect(t, reply, err)); shown != live || n != 0 {
		t.Errorf("who comes later is shown %.20s and %d patches", shown, n)
	}
	states := func(id string) map[string]string {
		all := map[string]string{}
		for _, cp := range looptest.Checkpoints(t, e, id) {
			d := looptest.Must(e.Keeper.Checkpoint(t.Context(), looptest.Alice, id, cp.ID))(t)
			all[cp.ID] = string(d.State)
		}
		return all
	}
	before, list := states("t"), looptest.Checkpoints(t, e, "t")
	middle := list[len(list)/2].ID
	fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: middle}))(t)
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: middle}))(t)
	for _, id := range []string{"t", fork.Thread.ID} {
		if got := state(id); got != before[middle] {
			t.Errorf("%s has gone back to %.20s, want %.20s", id, got, before[middle])
		}
		events := looptest.Resumed(t, e, id, "r2")
		if got, n := reduceState(t, events); got != state(id) || n == 0 {
			t.Errorf("%s goes on to %.20s with %d patches, and has %.20s", id, got, n, state(id))
		}
	}
	after := states("t")
	for id, want := range before {
		if after[id] != want {
			t.Errorf("checkpoint %s has %.20s, and had %.20s", id, after[id], want)
		}
	}
	looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
	kept := state("t")
	reply, err = e.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectV1)
	if shown, _ := reduceState(t, looptest.Collect(t, reply, err)); shown != kept {
		t.Errorf("after pruning it is %.20s", shown)
	}
	for _, id := range []string{"t", fork.Thread.ID} {
		if problems := looptest.Must(audit.Check(t.Context(), e.Store, looptest.KeyOf(id)))(t); len(problems) > 0 {
			t.Errorf("%s: %+v", id, problems)
		}
	}
}
