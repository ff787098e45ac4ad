package loop_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/store"
)

// written are arguments of which two predict the state, and what they are then.
const written = `{"n":1,"title":"A \"dog\"","document":"Go\u00e4 \ud83d\ude00 on","tags":["a","b"]}`

// foretold is what the arguments predict, for a document.
const foretold = `{"by":"page","document":"Go\u00e4 \ud83d\ude00 on","tags":["a","b"]}`

// writer is an agent whose model writes arguments in pieces of some bytes, of which document and tags are seen in the
// state meanwhile. stop is called before each piece, and once when all have come.
func writer(
	piece int, stop func(ctx context.Context, written int) error, write func(context.Context) (string, error),
) holdfast.Agent {
	model := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if len(req.Messages) > 1 {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			for at := 0; at <= len(written); {
				if err := stop(ctx, at); err != nil {
					yield(holdfast.Delta{}, err)
					return
				}
				d, next := holdfast.Delta{Finish: holdfast.FinishToolCalls}, at+1
				if at < len(written) {
					next = min(at+piece, len(written))
					d = holdfast.Delta{Call: &holdfast.CallDelta{ID: "c", Name: "write", Arguments: written[at:next]}}
				}
				if at = next; !yield(d, nil) {
					return
				}
			}
		}
	})
	return holdfast.Agent{
		Name:  "a",
		Model: model,
		State: &sharedstate.Options{Predict: []sharedstate.Prediction{
			{Tool: "write", Argument: "document", Path: "/document"},
			{Tool: "write", Argument: "tags", Path: "/tags"},
			{Tool: "write", Argument: "title", Path: "/no/title"},
		}},
		Tools: []holdfast.Tool{holdfast.NewTool("write", "writes", func(ctx context.Context, _ struct {
			N        int      `json:"n"`
			Title    string   `json:"title"`
			Document string   `json:"document"`
			Tags     []string `json:"tags"`
		}) (string, error) {
			return write(ctx)
		}, holdfast.WithEffect(holdfast.EffectIdempotent))},
	}
}

// writes is a tool that changes the state, in another way than was predicted.
func writes(ctx context.Context) (string, error) {
	return "written", holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"by":"tool"}`), nil
	})
}

// same reports whether two documents are the same.
func same(a, b string) bool { return jsonpatch.Equal([]byte(a), []byte(b)) }

// goesOn stops nothing.
func goesOn(context.Context, int) error { return nil }

// documents returns the document that a client has after each event, which must all be applicable. One that begins
// has none.
func documents(t testing.TB, events []agui.Event) (all []string) {
	t.Helper()
	document := json.RawMessage("{}")
	for _, ev := range events {
		switch ev := ev.(type) {
		case agui.StateSnapshot:
			document = ev.Snapshot
		case agui.StateDelta:
			next, err := jsonpatch.Apply(document, ev.Delta)
			if err != nil {
				t.Fatalf("%s cannot be applied to %s: %v", ev.Delta, document, err)
			}
			document = next
		}
		all = append(all, string(document))
	}
	return all
}

// posted posts a message with a state.
func posted(t testing.TB, e *looptest.Engine, state string) (*agui.Reply, error) {
	in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
	in.State = json.RawMessage(state)
	return e.Owner.Post(t.Context(), looptest.Alice, "", in)
}

// storedState returns the state that is stored.
func storedState(t testing.TB, e *looptest.Engine) string {
	t.Helper()
	state, err := e.Keeper.State(t.Context(), looptest.Alice, "t")
	if err != nil {
		t.Fatal(err)
	}
	return string(state.State)
}

// TestPredicts: while the model writes a call, watchers see what it predicts; afterwards, however the call ends, they
// see what is stored, and the archive has nothing of what was predicted.
func TestPredicts(t *testing.T) {
	const page, none = `{"by":"page"}`, `{}`
	fail := func(context.Context) (string, error) { return "", errors.New("no paper") }
	quiet := func(context.Context) (string, error) { return "nothing to write", nil }
	once := func(err error) func(context.Context, int) error {
		var failed atomic.Bool
		return func(_ context.Context, n int) error {
			if n == len(written) && !failed.Swap(true) {
				return err
			}
			return nil
		}
	}
	again := &holdfast.ModelError{Retryable: true, Public: "cut", Err: errors.New("cut")}
	for name, c := range map[string]struct {
		state      string
		stop       func(context.Context, int) error
		write      func(context.Context) (string, error)
		with       []holdfast.Middleware
		seen, ends string
		last       agui.Type
	}{
		"it changes the state": {page, goesOn, writes, nil, foretold, `{"by":"tool"}`, agui.TypeRunFinished},
		"there was none": {"", goesOn, writes, nil, `{"document":"Go\u00e4 \ud83d\ude00 on","tags":["a","b"]}`,
			`{"by":"tool"}`, agui.TypeRunFinished},
		"it changes nothing": {page, goesOn, quiet, nil, foretold, page, agui.TypeRunFinished},
		"it fails":           {page, goesOn, fail, nil, foretold, page, agui.TypeRunFinished},
		"a person is asked": {page, goesOn, writes,
			[]holdfast.Middleware{looptest.AsksLeave(time.Time{}, "write")}, foretold, page, agui.TypeRunFinished},
		"the answer is repeated": {page, once(again), writes, nil, foretold, `{"by":"tool"}`, agui.TypeRunFinished},
		"the answer fails":       {page, once(errors.New("broken")), writes, nil, foretold, page, agui.TypeRunError},
		"the state has no place": {`["page"]`, goesOn, quiet, nil, none, `["page"]`, agui.TypeRunFinished},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := writer(1, c.stop, c.write)
				agent.Middleware = c.with
				e := looptest.Start(t, memstore.New(), nil, agent)
				reply, err := posted(t, e, c.state)
				events := looptest.Collect(t, reply, err)
				if agui.EventType(looptest.LastOf(events)) != c.last {
					t.Fatalf("%s", looptest.Show(events))
				}
				all := documents(t, events)
				if !slices.ContainsFunc(all, func(d string) bool { return same(d, c.seen) }) {
					t.Errorf("nobody has seen %s:\n%s", c.seen, strings.Join(all, "\n"))
				}
				if got := all[len(all)-1]; !same(got, c.ends) || c.ends != none && !same(storedState(t, e), c.ends) {
					t.Errorf("a watcher ends with %s, want %s", got, c.ends)
				}
				announced := slices.ContainsFunc(events, func(ev agui.Event) bool {
					custom, is := ev.(agui.Custom)
					return is && custom.Name == "PredictState" &&
						string(custom.Value) == `[{"state_key":"document","tool":"write","tool_argument":"document"},`+
							`{"state_key":"tags","tool":"write","tool_argument":"tags"}]`
				})
				if want := c.state != `["page"]`; announced != want {
					t.Errorf("frontends are told what is predicted: %t\n%s", announced, looptest.Show(events))
				}
				time.Sleep(2 * time.Minute)
				replay, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
				for _, d := range documents(t, looptest.Collect(t, replay, err)) {
					if strings.Contains(d, "document") {
						t.Errorf("the archive has what was predicted: %s", d)
					}
				}
			})
		})
	}
}

// TestPredictedByTheDead: the process dies after each byte of the arguments, and while the tool runs. A watcher that
// was there, one that comes then, and one that reads the log later end with the document that is stored; and the
// official client has the same document after each event.
func TestPredictedByTheDead(t *testing.T) {
	var streams [][]agui.Event
	for at := range len(written) + 2 {
		synctest.Test(t, func(t *testing.T) {
			shared := memstore.New()
			hang := func(ctx context.Context, n int) error {
				if n == at {
					return hangs(ctx)
				}
				return nil
			}
			dying := &looptest.Mortal{Store: shared}
			one := looptest.Start(t, dying, nil, writer(1, hang, func(ctx context.Context) (string, error) {
				return "", hangs(ctx)
			}))
			if _, err := posted(t, one, `{"by":"page"}`); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // until all that was written is stored
			two := looptest.Start(t, shared, nil, writer(len(written), goesOn, writes))
			there, err := two.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
			if err != nil {
				t.Fatal(err)
			}
			late, err := two.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectV1)
			if err != nil {
				t.Fatal(err)
			}
			dying.Dead.Store(true)
			if err := shared.Retire(t.Context(), running(t, shared).Process); err != nil {
				t.Fatal(err)
			}
			watched := [][]agui.Event{looptest.Collect(t, there, nil), looptest.Collect(t, late, nil)}
			reply, err := two.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
			watched = append(watched, looptest.Collect(t, reply, err))
			for i, events := range watched {
				looptest.Succeeded(t, events)
				all := documents(t, events)
				if got := all[len(all)-1]; !same(got, `{"by":"tool"}`) || !same(storedState(t, two), got) {
					t.Errorf("dead after %d bytes: watcher %d ends with %s", at, i, got)
				}
				took := slices.IndexFunc(events, func(ev agui.Event) bool {
					custom, is := ev.(agui.Custom)
					return is && custom.Name == "holdfast.takeover"
				})
				if took < 0 || !slices.Contains(all[took:min(took+3, len(all))], `{"by":"page"}`) {
					t.Errorf("dead after %d bytes: watcher %d does not get back what is stored:\n%s", at, i,
						looptest.Show(events))
				}
			}
			streams = append(streams, watched[2])
		})
	}
	officialClient(t, streams)
}

// TestPredictedIsCutOff: if nobody continues the run of a dead process, its watchers get what is stored.
func TestPredictedIsCutOff(t *testing.T) {
	for _, at := range []int{len(written) - 1, len(written) + 1} {
		synctest.Test(t, func(t *testing.T) {
			shared := memstore.New()
			dying := &looptest.Mortal{Store: shared}
			one := looptest.Start(t, dying, nil, writer(1, func(ctx context.Context, n int) error {
				if n == at {
					return hangs(ctx)
				}
				return nil
			}, func(ctx context.Context) (string, error) { return "", hangs(ctx) }))
			if _, err := posted(t, one, `{"by":"page"}`); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // until all that was written is stored
			dying.Dead.Store(true)
			if err := shared.Retire(t.Context(), running(t, shared).Process); err != nil {
				t.Fatal(err)
			}
			two := looptest.Start(t, shared, func(c *looptest.Config) { c.Recover = false },
				writer(len(written), goesOn, writes))
			reply, err := two.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
			events := looptest.Collect(t, reply, err)
			all := documents(t, events)
			if _, failed := looptest.LastOf(events).(agui.RunError); !failed || all[len(all)-1] != `{"by":"page"}` {
				t.Errorf("dead after %d bytes: a watcher ends with %s\n%s", at, all[len(all)-1], looptest.Show(events))
			}
			if !slices.ContainsFunc(all, func(d string) bool { return same(d, foretold) }) {
				t.Errorf("nobody has seen %s:\n%s", foretold, strings.Join(all, "\n"))
			}
		})
	}
}

// officialClient checks that the official client has the same documents after each event of streams.
func officialClient(t *testing.T, streams [][]agui.Event) {
	t.Helper()
	var in bytes.Buffer
	for _, events := range streams {
		all := documents(t, events)
		for i, ev := range events {
			fmt.Fprintf(&in, "[%s,%s]\n", agui.Append(nil, ev), all[i])
		}
	}
	testkit.OfficialClient(t, "states.mjs", in.Bytes(), fmt.Sprintf("%d runs", len(streams)))
}

// TestPredictedSoFar: a watcher that comes while the model writes gets the document that is stored, and from then on
// what is predicted.
func TestPredictedSoFar(t *testing.T) {
	for _, state := range []string{`{"by":"page"}`, ""} {
		for at := range len(written) {
			synctest.Test(t, func(t *testing.T) {
				step := make(chan struct{})
				e := looptest.Start(t, memstore.New(), nil, writer(1, func(_ context.Context, n int) error {
					if n == at {
						<-step
					}
					return nil
				}, writes))
				if _, err := posted(t, e, state); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				late, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectV1)
				if err != nil {
					t.Fatal(err)
				}
				close(step)
				events := looptest.Collect(t, late, nil)
				shown := slices.IndexFunc(events, func(ev agui.Event) bool {
					return agui.EventType(ev) == agui.TypeStateSnapshot
				})
				all := documents(t, events)
				if want := cmp.Or(state, "{}"); all[shown] != want || !same(all[len(all)-1], `{"by":"tool"}`) {
					t.Errorf("after %d bytes: it gets %s, and ends with %s", at, all[shown], all[len(all)-1])
				}
			})
		}
	}
}
