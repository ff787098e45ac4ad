package memstore

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// hint is what a process has told the others.
type hint struct {
	data  []byte
	until time.Time
}

// PutHint implements [store.Hints].
func (s *Store) PutHint(ctx context.Context, name string, data []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.ValidateHint(name, data, ttl); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hints[name] = hint{data: data, until: time.Now().Add(ttl)}
	return nil
}

// Hints implements [store.Hints].
func (s *Store) Hints(ctx context.Context) ([]store.Hint, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.hints, func(_ string, h hint) bool { return !now.Before(h.until) })
	var all []store.Hint
	for name, h := range s.hints {
		all = append(all, store.Hint{Name: name, Data: bytes.Clone(h.data), Left: h.until.Sub(now)})
	}
	return all, nil
}
