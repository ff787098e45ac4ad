package process

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// Store is a store as one process sees it. Once it is dead, nothing that the process writes
// gets there.
type Store struct {
	store.Store
	Dead atomic.Bool // set by the test
	// Killed means that its death is known at once: a run takes it for the loss of its thread, so
	// that it ends instead of trying again, and the next process need not wait for the lease.
	Killed bool

	begun, done atomic.Int64 // commits
}

// ErrUnreachable is the error of a dead store.
var ErrUnreachable = fmt.Errorf("unreachable: %w", net.ErrClosed)

// errKilled is the error of a store whose process is known to be dead.
var errKilled = fmt.Errorf("the process is dead: %w", store.ErrFenced)

// reach does what the process wants of the store, if it is alive.
func (s *Store) reach(do func() error) error {
	switch {
	case !s.Dead.Load():
		return do()
	case s.Killed:
		return errKilled
	}
	return ErrUnreachable
}

// lull is how long a run must commit nothing before it can be assumed to have passed
// everything to the store: longer than a run holds anything back to batch it.
const lull = 50 * time.Millisecond

// rest returns when there is a lull, or after a second, because a run may never
// pause.
func (s *Store) rest() {
	for range time.Second / lull {
		before := s.begun.Load()
		wait.Pass(lull)
		if s.begun.Load() == before && s.done.Load() == before {
			return
		}
	}
}

// Commit implements [store.Committer] until the store is dead.
func (s *Store) Commit(ctx context.Context, c *store.Commit) error {
	return s.reach(func() error {
		s.begun.Add(1)
		defer s.done.Add(1)
		return s.Store.Commit(ctx, c)
	})
}

// Post implements [store.Inbox] until the store is dead.
func (s *Store) Post(ctx context.Context, key store.ThreadKey, item store.InboxItem) error {
	return s.reach(func() error { return s.Store.Post(ctx, key, item) })
}

// Delete implements [store.Committer] until the store is dead.
func (s *Store) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	return s.reach(func() error { return s.Store.Delete(ctx, key, at) })
}

// Announce implements [store.Presence] until the store is dead.
func (s *Store) Announce(ctx context.Context, process string, ttl time.Duration) error {
	return s.reach(func() error { return s.Store.Announce(ctx, process, ttl) })
}

// Retire implements [store.Presence]. A process that was killed has nobody left to do it.
func (s *Store) Retire(ctx context.Context, process string) error {
	if s.Killed {
		return s.Store.Retire(ctx, process)
	}
	return s.reach(func() error { return s.Store.Retire(ctx, process) })
}

// HandOver implements [store.Presence] until the store is dead.
func (s *Store) HandOver(ctx context.Context, process string, key store.ThreadKey) error {
	return s.reach(func() error { return s.Store.HandOver(ctx, process, key) })
}

// Reserve implements [store.Ledger] until the store is dead.
func (s *Store) Reserve(ctx context.Context, r *store.Reservation) error {
	return s.reach(func() error { return s.Store.Reserve(ctx, r) })
}

// Settle implements [store.Ledger] until the store is dead.
func (s *Store) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	return s.reach(func() error { return s.Store.Settle(ctx, tenant, id, actual) })
}

// AgreeFormat implements [store.FormatKeeper] until the store is dead. If the store keeps no
// format, it is what the process reads.
func (s *Store) AgreeFormat(ctx context.Context, process string, terms store.FormatTerms) (store.Formats, error) {
	agreed := store.Formats{Write: terms.Reads}
	err := s.reach(func() (err error) {
		if keeper, can := s.Store.(store.FormatKeeper); can {
			agreed, err = keeper.AgreeFormat(ctx, process, terms)
		}
		return err
	})
	return agreed, err
}

// Formats implements [store.FormatKeeper].
func (s *Store) Formats(ctx context.Context) (store.Formats, error) {
	if keeper, can := s.Store.(store.FormatKeeper); can {
		return keeper.Formats(ctx)
	}
	return store.Formats{}, nil
}

// Describe implements [store.Roster] until the store is dead.
func (s *Store) Describe(ctx context.Context, process string, about []byte) error {
	return s.reach(func() error {
		if roster, can := s.Store.(store.Roster); can {
			return roster.Describe(ctx, process, about)
		}
		return nil
	})
}

// Described implements [store.Roster].
func (s *Store) Described(ctx context.Context) (map[string][]byte, error) {
	if roster, can := s.Store.(store.Roster); can {
		return roster.Described(ctx)
	}
	return nil, nil
}

// Close does nothing: the next process uses the store.
func (s *Store) Close() error { return nil }
