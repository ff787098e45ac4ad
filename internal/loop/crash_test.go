package loop_test

import (
	"context"
	"iter"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestCrash: a process dies while two tools run, one of them finished. Another
// takes the run over: the finished tool is not run again, the once tool is in
// doubt, the idempotent one runs again with the same key.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		started := map[string]*atomic.Int32{"finished": {}, "once": {}, "again": {}}
		keys := make(chan string, 10)
		agent := func(hang bool) holdfast.Agent {
			step := func(name string, effect holdfast.Effect, hangs bool) holdfast.Tool {
				return looptest.Tool(name, effect, func(ctx context.Context) (string, error) {
					started[name].Add(1)
					if name == "again" {
						keys <- holdfast.CallFrom(ctx).Key
					}
					if hangs && hang {
						<-ctx.Done()
						return "", ctx.Err()
					}
					return name + " result", nil
				})
			}
			model := holdfast.ModelFunc(func(ctx context.Context,
				req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					if len(req.Messages) > 1 {
						yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
						return
					}
					for i, name := range []string{"finished", "once", "again"} {
						if !yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: "{}"}},
							nil) {
							return
						}
					}
					yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
				}
			})
			return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{
				step("finished", holdfast.EffectOnce, false),
				step("once", holdfast.EffectOnce, true),
				step("again", holdfast.EffectIdempotent, true),
			}}
		}
		one := looptest.Start(t, first, nil, agent(true))
		reply, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		_ = reply
		synctest.Wait()
		first.Dead.Store(true)
		two := looptest.Start(t, shared, nil, agent(false))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:finished result", "tool:"+thread.TextInDoubt,
			"tool:again result", "assistant:done")
		for name, want := range map[string]int32{"finished": 1, "once": 1, "again": 2} {
			if got := started[name].Load(); got != want {
				t.Errorf("%s was started %d times, want %d", name, got, want)
			}
		}
		if a, b := <-keys, <-keys; a != b {
			t.Errorf("the key changed: %s, %s", a, b)
		}
		events, err := two.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
		looptest.Succeeded(t, looptest.Collect(t, events, err))
	})
}

// TestCallIDsOfAbandonedAnswers: an answer that died with its owner has shown
// call ids; the answer that takes its place does not use them again.
func TestCallIDsOfAbandonedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		agent := func(hang bool) holdfast.Agent {
			model := holdfast.ModelFunc(func(ctx context.Context,
				req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					if len(req.Messages) > 1 {
						yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
						return
					}
					if !yield(holdfast.Delta{Call: &holdfast.CallDelta{ID: "call_0", Name: "ping", Arguments: "{"}},
						nil) {
						return
					}
					if hang {
						<-ctx.Done()
						return
					}
					if yield(holdfast.Delta{Call: &holdfast.CallDelta{ID: "call_0", Arguments: "}"}}, nil) {
						yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
					}
				}
			})
			pong := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) {
				return "pong",
					nil
			})
			return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{pong}}
		}
		one := looptest.Start(t, first, nil, agent(true))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		first.Dead.Store(true)
		two := looptest.Start(t, shared, nil, agent(false))
		time.Sleep(10 * time.Second)
		reply, err := two.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
		events := looptest.Collect(t, reply, err)
		looptest.Succeeded(t, events)
		seen := map[string]int{}
		for _, ev := range events {
			if s, ok := ev.(agui.ToolCallStart); ok {
				seen[s.ToolCallID]++
			}
		}
		if len(seen) != 2 || seen["call_0"] != 1 {
			t.Errorf("calls shown: %v", seen)
		}
	})
}

// TestFencedOwner: an owner that was only slow cannot write once another has
// taken over.
func TestFencedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		release := make(chan struct{})
		hang := func(wait bool) holdfast.Agent {
			slow := looptest.Tool("slow", holdfast.EffectPure, func(context.Context) (string, error) {
				if wait {
					<-release
					return "stale", nil
				}
				return "fresh", nil
			})
			return holdfast.Agent{
				Name:  "a",
				Model: looptest.Say(looptest.Calls("slow", "{}"), holdfast.Delta{Text: "done"}),
				Tools: []holdfast.Tool{slow},
			}
		}
		one := looptest.Start(t, first, nil, hang(true))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		first.Dead.Store(true)
		two := looptest.Start(t, shared, nil, hang(false))
		time.Sleep(10 * time.Second)
		first.Dead.Store(false)
		close(release)
		time.Sleep(time.Second)
		synctest.Wait()
		looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:fresh", "assistant:done")
	})
}

// TestGivesUp: a run that kills its owner each time ends.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		never := holdfast.ModelFunc(func(ctx context.Context,
			_ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) { <-ctx.Done() }
		})
		killed(t, shared, owner.MaxTakeovers+1, holdfast.Agent{Name: "a", Model: never})
		last := looptest.Start(t, shared, nil,
			holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "now"})})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		info, err := last.Keeper.Thread(t.Context(), looptest.Alice, "t")
		if err != nil || info.Status != threads.StatusStopped || info.Code != codes.RecoveryGaveUp {
			t.Fatalf("%+v, %v", info, err)
		}
		reply, err := last.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2"))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
	})
}

// killed starts n servers on the store, one after the other, that run thread "t" with the
// agent. Each dies after the run has gone on for a second. The first one starts it.
func killed(t *testing.T, shared store.Store, n int, agent holdfast.Agent) {
	t.Helper()
	for i := range n {
		owner := &looptest.Mortal{Store: shared}
		e := looptest.Start(t, owner, nil, agent)
		if i == 0 {
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4 * time.Second)
		owner.Dead.Store(true)
	}
}

// TestStreamingIsProgress: a slow answer outlives more servers than a silent one, because
// its words show that the run does not stand still. But there is an end to that, too.
func TestStreamingIsProgress(t *testing.T) {
	words := holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for yield(holdfast.Delta{Text: "word "}, nil) && ctx.Err() == nil {
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for servers, status := range map[int]threads.Status{
		2 + owner.MaxTakeovers: threads.StatusIdle, owner.MaxRetaken: threads.StatusIdle, 1 +
			owner.MaxRetaken: threads.StatusStopped,
	} {
		t.Run(strconv.Itoa(servers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				killed(t, shared, servers, holdfast.Agent{Name: "a", Model: words})
				last := looptest.Start(t, shared, nil,
					holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "done"})})
				time.Sleep(4 * time.Second)
				synctest.Wait()
				info := looptest.Must(last.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
				if info.Status != status || (info.Code == codes.RecoveryGaveUp) != (status == threads.StatusStopped) {
					t.Errorf("after %d servers: %+v", servers, info)
				}
			})
		})
	}
}

// TestStoreAway: while the store does not answer, nothing is shown and no tool starts; then
// the run continues as if nothing had happened. Only a pure tool may have started when that
// is noticed, because it does not wait for its call to be durable.
func TestStoreAway(t *testing.T) {
	for effect, may := range map[holdfast.Effect]bool{
		holdfast.EffectPure: true, holdfast.EffectIdempotent: false, holdfast.EffectOnce: false,
		holdfast.EffectQuery: false,
	} {
		t.Run(string(effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storeAway(t, effect, may) })
		})
	}
}

func storeAway(t *testing.T, effect holdfast.Effect, may bool) {
	store := &looptest.Mortal{Store: memstore.New()}
	ran := make(chan struct{}, 1)
	probe := looptest.Tool("probe", effect, func(context.Context) (string, error) {
		ran <- struct{}{}
		return "ok",
			nil
	})
	asked := make(chan struct{})
	model := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if len(req.Messages) > 1 {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			<-asked
			yield(looptest.Calls("probe", "{}"), nil)
		}
	})
	e := looptest.Start(t, store, nil, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{probe}})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	store.Dead.Store(true)
	close(asked)
	time.Sleep(time.Second)
	synctest.Wait()
	if len(ran) > 0 && !may {
		t.Error("a tool started before its call was durable")
	}
	store.Dead.Store(false)
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:ok", "assistant:done")
	if n := len(ran); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

// TestStoreAwayTooLong: a run that waits for a store is given up in time, and continues when
// the store is back, in the same process if there is no other.
func TestStoreAwayTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &looptest.Mortal{Store: memstore.New()}
		nap := func(name string, d time.Duration) holdfast.Tool {
			return looptest.Tool(name, holdfast.EffectPure, func(context.Context) (string, error) {
				time.Sleep(d)
				return name, nil
			})
		}
		model := holdfast.ModelFunc(func(_ context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				switch {
				case len(req.Messages) > 1:
					yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				case yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "short", Arguments: "{}"}}, nil):
					yield(
						holdfast.Delta{
							Call:   &holdfast.CallDelta{Index: 1, Name: "long", Arguments: "{}"},
							Finish: holdfast.FinishToolCalls,
						},
						nil,
					)
				}
			}
		})
		e := looptest.Start(t, store, nil, holdfast.Agent{
			Name:  "a",
			Model: model,
			Tools: []holdfast.Tool{nap("short", time.Second), nap("long", 2*time.Second)},
		})
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		store.Dead.Store(true)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if n := e.Owner.Running(); n != 0 {
			t.Errorf("%d runs wait for a store that was given up", n)
		}
		store.Dead.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:short", "tool:long", "assistant:done")
	})
}
