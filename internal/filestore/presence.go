package filestore

import (
	"context"
	"maps"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// Announce implements [store.Presence]. A server calls it every few seconds, so it is also
// when the store looks whether its folder is there.
func (s *Store) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_ = s.place.look() // it is said in the log, and commits are refused
	l := &s.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	if l.until == nil {
		l.until = map[string]time.Time{}
	}
	l.until[process] = now.Add(ttl)
	return nil
}

// Retire implements [store.Presence].
func (s *Store) Retire(ctx context.Context, process string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.leases.mu.Lock()
	delete(s.leases.until, process)
	s.leases.mu.Unlock()
	s.waiters.Departed(store.Departure{Process: process, Retired: true}, "")
	return nil
}

// HandOver implements [store.Presence]. Only this process can hear it.
func (s *Store) HandOver(ctx context.Context, process string, key store.ThreadKey) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.waiters.Departed(store.Departure{Process: process, Thread: key}, "")
	return nil
}

// OnDeparture implements [store.Presence].
func (s *Store) OnDeparture(process string, f func(store.Departure)) (stop func()) {
	return s.waiters.OnDeparture(process, f)
}

// Lease implements [store.Presence]. A process without a lease is gone.
func (s *Store) Lease(ctx context.Context, process string) (store.Lease, error) {
	if err := ctx.Err(); err != nil {
		return store.Lease{}, err
	}
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	until, known := s.leases.until[process]
	if left := time.Until(until); known && left > 0 {
		return store.Lease{Until: until, Left: left}, nil
	}
	return store.Lease{Until: until, Gone: true}, nil
}
