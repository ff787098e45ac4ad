package redisstore

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast/store"
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

// Lease implements [store.Presence]. A process that has retired has the score 0.
func (s *Store) Lease(ctx context.Context, process string) (store.Lease, error) {
	times, err := s.scripts.lease.Run(ctx, s.client, []string{s.keys.processes()}, process).Int64Slice()
	if err != nil {
		return store.Lease{}, failed("look for a process", err)
	}
	switch {
	case len(times) != 2:
		return store.Lease{}, nil
	case times[0] == 0:
		return store.Lease{Gone: true}, nil
	}
	until, now := time.UnixMicro(times[0]), time.UnixMicro(times[1])
	return store.Lease{Until: until, Left: until.Sub(now)}, nil
}
