package loop_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// lossy is a store whose next commit, after it has landed, does what the test says.
type lossy struct {
	store.Store
	next   atomic.Pointer[func() error] // called once, after the commit
	unread atomic.Bool                  // heads cannot be read
}

// Commit implements [store.Committer]. Like a client of Redis, it does not know what
// became of a commit whose context has ended.
func (s *lossy) Commit(ctx context.Context, c *store.Commit) error {
	if err := s.Store.Commit(ctx, c); err != nil {
		return err
	}
	if after := s.next.Swap(nil); after != nil {
		if err := (*after)(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Head implements [store.Reader].
func (s *lossy) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	if s.unread.Load() {
		return nil, looptest.ErrUnreachable
	}
	return s.Store.Head(ctx, key)
}

// then makes the next commit call f.
func (s *lossy) then(f func() error) { s.next.Store(&f) }

// TestNoFalseTakeover: once the commit that accepts a run has landed, the run runs, whatever
// becomes of the request and of the store's answer. Nobody takes it over.
func TestNoFalseTakeover(t *testing.T) {
	errLost := errors.New("connection reset by peer")
	for name, lose := range map[string]func(s *lossy, leave func()) (refused bool){
		"the client leaves": func(s *lossy, leave func()) bool {
			s.then(func() error { leave(); return nil })
			return false
		},
		"the answer is lost": func(s *lossy, _ func()) bool {
			s.then(func() error { return errLost })
			return false
		},
		"the store is lost": func(s *lossy, _ func()) bool {
			s.then(func() error {
				s.unread.Store(true)
				return errLost
			})
			return true
		},
	} {
		for what, begun := range map[string]bool{"first commit": false, "takeover": true} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shared := memstore.New()
					in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
					takeovers := 0
					if begun { // a run whose server has retired in its first step
						one := looptest.Start(t, shared, nil, mute())
						if _, err := one.Owner.Post(t.Context(), looptest.Alice, "", in); err != nil {
							t.Fatal(err)
						}
						cut, cancel := context.WithCancel(t.Context())
						cancel()
						_ = one.Shutdown(cut)
						takeovers = 1
					}
					s := &lossy{Store: shared}
					s.unread.Store(true) // the server's own look at the start finds nothing
					e := looptest.Start(t, s, nil, answerer())
					synctest.Wait()
					s.unread.Store(false)
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					refused := lose(s, leave)
					if _, err := e.Owner.Post(ctx, looptest.Alice, "", in); refused && err == nil {
						t.Fatal("the request says that its run was accepted")
					}
					s.unread.Store(false)
					if !refused {
						synctest.Wait()
						looptest.WantTexts(t, e, "t", "user:go", "assistant:done")
					}
					events := looptest.Posted(t, e, in) // the client tries again
					looptest.Succeeded(t, events)
					if n := strings.Count(looptest.Show(events), "holdfast.takeover"); n != takeovers {
						t.Errorf("taken over %d times, want %d:\n%s", n, takeovers, looptest.Show(events))
					}
					synctest.Wait()
					if e.Owner.Running() != 0 {
						t.Errorf("%d runs are left", e.Owner.Running())
					}
				})
			})
		}
	}
}

// TestLostCommitGivesItsPlaceBack: a commit of which nobody knows whether it landed keeps
// a place among the runs only while it may still land.
func TestLostCommitGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lossy{Store: memstore.New()}
		e := looptest.Start(t, s, func(c *looptest.Config) { c.MaxRuns = 1 }, answerer())
		s.then(func() error {
			s.unread.Store(true)
			if err := s.Store.Delete(t.Context(), looptest.KeyOf("t"), running(t, s.Store).Position()); err != nil {
				t.Error(err)
			}
			return looptest.ErrUnreachable
		})
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err == nil {
			t.Fatal("accepted")
		}
		s.unread.Store(false)
		other := looptest.RunInput("other", "r1", looptest.UserSays("u1", "go"))
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", other); err == nil {
			t.Error("two runs at a time, one of them perhaps")
		}
		time.Sleep(time.Minute)
		looptest.Succeeded(t, looptest.Posted(t, e, other))
		synctest.Wait() // its place is free again
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
	})
}

// TestLostCommitIsCounted: a thread whose first commit has landed, although nobody knew it at
// first, counts; one whose commit never lands does not.
func TestLostCommitIsCounted(t *testing.T) {
	for name, landed := range map[string]bool{"landed": true, "did not land": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lossy{Store: memstore.New()}
				limits := limited(t, s, func(q *quota.Config) { q.PerUser.Threads = 1 })
				if _, err := limits.CountDue(t.Context()); err != nil { // a later request is told no
					t.Fatal(err)
				}
				e := looptest.Start(t, s, func(c *looptest.Config) { c.Limits = limits }, answerer())
				s.then(func() error {
					s.unread.Store(true)
					if landed {
						return looptest.ErrUnreachable
					}
					return errors.Join(s.Store.Delete(t.Context(), looptest.KeyOf("t"),
						running(t, s.Store).Position()), looptest.ErrUnreachable)
				})
				in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
				if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", in); err == nil {
					t.Fatal("accepted")
				}
				s.unread.Store(false)
				other := looptest.RunInput("other", "r1", looptest.UserSays("u1", "go"))
				_, err := e.Owner.Post(t.Context(), looptest.Alice, "", other)
				wantLimit(t, err, "threads", "user", 1, 1) // it may have landed
				if landed {
					looptest.Succeeded(t, looptest.Posted(t, e, in))
				}
				time.Sleep(time.Minute) // the clock of the test
				if landed {
					_, err := e.Owner.Post(t.Context(), looptest.Alice, "", other)
					wantLimit(t, err, "threads", "user", 1, 1)
				} else {
					looptest.Succeeded(t, looptest.Posted(t, e, other))
				}
			})
		})
	}
}

// TestPanicGivesThePlaceBack: a mistake of the program's observer, when a commit turns out
// to have landed, costs no place among the runs.
func TestPanicGivesThePlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lossy{Store: abandoned(t)}
		s.then(func() error {
			s.unread.Store(true)
			time.AfterFunc(time.Second, func() { s.unread.Store(false) })
			return looptest.ErrUnreachable
		})
		var panicked atomic.Bool
		e := looptest.Start(t, s, func(c *looptest.Config) {
			c.MaxRuns = 1
			c.Observer.TakenOver = func(_ holdfast.Iteration, result observe.TakeoverResult, _ string) {
				if result == observe.TakeoverDone && panicked.CompareAndSwap(false, true) {
					panic("a mistake")
				}
			}
		}, answerer())
		time.Sleep(time.Minute) // the clock of the test
		if !panicked.Load() {
			t.Error("nothing was taken over")
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:done")
	})
}
