package pin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/pin"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The fate of runs that wait is tested in internal/loop. Here is what those who look after
// them do with the answers of a store.

var errAway = errors.New("away")

// shelf is a store that answers as it is told to.
type shelf struct {
	inbox     []store.InboxItem
	inboxErr  error
	lease     store.Lease
	leaseErr  error
	commits   []*store.Commit
	commitErr error
}

func (s *shelf) Inbox(context.Context, store.ThreadKey) ([]store.InboxItem, error) {
	return s.inbox, s.inboxErr
}

func (s *shelf) Lease(context.Context, string) (store.Lease, error) { return s.lease, s.leaseErr }

func (s *shelf) commit(_ context.Context, _ holdfast.Iteration, c *store.Commit) error {
	s.commits = append(s.commits, c)
	return s.commitErr
}

// storeNow is the time by the clock of the shelf, which has nothing to do with the test's.
var storeNow = time.Date(1987, 6, 5, 4, 3, 2, 0, time.UTC)

func newShelf() *shelf {
	return &shelf{lease: store.Lease{Until: storeNow.Add(2 * time.Second), Left: 2 * time.Second}}
}

func keeper(t *testing.T, s *shelf) *pin.Keeper {
	n := 0
	return pin.New(pin.Config{
		Store:   s,
		Process: "p",
		Grace:   3 * time.Second,
		Timeout: 15 * time.Minute,
		Commit:  s.commit,
		Now:     clock.Wall,
		Cancels: func(it store.InboxItem, run string) bool { return it.ID == "cancel/"+run },
		NewID:   func(prefix string) string { n++; return fmt.Sprint(prefix, n) },
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
}

// orphan returns a thread with a run that has lost its owner.
func orphan(t *testing.T, id string) *thread.Thread {
	t.Helper()
	st := thread.New()
	if err := st.Begin("r", "a"); err != nil {
		t.Fatal(err)
	}
	head := &store.Head{
		Key:     store.ThreadKey{Thread: id},
		Process: "gone",
		Fence:   store.Fence{Epoch: 1, Nonce: "x"},
		Next:    5,
		ETag:    "e",
	}
	return &thread.Thread{Key: head.Key, Head: head, State: st}
}

// TestLook: each answer of a store leads to one verdict, before and after the grace, and what
// is stored has the store's time.
func TestLook(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*shelf)
		want   pin.Verdict
		err    error
	}{
		"all is well": {func(*shelf) {}, pin.Stored, nil},
		"it is cancelled": {func(s *shelf) { s.inbox = []store.InboxItem{{ID: "describe/r"}, {ID: "cancel/r"}} },
			pin.Cancelled, nil},
		"another run was": {func(s *shelf) { s.inbox = []store.InboxItem{{ID: "cancel/r0"}} }, pin.Stored, nil},
		"no inbox":        {func(s *shelf) { s.inboxErr = errAway }, pin.Wait, errAway},
		"no answer":       {func(s *shelf) { s.leaseErr = errAway }, pin.Wait, errAway},
		"no lease":        {func(s *shelf) { s.lease = store.Lease{} }, pin.Wait, nil},
		"a lease is over": {func(s *shelf) { s.lease = store.Lease{Until: storeNow.Add(-time.Hour), Left: -time.Hour} },
			pin.Stored, nil},
		"another is first": {func(s *shelf) { s.commitErr = store.ErrConflict }, pin.Stored, store.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				k, o := keeper(t, s), orphan(t, "t")
				if got, err := k.Look(t.Context(), o, "6f1e", false); got != pin.Wait || err != nil {
					t.Fatalf("found just now: %v, %v", got, err)
				}
				time.Sleep(4 * time.Second)
				c.change(s)
				got, err := k.Look(t.Context(), o, "6f1e", false)
				if got != c.want || !errors.Is(err, c.err) {
					t.Errorf("%v, %v, want %v, %v", got, err, c.want, c.err)
				}
				if (got == pin.Stored) != (len(s.commits) == 1) {
					t.Fatalf("there are %d commits", len(s.commits))
				}
				if got != pin.Stored {
					return
				}
				stored := s.commits[0]
				st, err := thread.DecodeState(stored.State)
				if err != nil || stored.Process != "gone" || stored.Fence.Epoch != 2 ||
					stored.Expect != o.Head.Position() || len(stored.Records) != 1 || stored.Validate() != nil {
					t.Fatalf("%+v, %v", stored, err)
				}
				if w := st.Waiting; w == nil || w.Revision != "6f1e" || !w.Since.Equal(storeNow.Add(-4*time.Second)) ||
					!w.Until.Equal(w.Since.Add(15*time.Minute)) {
					t.Errorf("it waits as %+v", st.Waiting)
				}
				if o.State.Waiting != nil {
					t.Error("what was read has changed")
				}
			})
		})
	}
}

// TestLeftToOthers: a run that another process can go on with is left to that, however long it
// takes, unless it is cancelled; once nobody can any more, its time begins.
func TestLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		k, o := keeper(t, s), orphan(t, "t")
		look := func(others bool, want pin.Verdict) {
			t.Helper()
			if got, err := k.Look(t.Context(), o, "6f1e", others); got != want || err != nil {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
		}
		look(false, pin.Wait)
		for range 3 {
			time.Sleep(time.Hour)
			look(true, pin.Wait)
		}
		look(false, pin.Wait)
		time.Sleep(4 * time.Second)
		look(false, pin.Stored)
		s.inbox = []store.InboxItem{{ID: "cancel/r"}}
		look(true, pin.Cancelled)
	})
}

// TestOver: a run waits until the store says that its time is up.
func TestOver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*shelf)
		want   pin.Verdict
		err    error
	}{
		"a moment before": {func(s *shelf) { s.lease.Left += time.Millisecond }, pin.Wait, nil},
		"then":            {func(*shelf) {}, pin.Over, nil},
		"cancelled":       {func(s *shelf) { s.inbox = []store.InboxItem{{ID: "cancel/r"}} }, pin.Cancelled, nil},
		"no answer":       {func(s *shelf) { s.leaseErr = errAway }, pin.Wait, errAway},
		"no lease":        {func(s *shelf) { s.lease = store.Lease{} }, pin.Wait, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newShelf(), orphan(t, "t")
			o.State.Waiting = &threads.Waiting{Revision: "6f1e", Since: storeNow.Add(-time.Minute), Until: storeNow}
			c.change(s)
			if got, err := keeper(t, s).Look(t.Context(), o, "6f1e", false); got != c.want || !errors.Is(err, c.err) ||
				len(s.commits) > 0 {
				t.Errorf("%v, %v, want %v, %v; there are %d commits", got, err, c.want, c.err, len(s.commits))
			}
		})
	}
}

// TestGraceIsOfOneLoss: a run that was taken over meanwhile and has lost its next owner, too,
// is found again.
func TestGraceIsOfOneLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		k, o := keeper(t, s), orphan(t, "t")
		for _, epoch := range []uint64{1, 2} {
			o.Head.Fence.Epoch = epoch
			if got, err := k.Look(t.Context(), o, "6f1e", false); got != pin.Wait || err != nil {
				t.Errorf("with epoch %d: %v, %v", epoch, got, err)
			}
			time.Sleep(time.Minute)
		}
		for i := range 10 {
			if got, err := k.Look(t.Context(), orphan(t, fmt.Sprint(i)), "6f1e", false); got != pin.Wait || err != nil {
				t.Errorf("thread %d: %v, %v", i, got, err)
			}
		}
	})
}
