package memstore

import (
	"context"
	"time"
)

// Announce implements [store.Presence].
func (s *Store) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive[process] = time.Now().Add(ttl)
	return nil
}

// Retire implements [store.Presence].
func (s *Store) Retire(ctx context.Context, process string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.alive, process)
	return nil
}

// Alive implements [store.Presence].
func (s *Store) Alive(ctx context.Context, process string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.alive[process]), nil
}
