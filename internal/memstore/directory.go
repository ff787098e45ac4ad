package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Threads implements [store.Directory].
func (s *Store) Threads(
	ctx context.Context, owner holdfast.Principal, before time.Time, limit int,
) ([]store.Head, error) {
	return s.recent(ctx, before, limit, func(h *store.Head) bool {
		return h.Key.Tenant == owner.Tenant && h.User == owner.User
	})
}

// recent returns the heads of which is reports true, last active first.
func (s *Store) recent(
	ctx context.Context, before time.Time, limit int, is func(*store.Head) bool,
) ([]store.Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var heads []store.Head
	for _, t := range s.threads {
		if active := before.IsZero() || t.head.UpdatedAt.Before(before); is(&t.head) && active {
			h := t.head
			h.State = nil
			heads = append(heads, h)
		}
	}
	slices.SortFunc(heads, func(a, b store.Head) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
	return heads[:min(len(heads), max(limit, 0))], nil
}

// Owned implements [store.Directory].
func (s *Store) Owned(ctx context.Context) ([]store.OwnedThread, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var owned []store.OwnedThread
	for key, t := range s.threads {
		if t.head.Process != "" {
			owned = append(owned, store.OwnedThread{Key: key, Process: t.head.Process})
		}
	}
	return owned, nil
}

// Walk implements [store.Directory], in the order of the keys.
func (s *Store) Walk(ctx context.Context, after string, limit int) (heads []store.Head, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Collect(maps.Keys(s.threads))
	slices.SortFunc(keys, func(a, b store.ThreadKey) int { return cmp.Compare(place(a), place(b)) })
	for _, key := range keys {
		if place(key) <= after {
			continue
		}
		if len(heads) >= max(limit, 1) {
			return heads, next, nil
		}
		h := s.threads[key].head
		h.State = nil
		heads, next = append(heads, h), place(key)
	}
	return heads, "", nil
}

// place returns the key as a text that is unique to it.
func place(key store.ThreadKey) string { return fmt.Sprintf("%q/%q", key.Tenant, key.Thread) }

// Children implements [store.Directory].
func (s *Store) Children(ctx context.Context, parent store.ThreadKey, after string, limit int) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for key, t := range s.threads {
		if key.Tenant == parent.Tenant && t.parent == parent.Thread && parent.Thread != "" && key.Thread > after {
			ids = append(ids, key.Thread)
		}
	}
	slices.Sort(ids)
	return ids[:min(len(ids), max(limit, 0))], nil
}
