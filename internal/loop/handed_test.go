package loop_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// stale is a store whose reads of heads come late: late is called once between a read and its answer.
type stale struct {
	*memstore.Store
	late   atomic.Pointer[func()]
	handed atomic.Int64
}

func (s *stale) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	head, err := s.Store.Head(ctx, key)
	if late := s.late.Swap(nil); late != nil {
		(*late)()
	}
	return head, err
}

// HandOver counts the threads that are handed over.
func (s *stale) HandOver(ctx context.Context, process string, key store.ThreadKey) error {
	s.handed.Add(1)
	return s.Store.HandOver(ctx, process, key)
}

// TestEndedRunIsNotHandedOver: a request at a server that does not recover runs has read the thread, and the run that
// it read of ends there before it looks for the owner. The thread is not handed over: another server would take the
// next run that begins here.
func TestEndedRunIsNotHandedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		agent := holdfast.Agent{Name: "a",
			Model: holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					<-gate
					yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				}
			})}
		db := &stale{Store: memstore.New()}
		here := looptest.Start(t, db, func(c *looptest.Config) { c.Recover = false }, agent)
		looptest.Start(t, db.Store, nil, agent)
		synctest.Wait()
		if _, err := here.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ends := func() {
			close(gate)
			synctest.Wait()
		}
		db.late.Store(&ends)
		reply, err := here.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r2", looptest.UserSays("u1", "go"), looptest.UserSays("u2", "more")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		synctest.Wait()
		if n := db.handed.Load(); n > 0 {
			t.Errorf("a thread whose run has ended is handed over %d times", n)
		}
	})
}
