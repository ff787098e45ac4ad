package loop_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// A POST finds the thread "t" run by a server of which it does not know whether it lives.
// In these tests the lease is 3 seconds.

// mute is an agent whose model says nothing until its context ends.
func mute() holdfast.Agent {
	return holdfast.Agent{
		Name: "a",
		Model: holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(func(holdfast.Delta, error) bool) { <-ctx.Done() }
		}),
	}
}

// answerer is the same agent with a model that answers.
func answerer() holdfast.Agent {
	return holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "done"})}
}

// abandoned returns a store where a server that looks dead from then on runs thread "t".
func abandoned(t *testing.T) *memstore.Store {
	t.Helper()
	shared := memstore.New()
	owner := &looptest.Mortal{Store: shared}
	e := looptest.Start(t, owner, nil, mute())
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	owner.Dead.Store(true)
	return shared
}

// recovering returns a configuration with recovery on or off.
func recovering(on bool) func(*looptest.Config) {
	return func(c *looptest.Config) { c.Recover = on }
}

// answer is what became of a POST.
type answer struct {
	reply *agui.Reply
	err   error
	after time.Duration // until the reply, so before the first byte
}

// posting posts in the background; the channel gets the answer.
func posting(ctx context.Context, e *looptest.Engine, in *agui.RunAgentInput) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		begun := time.Now()
		reply, err := e.Owner.Post(ctx, looptest.Alice, "", in)
		c <- answer{reply, err, time.Since(begun)}
	}()
	return c
}

// TestResumeMeansResume: a request to resume a run whose server is gone gets a run that goes
// on, whether or not the server recovers runs by itself, and however long the owner has been
// silent. Nobody waits longer than a lease.
func TestResumeMeansResume(t *testing.T) {
	for name, recover := range map[string]bool{"recovery on": true, "recovery off": false} {
		for _, silent := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
			t.Run(name+" after "+silent.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shared := abandoned(t)
					time.Sleep(silent)
					e := looptest.Start(t, shared, recovering(recover), answerer())
					got := <-posting(t.Context(), e, looptest.RunInput("t", "r2"))
					if got.after > 3100*time.Millisecond {
						t.Errorf("it waited for %s", got.after)
					}
					events := looptest.Collect(t, got.reply, got.err)
					shown := looptest.Show(events)
					looptest.Succeeded(t, events)
					if strings.Contains(shown, codes.CutOff) || !strings.Contains(shown, `"runId":"r2"`) {
						t.Errorf("the stream is not that of a resumed run:\n%s", shown)
					}
					if run := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice,
						"t"))(t).Run; run != map[bool]string{true: "r1", false: "r2"}[recover] {
						t.Errorf("the last run is %s", run)
					}
					looptest.WantTexts(t, e, "t", "user:go", "assistant:done")
				})
			})
		}
	}
}

// TestNewMessageWaitsForTheVerdict: a new message, too, is decided when it is known what
// became of the run.
func TestNewMessageWaitsForTheVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, abandoned(t), recovering(false), answerer())
		in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "hello?"))
		if got := <-posting(t.Context(), e, in); looptest.Code(got.err) != codes.MidExecution {
			t.Errorf("after %s: %v", got.after, got.err)
		}
		in = looptest.RunInput("t", "r3", looptest.UserSays("u3", "never mind"))
		in.ForwardedProps = []byte(`{"holdfast":{"onUnfinished":"abandon"}}`)
		looptest.Succeeded(t, looptest.Posted(t, e, in))
	})
}

// TestSilentOwnerIsAwaited: with recovery on, the stream of a run whose owner has missed
// its renewal begins when the run has been claimed, here or elsewhere.
func TestSilentOwnerIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := abandoned(t)
		e := looptest.Start(t, shared, nil, answerer())
		time.Sleep(1600 * time.Millisecond) // more than half a lease
		post := posting(t.Context(), e, looptest.RunInput("t", "r2"))
		synctest.Wait()
		select {
		case got := <-post:
			t.Fatalf("the stream began before anybody had claimed the run: %+v", got)
		default:
		}
		// Nobody is held up by the one that waits.
		e.Owner.Lock(looptest.KeyOf("t"))()
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t"); err != nil {
			t.Error(err)
		}
		if err := shared.Retire(t.Context(), running(t, shared).Process); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		looptest.Start(t, shared, nil, answerer()) // it knows that the owner is gone, and claims the run at once
		got := <-post
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("it noticed the claim of another server after %s", waited)
		}
		looptest.Succeeded(t, looptest.Collect(t, got.reply, got.err))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:done")
	})
}

// TestLivingOwnerIsNotAwaited: with recovery on, nobody waits for a server that renews its
// lease; with recovery off, the next renewal is proof enough.
func TestLivingOwnerIsNotAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		recover bool
		most    time.Duration
	}{"recovery on": {true, 0}, "recovery off": {false, 1510 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				owner := looptest.Start(t, shared, nil, mute())
				if _, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
					t.Fatal(err)
				}
				e := looptest.Start(t, shared, recovering(c.recover), answerer())
				for range 10 {
					time.Sleep(330 * time.Millisecond)
					ctx, cancel := context.WithCancel(t.Context())
					got := <-posting(ctx, e, looptest.RunInput("t", "r2"))
					if got.err != nil || got.after > c.most {
						t.Errorf("attached after %s, %v", got.after, got.err)
					}
					cancel()
				}
				in := looptest.RunInput("t", "r3", looptest.UserSays("u2", "hello?"))
				if got := <-posting(t.Context(), e, in); looptest.Code(got.err) != codes.RunInProgress ||
					got.after > c.most {
					t.Errorf("after %s: %v", got.after, got.err)
				}
			})
		})
	}
}

// TestWaitingIsBounded: a request that waits ends with its client and with its server, and
// no more wait than may run.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := abandoned(t)
		e := looptest.Start(t, shared, func(c *looptest.Config) { c.Recover, c.MaxRuns = false, 1 }, answerer())
		ctx, leave := context.WithCancel(t.Context())
		first := posting(ctx, e, looptest.RunInput("t", "r2"))
		synctest.Wait()
		if got := <-posting(t.Context(), e, looptest.RunInput("t", "r3")); looptest.Code(got.err) != codes.TooManyRuns {
			t.Errorf("a second one: %v", got.err)
		}
		leave()
		if got := <-first; !errors.Is(got.err, context.Canceled) || got.after > 0 {
			t.Errorf("its client has left, but it waited for %s: %v", got.after, got.err)
		}
		second := posting(t.Context(), e, looptest.RunInput("t", "r4"))
		synctest.Wait()
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if got := <-second; looptest.Code(got.err) != codes.ShuttingDown {
			t.Errorf("its server has stopped: %v", got.err)
		}
	})
}

// unwatched is a store that panics when somebody watches a thread.
type unwatched struct{ store.Store }

func (unwatched) Watch(store.ThreadKey) (<-chan struct{}, func()) { panic("nobody has foreseen this") }

// TestPanicLeavesTheQueue: a request that panics when it begins to wait does not keep its
// place among those that wait.
func TestPanicLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := abandoned(t)
		e := looptest.Start(t, unwatched{shared}, func(c *looptest.Config) { c.MaxRuns, c.Recover = 1, false },
			answerer())
		for range 10 {
			err := routine.Caught(func() error {
				_, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2"))
				return err
			})
			var p *routine.PanicError
			if !errors.As(err, &p) {
				t.Fatalf("it did not come to wait: %v", err)
			}
		}
	})
}
