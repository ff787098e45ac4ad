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
	defer s.mu.Unlock()
	if _, known := s.leases[process]; known {
		s.leases[process] = store.Lease{Gone: true}
	}
	return nil
}

// Lease implements [store.Presence].
func (s *Store) Lease(ctx context.Context, process string) (store.Lease, error) {
	if err := ctx.Err(); err != nil {
		return store.Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[process]
	if !l.Until.IsZero() {
		l.Left = time.Until(l.Until)
	}
	return l, nil
}
