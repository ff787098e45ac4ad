package loop_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Call ids: one that a stream has shown is never that of another call of the thread, also
// if the first one was taken back.

// repeating is an agent whose model calls ping under the id call_0, whatever was called
// before. It gets stuck in the arguments of the calls for which stuck returns true.
func repeating(stuck func(ctx context.Context) error) holdfast.Agent {
	arguments := "{"
	model := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			arguments += " " // each try says more than the one before, or it would not be shown
			if !yield(holdfast.Delta{Call: &holdfast.CallDelta{ID: "call_0", Name: "ping", Arguments: arguments}},
				nil) {
				return
			}
			if err := stuck(ctx); err != nil {
				yield(holdfast.Delta{}, err)
				return
			}
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{ID: "call_0", Arguments: "}"},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	return holdfast.Agent{
		Name:  "a",
		Model: model,
		Tools: []holdfast.Tool{looptest.Tool("ping", holdfast.EffectPure, quickly)},
	}
}

func never(context.Context) error { return nil }

// untilStopped is stuck until the run is cancelled or its process is gone.
func untilStopped(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// broken fails in the middle of the arguments, each time.
func broken(context.Context) error {
	return &holdfast.ModelError{Retryable: true, Public: "cut", Err: errors.New("cut")}
}

// wantFresh checks that the runs of the thread t show so many calls, no two with the same
// id.
func wantFresh(t *testing.T, e *looptest.Engine, shown int, runs ...string) {
	t.Helper()
	seen := map[string]string{}
	total := 0
	for _, run := range runs {
		reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", run, store.Cursor{}, agui.DialectV1)
		for _, ev := range looptest.Collect(t, reply, err) {
			start, ok := ev.(agui.ToolCallStart)
			if !ok {
				continue
			}
			if other, double := seen[start.ToolCallID]; double {
				t.Errorf("%s is a call of run %s, and again of run %s", start.ToolCallID, other, run)
			}
			seen[start.ToolCallID] = run
			total++
		}
	}
	if total != shown {
		t.Errorf("the runs %q show %d calls, want %d", runs, total, shown)
	}
}

// begin posts the first message and waits until the model is stuck.
func begin(t *testing.T, e *looptest.Engine) {
	t.Helper()
	looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
	synctest.Wait()
}

// TestCallIDsAfterTwoCrashes while arguments stream, with and without a try in between
// that failed in the same way.
func TestCallIDsAfterTwoCrashes(t *testing.T) {
	for name, c := range map[string]struct {
		second func(try int) func(context.Context) error
		shown  int
	}{
		"two crashes": {func(int) func(context.Context) error { return untilStopped }, 3},
		"a crash, a failure and a crash": {func(try int) func(context.Context) error {
			if try == 1 {
				return broken
			}
			return untilStopped
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				first, then := &looptest.Mortal{Store: shared}, &looptest.Mortal{Store: shared}
				begin(t, looptest.Start(t, first, nil, repeating(untilStopped)))
				first.Dead.Store(true)
				try := 0
				looptest.Start(t, then, nil,
					repeating(func(ctx context.Context) error { try++; return c.second(try)(ctx) }))
				time.Sleep(10 * time.Second)
				then.Dead.Store(true)
				last := looptest.Start(t, shared, nil, repeating(never))
				time.Sleep(10 * time.Second)
				looptest.WantTexts(t, last, "t", "user:go", "assistant:", "tool:paid", "assistant:done")
				wantFresh(t, last, c.shown, "r1")
			})
		})
	}
}

// TestCallIDsAfterTheEnd: the call that was taken back when its run ended counts as used
// in the next run, and wherever the thread goes back to.
func TestCallIDsAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, shared store.Store) (shown int){
		"cancelled": func(t *testing.T, shared store.Store) int {
			e := looptest.Start(t, shared, nil, repeating(untilStopped))
			begin(t, e)
			looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
			return 1
		},
		"failed": func(t *testing.T, shared store.Store) int {
			begin(t, looptest.Start(t, shared, nil, repeating(broken)))
			return 3 // tries
		},
		"cut off": func(t *testing.T, shared store.Store) int {
			first := &looptest.Mortal{Store: shared}
			begin(t, looptest.Start(t, first, nil, repeating(untilStopped)))
			first.Dead.Store(true)
			looptest.Start(t, shared, func(c *looptest.Config) { c.Recover = false }, repeating(never))
			return 1
		},
	} {
		for _, rewound := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shared := memstore.New()
					shown := end(t, shared)
					time.Sleep(10 * time.Second)
					e := looptest.Start(t, shared, nil, repeating(never))
					if rewound {
						looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
							threads.Travel{Checkpoint: looptest.Checkpoints(t, e, "t")[0].ID}))(t)
					}
					in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "again"))
					in.ForwardedProps = []byte(`{"holdfast":{"onUnfinished":"abandon"}}`)
					looptest.Succeeded(t, looptest.Posted(t, e, in))
					wantFresh(t, e, shown+1, "r1", "r2")
				})
			})
		}
	}
}

// made is a call as its tool has got it.
type made struct{ id, key, arguments string }

// lookingUp is an agent whose model calls the pure tool look under the id call_0, with these
// arguments, and whose tool does what during does.
func lookingUp(arguments string, calls chan<- made, during func(context.Context) error) holdfast.Agent {
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			yield(holdfast.Delta{
				Call:   &holdfast.CallDelta{ID: "call_0", Name: "look", Arguments: arguments},
				Finish: holdfast.FinishToolCalls,
			}, nil)
		}
	})
	look := holdfast.NewTool("look", "looks", func(ctx context.Context, _ struct{ N int }) (string, error) {
		c := holdfast.CallFrom(ctx)
		calls <- made{c.ID, c.Key, string(c.Arguments)}
		return "seen", during(ctx)
	}, holdfast.WithEffect(holdfast.EffectPure))
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{look}}
}

// shows reports whether a commit is the first that shows a call.
func shows() func(*store.Commit) bool {
	var once atomic.Bool
	return func(c *store.Commit) bool {
		for _, data := range c.Records {
			if agui.TypeOf(data) == agui.TypeToolCallStart {
				return once.CompareAndSwap(false, true)
			}
		}
		return false
	}
}

// TestCallIDsOfUnseenCalls: a pure call may start before anything of its answer is stored. If its
// process dies then, no other call of the thread gets its id or its key, neither of the run that
// goes on nor, if nobody continues that, of the next one.
func TestCallIDsOfUnseenCalls(t *testing.T) {
	for name, recovers := range map[string]bool{"goes on": true, "cut off": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared, calls := memstore.New(), make(chan made, 3)
				dying := &looptest.Mortal{Store: shared}
				slow := holdBack(dying, true, shows())
				begin(t, looptest.Start(t, slow, nil, lookingUp(`{"N":1}`, calls, untilStopped)))
				<-slow.held
				lost := <-calls
				dying.Dead.Store(true)
				close(slow.free)
				next := looptest.Start(t, shared, func(c *looptest.Config) { c.Recover = recovers },
					lookingUp(`{"N":2}`, calls, never))
				time.Sleep(10 * time.Second)
				if !recovers {
					looptest.Succeeded(t, looptest.Resumed(t, next, "t", "r2"))
				}
				var other made
				select {
				case other = <-calls:
				default:
					t.Fatalf("there is no other call; the thread shows %q", looptest.Texts(t, next, "t"))
				}
				if other.arguments == lost.arguments || other.id == lost.id || other.key == lost.key {
					t.Errorf("two calls are alike: %+v and %+v", lost, other)
				}
				looptest.WantTexts(t, next, "t", "user:go", "assistant:", "tool:seen", "assistant:done")
			})
		})
	}
}

// TestCallIDsAmongCalls: where the process dies among calls that are stored, the ids are as the
// model chose them, before and after.
func TestCallIDsAmongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, calls := memstore.New(), make(chan made, 3)
		dying := &looptest.Mortal{Store: shared}
		begin(t, looptest.Start(t, dying, nil, lookingUp(`{"N":1}`, calls, untilStopped)))
		time.Sleep(time.Second)
		dying.Dead.Store(true)
		looptest.Start(t, shared, nil, lookingUp(`{"N":2}`, calls, never))
		time.Sleep(10 * time.Second)
		first, again := <-calls, <-calls
		if first != again || first.id != "call_0" {
			t.Errorf("one call was %+v and then %+v", first, again)
		}
	})
}
