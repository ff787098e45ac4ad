package memstore

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// Announce implements [store.Presence].
func (s *Store) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[process] = store.Lease{Until: time.Now().Add(ttl)}
	return nil
}

// Retire implements [store.Presence].
func (s *Store) Retire(ctx context.Context, process string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	_, known := s.leases[process]
	if known {
		s.leases[process] = store.Lease{Gone: true}
	}
	s.mu.Unlock()
	if known {
		s.waiters.Departed(store.Departure{Process: process, Retired: true}, "")
	}
	return nil
}

// HandOver implements [store.Presence].
func (s *Store) HandOver(ctx context.Context, process string, key store.ThreadKey) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.waiters.Departed(store.Departure{Process: process, Thread: key}, "")
	return nil
}

// OnDeparture implements [store.Presence].
func (s *Store) OnDeparture(process string, f func(store.Departure)) func() {
	return s.waiters.OnDeparture(process, f)
}

// Lease implements [store.Presence].
func (s *Store) Lease(ctx context.Context, process string) (store.Lease, error) {
	if err := ctx.Err(); err != nil {
		return store.Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease(process), nil
}

// lease returns the lease of a process. The caller holds the lock.
func (s *Store) lease(process string) store.Lease {
	l := s.leases[process]
	if !l.Until.IsZero() {
		l.Left = time.Until(l.Until)
	}
	return l
}
