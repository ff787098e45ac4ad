package memstore

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Announce implements [holdfast.Presence].
func (s *Store) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive[process] = time.Now().Add(ttl)
	return nil
}

// Retire implements [holdfast.Presence].
func (s *Store) Retire(ctx context.Context, process string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.alive, process)
	return nil
}

// Alive implements [holdfast.Presence].
func (s *Store) Alive(ctx context.Context, process string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.alive[process]), nil
}

// watched is what somebody waits for.
type watched struct {
	key   holdfast.ThreadKey
	topic holdfast.Topic
}

// Watch implements [holdfast.Notifier]. The channel holds one wake-up, so that
// none is lost while its reader is busy.
func (s *Store) Watch(key holdfast.ThreadKey, topic holdfast.Topic) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := watched{key, topic}
	ch := make(chan struct{}, 1)
	if s.watchers[w] == nil {
		s.watchers[w] = map[chan struct{}]bool{}
	}
	s.watchers[w][ch] = true
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers[w], ch)
		if len(s.watchers[w]) == 0 {
			delete(s.watchers, w)
		}
	}
}

// wake wakes the topic's watchers; the caller holds the lock.
func (s *Store) wake(key holdfast.ThreadKey, topic holdfast.Topic) {
	for ch := range s.watchers[watched{key, topic}] {
		select {
		case ch <- struct{}{}:
		default: // a wake-up is waiting there already
		}
	}
}
