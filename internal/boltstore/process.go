package boltstore

import (
	"context"
	"maps"
	"sync"
	"time"
)

// presence keeps leases in memory. That is enough: the file's lock is
// exclusive, so any process that was not announced to this one is gone.
type presence struct {
	mu    sync.Mutex
	alive map[string]time.Time // until when, by process
}

// Announce implements [store.Presence].
func (p *presence) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.alive, func(_ string, until time.Time) bool { return !now.Before(until) })
	if p.alive == nil {
		p.alive = map[string]time.Time{}
	}
	p.alive[process] = now.Add(ttl)
	return nil
}

// Retire implements [store.Presence].
func (p *presence) Retire(ctx context.Context, process string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, process)
	return nil
}

// Alive implements [store.Presence].
func (p *presence) Alive(ctx context.Context, process string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.alive[process]), nil
}
