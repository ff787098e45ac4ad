package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// naps is an agent that makes so many calls, one in each answer, of a tool that takes so
// long. started counts the calls.
func naps(calls int, d time.Duration, started *atomic.Int32) holdfast.Agent {
	nap := looptest.Tool("nap", holdfast.EffectOnce, func(context.Context) (string, error) {
		started.Add(1)
		time.Sleep(d)
		return "rested", nil
	})
	var turns []holdfast.Delta
	for range calls {
		turns = append(turns, looptest.Calls("nap", "{}"))
	}
	return holdfast.Agent{
		Name:  "a" + d.String(),
		Model: looptest.Say(append(turns, holdfast.Delta{Text: "done"})...),
		Tools: []holdfast.Tool{nap},
	}
}

// takenOverAfter waits until the thread has another owner, and returns how long that took
// since begun.
func takenOverAfter(t *testing.T, s store.Store, key store.ThreadKey, epoch uint64, begun time.Time) time.Duration {
	t.Helper()
	for looptest.Must(s.Head(t.Context(), key))(t).Fence.Epoch == epoch {
		time.Sleep(time.Millisecond)
	}
	return time.Since(begun)
}

// TestHandOver: a server that shuts down hands each run over when it comes to a boundary,
// however long others of its runs still take. A watcher elsewhere sees one stream.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		var started atomic.Int32
		leaving := looptest.Start(t, shared, nil, naps(3, time.Second, &started))
		for i, id := range []string{"short", "long"} {
			time.Sleep(time.Duration(i) * 800 * time.Millisecond) // the second one comes to its boundary later
			if _, err := leaving.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput(id, "r1", looptest.UserSays("u1", "go"))); err != nil {
				t.Fatal(err)
			}
		}
		staying := looptest.Start(t, shared, nil, naps(3, time.Second, &started))
		synctest.Wait()
		watched, err := staying.Owner.Events(t.Context(), looptest.Alice, "short", "r1", store.Cursor{}, agui.DialectV1)
		stopped := make(chan error, 1)
		go func() { stopped <- leaving.Shutdown(t.Context()) }()
		synctest.Wait()
		for _, id := range []string{"short", "long"} {
			takenOverAfter(t, shared, looptest.KeyOf(id), 1, time.Now())
			if id == "short" && leaving.Owner.Running() != 1 {
				t.Errorf("the first run is taken over while the other server has %d runs", leaving.Owner.Running())
			}
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		events := looptest.Collect(t, watched, err)
		looptest.Succeeded(t, events)
		if shown := looptest.Show(events); strings.Count(shown, `"reason":"handed_over"`) != 1 {
			t.Errorf("the watcher sees\n%s", shown)
		}
		reply, err := staying.Owner.Events(t.Context(), looptest.Alice, "long", "r1", store.Cursor{}, agui.DialectV1)
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		if n := started.Load(); n != 6 {
			t.Errorf("of 6 calls %d were started", n)
		}
	})
}

// TestHandOverTime: the heir takes over at once; the others, should it not do that, a tenth
// of a second later.
func TestHandOverTime(t *testing.T) {
	for heir, want := range map[bool]time.Duration{true: 0, false: 100 * time.Millisecond} {
		t.Run(fmt.Sprint("heir ", heir), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				var started atomic.Int32
				leaving := looptest.Start(t, shared, nil, naps(1, 2*time.Second, &started),
					naps(2, time.Second, &started))
				for _, id := range []string{"long", "short"} {
					in := looptest.RunInput(id, "r1", looptest.UserSays("u1", "go"))
					if _, err := leaving.Owner.Post(t.Context(), looptest.Alice,
						map[string]string{"long": "", "short": "a1s"}[id], in); err != nil {
						t.Fatal(err)
					}
				}
				looptest.Start(t, elect{shared, heir}, nil, naps(1, 2*time.Second, &started),
					naps(2, time.Second, &started))
				synctest.Wait()
				stopped := make(chan error, 1)
				begun := time.Now().Add(time.Second)
				go func() { stopped <- leaving.Shutdown(t.Context()) }()
				if took := takenOverAfter(t, shared, looptest.KeyOf("short"), 1, begun); took < want ||
					took > want+10*time.Millisecond {
					t.Errorf("it took %s to take the run over, want %s", took, want)
				}
				if err := <-stopped; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// elect is a store that tells its server whether it is the heir.
type elect struct {
	store.Store
	heir bool
}

func (e elect) OnDeparture(process string, f func(store.Departure)) func() {
	return e.Store.OnDeparture(process, func(d store.Departure) {
		d.Heir = e.heir
		f(d)
	})
}

// TestHandingOverIsNoFailure: a run that is handed over again and again before it makes any
// progress goes on: it has killed nobody.
func TestHandingOverIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		slow := holdfast.ModelFunc(func(ctx context.Context,
			_ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				select {
				case <-time.After(time.Minute):
					yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				case <-ctx.Done():
				}
			}
		})
		agent := holdfast.Agent{Name: "a", Model: slow}
		first := looptest.Start(t, shared, nil, agent)
		if _, err := first.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		for range owner.MaxRetaken + 1 {
			next := looptest.Start(t, shared, nil, agent)
			synctest.Wait()
			grace, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := first.Shutdown(grace); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the model call in flight ended: %v", err)
			}
			cancel()
			synctest.Wait() // the next one has taken over
			first = next
		}
		time.Sleep(2 * time.Minute)
		if info := looptest.Must(first.Keeper.Thread(t.Context(), looptest.Alice,
			"t"))(t); info.Status != threads.StatusIdle {
			t.Errorf("the run ended as %+v", info)
		}
	})
}

// TestBusyToolsAreNotHandedOver: while a tool goes on that ignores that its run was cut off,
// nobody is told to make its call again.
func TestBusyToolsAreNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		var started atomic.Int32
		leaving := looptest.Start(t, shared, nil, naps(1, 5*time.Second, &started))
		if _, err := leaving.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		defer shared.OnDeparture("other", func(d store.Departure) {
			if !d.Retired {
				t.Errorf("others are told %+v", d)
			}
		})()
		synctest.Wait()
		grace, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := leaving.Shutdown(grace); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestSilenceIsNoticedInTime: whenever a server dies of which the store tells nobody, its
// runs are taken over when its lease ends, and not at some sweep later.
func TestSilenceIsNoticedInTime(t *testing.T) {
	for at := time.Duration(0); at < 3*time.Second; at += 373 * time.Millisecond {
		t.Run(at.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				var started atomic.Int32
				looptest.Start(t, shared, nil, naps(1, time.Minute, &started))
				time.Sleep(10 * time.Second)
				dying := &looptest.Mortal{Store: shared}
				owner := looptest.Start(t, dying, nil, naps(1, time.Minute, &started))
				time.Sleep(at)
				if _, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				dying.Dead.Store(true)
				if took := takenOverAfter(t, shared, looptest.KeyOf("t"), 1, time.Now()); took < 2*time.Second ||
					took > 3*time.Second+10*time.Millisecond {
					t.Errorf("it took %s, with a lease of 3s", took)
				}
			})
		})
	}
}

// TestNothingStartsWithoutTheLease: a server that was away from the store for longer than
// its lease starts nothing of a run that another one has taken over: no pure tool, and no
// model either. Nothing else tells it, because it has nothing to commit.
func TestNothingStartsWithoutTheLease(t *testing.T) {
	pure := func(started *atomic.Int32) holdfast.Agent {
		agent := naps(0, 0, started)
		agent.Model = holdfast.ModelFunc(func(_ context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				for i := range 2 {
					if !yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: "nap", Arguments: "{}"}}, nil) {
						return
					}
				}
				yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
			}
		})
		agent.Tools = []holdfast.Tool{looptest.Tool("nap", holdfast.EffectPure, func(context.Context) (string, error) {
			started.Add(1)
			time.Sleep(10 * time.Second)
			return "rested", nil
		})}
		return agent
	}
	model := func(started *atomic.Int32) holdfast.Agent {
		return holdfast.Agent{
			Name: "m",
			Model: holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					started.Add(1)
					time.Sleep(10 * time.Second)
					yield(holdfast.Delta{},
						&holdfast.ModelError{Kind: failure.Overloaded, Retryable: true, Public: "busy"})
				}
			}),
		}
	}
	for name, agent := range map[string]func(*atomic.Int32) holdfast.Agent{"a pure tool": pure, "a model": model} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				var here, there atomic.Int32
				first := &looptest.Mortal{Store: shared}
				one := looptest.Start(t, first, func(c *looptest.Config) { c.MaxParallelTools = 1 }, agent(&here))
				looptest.Start(t, shared, func(c *looptest.Config) { c.MaxParallelTools = 1 }, agent(&there))
				time.Sleep(5 * time.Second)
				if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				first.Dead.Store(true)
				time.Sleep(5 * time.Second) // and it is taken over
				first.Dead.Store(false)
				time.Sleep(20 * time.Second)
				if here.Load() != 1 || there.Load() < 1 {
					t.Errorf("the first server has started %d, the second %d", here.Load(), there.Load())
				}
			})
		})
	}
}
