package boltstore

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// presence keeps leases in memory. That is enough: the file's lock is
// exclusive, so any process that was not announced to this one is gone.
type presence struct {
	mu    sync.Mutex
	alive map[string]time.Time // until when, by process
}

// Announce implements [holdfast.Presence].
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

// Retire implements [holdfast.Presence].
func (p *presence) Retire(ctx context.Context, process string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, process)
	return nil
}

// Alive implements [holdfast.Presence].
func (p *presence) Alive(ctx context.Context, process string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.alive[process]), nil
}

// watchers wakes those who wait in this process; by the exclusive lock there
// is no other.
type watchers struct {
	mu      sync.Mutex
	waiting map[watched]map[chan struct{}]bool
}

// watched is what somebody waits for.
type watched struct {
	key   holdfast.ThreadKey
	topic holdfast.Topic
}

// Watch implements [holdfast.Notifier]. The channel holds one wake-up, so that
// none is lost while its reader is busy.
func (w *watchers) Watch(key holdfast.ThreadKey, topic holdfast.Topic) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := watched{key, topic}
	ch := make(chan struct{}, 1)
	if w.waiting == nil {
		w.waiting = map[watched]map[chan struct{}]bool{}
	}
	if w.waiting[k] == nil {
		w.waiting[k] = map[chan struct{}]bool{}
	}
	w.waiting[k][ch] = true
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting[k], ch)
		if len(w.waiting[k]) == 0 {
			delete(w.waiting, k)
		}
	}
}

func (w *watchers) wake(k watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.waiting[k] {
		select {
		case ch <- struct{}{}:
		default: // a wake-up is waiting there already
		}
	}
}
