package filestore

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// PutHint implements [store.Hints].
func (s *Store) PutHint(ctx context.Context, name string, data []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.ValidateHint(name, data, ttl); err != nil {
		return err
	}
	h := &s.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]hint{}
	}
	h.all[name] = hint{data: data, until: time.Now().Add(ttl)}
	return nil
}

// Hints implements [store.Hints].
func (s *Store) Hints(ctx context.Context) ([]store.Hint, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := &s.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(h.all, func(_ string, one hint) bool { return !now.Before(one.until) })
	var all []store.Hint
	for name, one := range h.all {
		all = append(all, store.Hint{Name: name, Data: bytes.Clone(one.data), Left: one.until.Sub(now)})
	}
	return all, nil
}
