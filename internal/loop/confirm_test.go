package loop_test

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// A process that has lost its thread without knowing starts nothing. The clock for stamps
// stands still in these tests, as it may seem to if the store answers late.

// thieving is a store as a process sees it whose thread another one takes.
type thieving struct {
	store.Store
	mute  atomic.Bool   // the lease is not renewed
	after time.Duration // how long the answer is under way to the commit with the intents of calls
	armed bool          // the thread is taken right after that commit
}

// Announce renews the lease, unless the store is mute.
func (s *thieving) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if s.mute.Load() {
		return looptest.ErrUnreachable
	}
	return s.Store.Announce(ctx, process, ttl)
}

// Commit lets another process take the thread once the intents of calls are stored.
func (s *thieving) Commit(ctx context.Context, c *store.Commit) error {
	err := s.Store.Commit(ctx, c)
	intends := func(v store.Value) bool { return v.Kind == store.KindIntent }
	if err != nil || !s.armed || !slices.ContainsFunc(c.Put, intends) {
		return err
	}
	if err := s.steal(ctx, c.Key); err != nil {
		return err
	}
	time.Sleep(s.after)
	return nil
}

// steal has another process take the thread.
func (s *thieving) steal(ctx context.Context, key store.ThreadKey) error {
	head, err := s.Head(ctx, key)
	if err != nil {
		return err
	}
	return s.Store.Commit(ctx, &store.Commit{
		Key: key, ID: "thief", Expect: head.Position(), User: head.User, Process: "another", UpdatedAt: time.Now(),
		Fence: store.Fence{Epoch: head.Fence.Epoch + 1, Nonce: "thief"}, Records: [][]byte{[]byte(`{"type":"CUSTOM"}`)},
	})
}

// aMinute is the lease of these tests.
const aMinute = time.Minute

// startsNothing starts an engine whose agent calls a tool, and checks that it leaves the run
// without having begun the tool, or another model call.
func startsNothing(t *testing.T, s *thieving, effect holdfast.Effect, think func(), around holdfast.Middleware) {
	t.Helper()
	j := &looptest.Notebook{}
	option := holdfast.WithEffect(effect)
	if effect == holdfast.EffectQuery {
		option = holdfast.WithQuery(func(context.Context, holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate,
			error) {
			return holdfast.ToolResult{}, holdfast.FateUnknown, nil
		})
	}
	pay := holdfast.NewTool("pay", "pays", func(context.Context, struct{}) (string, error) {
		j.Note("pay")
		return "paid", nil
	}, option)
	says := looptest.Say(looptest.Calls("pay", "{}"), holdfast.Delta{Text: "done"})
	model := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		think()
		return says.Stream(ctx, req)
	})
	still := clock.Wall()
	e := looptest.Start(t, s, func(c *looptest.Config) {
		c.Now, c.Lease = func() clock.Stamp { return still }, aMinute
	}, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{pay}, Middleware: []holdfast.Middleware{around}})
	if err := s.Announce(t.Context(), "another", 1000*time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	if did := j.Take(); len(did) != 0 {
		t.Errorf("a process that has lost its thread did %q", did)
	}
	if n := e.Owner.Running(); n != 0 {
		t.Errorf("it still has %d runs", n)
	}
	head, err := s.Head(t.Context(), looptest.KeyOf("t"))
	if err != nil || head.Process != "another" {
		t.Errorf("the thread was not taken: %+v, %v", head, err)
	}
}

// eachEffect tries every effect of which a second start matters.
func eachEffect(t *testing.T, try func(t *testing.T, effect holdfast.Effect)) {
	for _, effect := range []holdfast.Effect{holdfast.EffectOnce, holdfast.EffectQuery, holdfast.EffectIdempotent} {
		t.Run(string(effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { try(t, effect) })
		})
	}
}

func noThought() {}

// TestLateAnswerStartsNothing: the answer to the commit before a tool says what was so when the
// commit was sent, and it was under way for two leases.
func TestLateAnswerStartsNothing(t *testing.T) {
	eachEffect(t, func(t *testing.T, effect holdfast.Effect) {
		startsNothing(t, &thieving{Store: memstore.New(), after: 2 * aMinute, armed: true}, effect, noThought,
			holdfast.Middleware{})
	})
}

// TestLeaseThatLapsedStartsNothing: a commit that was acknowledged at once is no proof if the
// lease had not been renewed for so long that another process may take over right after it.
func TestLeaseThatLapsedStartsNothing(t *testing.T) {
	eachEffect(t, func(t *testing.T, effect holdfast.Effect) {
		s := &thieving{Store: memstore.New(), armed: true}
		think := func() {
			s.mute.Store(true)
			time.Sleep(2 * aMinute)
		}
		startsNothing(t, s, effect, think, holdfast.Middleware{})
	})
}

// TestHookThatWaitsStartsNothing: between the check and the tool a hook has waited, and another
// process has taken over meanwhile.
func TestHookThatWaitsStartsNothing(t *testing.T) {
	eachEffect(t, func(t *testing.T, effect holdfast.Effect) {
		s := &thieving{Store: memstore.New()}
		startsNothing(t, s, effect, noThought, holdfast.Middleware{
			Name: "test.waits",
			Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
				return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult,
					error) {
					time.Sleep(aMinute)
					if err := s.steal(ctx, looptest.KeyOf("t")); err != nil {
						t.Error(err)
					}
					return next(ctx, tool, call)
				}
			},
		})
	})
}

// TestModelHookThatWaitsAsksNothing: the same with a model call.
func TestModelHookThatWaitsAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &thieving{Store: memstore.New()}
		asked := false
		startsNothing(t, s, holdfast.EffectOnce, func() { asked = true }, holdfast.Middleware{
			Name: "test.waits",
			Model: func(next holdfast.ModelCall) holdfast.ModelCall {
				return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					s.mute.Store(true)
					time.Sleep(aMinute)
					if err := s.steal(ctx, looptest.KeyOf("t")); err != nil {
						t.Error(err)
					}
					s.mute.Store(false)
					return next(ctx, req)
				}
			},
		})
		if asked {
			t.Error("the model was asked")
		}
	})
}

// TestOwnerThatComesBackGoesOn: a process that could not renew its lease for long, and whose
// thread nobody took, starts the tool once it holds its lease again.
func TestOwnerThatComesBackGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &thieving{Store: memstore.New()}
		var began time.Time
		pay := looptest.Tool("pay", holdfast.EffectOnce, func(context.Context) (string, error) {
			began = time.Now()
			return "paid", nil
		})
		e := looptest.Start(t, s, func(c *looptest.Config) { c.Lease, c.StoreTimeout = aMinute, time.Hour },
			holdfast.Agent{
				Name:  "a",
				Model: looptest.Say(looptest.Calls("pay", "{}"), holdfast.Delta{Text: "done"}),
				Tools: []holdfast.Tool{pay},
			})
		time.Sleep(time.Second)
		s.mute.Store(true)
		time.Sleep(2 * aMinute)
		back := time.Now().Add(aMinute)
		time.AfterFunc(aMinute, func() { s.mute.Store(false) })
		looptest.Succeeded(t, looptest.Started(t, e, "t"))
		if began.Before(back) {
			t.Errorf("the tool began %s before the process had its lease back", back.Sub(began))
		}
	})
}

// hesitant is a store as an owner sees it whose lease has lapsed. Another process has read the
// head, and then the lapsed lease, and tries to take the thread over much later: while an
// answer about the head is on its way to the owner, who has the lease back.
type hesitant struct {
	*thieving
	read  atomic.Pointer[store.Position] // the head that the other process has read
	after atomic.Int32                   // how many such answers come before
	back  atomic.Bool                    // the owner has renewed the lease since
	tried atomic.Bool
	taken atomic.Bool
}

// Announce notes that the owner has the lease back.
func (s *hesitant) Announce(ctx context.Context, process string, ttl time.Duration) error {
	err := s.thieving.Announce(ctx, process, ttl)
	if err == nil && s.read.Load() != nil {
		s.back.Store(true)
	}
	return err
}

// Commit has the other process look once the intents of calls are stored.
func (s *hesitant) Commit(ctx context.Context, c *store.Commit) error {
	err := s.Store.Commit(ctx, c)
	intends := func(v store.Value) bool { return v.Kind == store.KindIntent }
	if err != nil || !slices.ContainsFunc(c.Put, intends) {
		return err
	}
	head, err := s.Store.Head(ctx, c.Key)
	if err == nil {
		read := head.Position()
		s.read.Store(&read)
		s.mute.Store(false)
	}
	return err
}

// Head has the other process act once the answer is on its way.
func (s *hesitant) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	head, err := s.Store.Head(ctx, key)
	if err != nil || !s.back.Load() || s.tried.Load() {
		return head, err
	}
	if s.after.Add(-1) < 0 {
		read := *s.read.Load()
		s.tried.Store(true)
		s.taken.Store(s.Store.Commit(ctx, &store.Commit{
			Key: key, ID: "thief", Expect: read, User: head.User, Process: "another", UpdatedAt: time.Now(),
			Fence:   store.Fence{Epoch: read.Fence.Epoch + 1, Nonce: "thief"},
			Records: [][]byte{[]byte(`{"type":"CUSTOM"}`)},
		}) == nil)
	}
	return head, nil
}

// TestHeadIsNoProofAfterALapse: to have read the head is no proof for a process whose lease had
// lapsed, even if it has it back: another one may have seen that, and may be about to take over.
func TestHeadIsNoProofAfterALapse(t *testing.T) {
	for after, taken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &hesitant{thieving: &thieving{Store: memstore.New()}}
			s.after.Store(int32(after))
			var began atomic.Int32
			pay := looptest.Tool("pay", holdfast.EffectOnce, func(context.Context) (string, error) {
				began.Add(1)
				return "paid", nil
			})
			says := looptest.Say(looptest.Calls("pay", "{}"), holdfast.Delta{Text: "done"})
			model := holdfast.ModelFunc(func(ctx context.Context,
				req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				if s.read.Load() == nil {
					s.mute.Store(true)
					time.Sleep(2*aMinute + time.Second)
				}
				return says.Stream(ctx, req)
			})
			e := looptest.Start(t, s, func(c *looptest.Config) { c.Lease, c.StoreTimeout = aMinute, time.Hour },
				holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{pay}})
			if err := s.Store.Announce(t.Context(), "another", 1000*time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if !s.tried.Load() || s.taken.Load() != taken || (began.Load() == 1) == taken {
				t.Errorf("after %d answers, another process took the thread over: %v, and the tool was begun %d times",
					after, s.taken.Load(), began.Load())
			}
		})
	}
}
