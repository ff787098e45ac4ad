package redisstore

import (
	"context"
	"time"
)

// Announce implements [store.Presence].
func (s *Store) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if _, err := s.runScript(ctx, s.scripts.announce, []string{s.keys.processes()}, process, ttl.Microseconds()); err != nil {
		return failed("announce the process", err)
	}
	return nil
}

// Retire implements [store.Presence].
func (s *Store) Retire(ctx context.Context, process string) error {
	if _, err := s.runScript(ctx, s.scripts.retire, []string{s.keys.processes()}, process); err != nil {
		return failed("retire the process", err)
	}
	return nil
}

// Alive implements [store.Presence].
func (s *Store) Alive(ctx context.Context, process string) (bool, error) {
	n, err := s.runScript(ctx, s.scripts.alive, []string{s.keys.processes()}, process)
	if err != nil {
		return false, failed("look for a process", err)
	}
	return n == 1, nil
}
