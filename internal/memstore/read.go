package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// read finds the thread and lets f copy from it under the lock.
func (s *Store) read(ctx context.Context, key holdfast.ThreadKey, f func(t *thread) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.thread(key)
	if err != nil {
		return err
	}
	return f(t)
}

// Head implements [holdfast.Reader].
func (s *Store) Head(ctx context.Context, key holdfast.ThreadKey) (*holdfast.Head, error) {
	var h holdfast.Head
	err := s.read(ctx, key, func(t *thread) error {
		h = t.head
		h.State = bytes.Clone(h.State)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &h, nil
}

// Messages implements [holdfast.Reader].
func (s *Store) Messages(ctx context.Context, key holdfast.ThreadKey) ([]holdfast.StoredMessage, error) {
	var messages []holdfast.StoredMessage
	err := s.read(ctx, key, func(t *thread) error {
		messages = slices.Clone(t.messages)
		for i := range messages {
			messages[i].Data = bytes.Clone(messages[i].Data)
		}
		return nil
	})
	return messages, err
}

// Records implements [holdfast.Reader].
func (s *Store) Records(ctx context.Context, key holdfast.ThreadKey, after holdfast.Cursor, limit int) ([]holdfast.Record, error) {
	var records []holdfast.Record
	err := s.read(ctx, key, func(t *thread) error {
		if !t.holds(after) {
			return fmt.Errorf("thread %s, cursor %s: %w", key, after, holdfast.ErrCursor)
		}
		rest := t.records[max(after.Number, t.trimmed)-t.trimmed:]
		records = slices.Clone(rest[:min(len(rest), max(limit, 0))])
		for i := range records {
			records[i].Data = bytes.Clone(records[i].Data)
		}
		return nil
	})
	return records, err
}

func (t *thread) holds(c holdfast.Cursor) bool {
	if c == (holdfast.Cursor{}) {
		return true
	}
	return c.Number > t.trimmed && c.Number-t.trimmed <= uint64(len(t.records)) && t.records[c.Number-t.trimmed-1].Tag == c.Tag
}

// Value implements [holdfast.Reader].
func (s *Store) Value(ctx context.Context, key holdfast.ThreadKey, kind holdfast.Kind, id string) ([]byte, error) {
	var data []byte
	err := s.read(ctx, key, func(t *thread) error {
		v, ok := t.values[kind][id]
		if !ok {
			return fmt.Errorf("thread %s, %s %q: %w", key, kind, id, holdfast.ErrNotFound)
		}
		data = bytes.Clone(v)
		return nil
	})
	return data, err
}

// Values implements [holdfast.Reader].
func (s *Store) Values(ctx context.Context, key holdfast.ThreadKey, kind holdfast.Kind, before string, limit int) ([]holdfast.Value, error) {
	var values []holdfast.Value
	err := s.read(ctx, key, func(t *thread) error {
		for _, id := range t.newest(kind) {
			if before != "" && id >= before {
				continue
			}
			if limit > 0 && len(values) == limit {
				break
			}
			values = append(values, holdfast.Value{Kind: kind, ID: id, Data: bytes.Clone(t.values[kind][id])})
		}
		return nil
	})
	return values, err
}

// Inbox implements [holdfast.Reader].
func (s *Store) Inbox(ctx context.Context, key holdfast.ThreadKey) ([]holdfast.InboxItem, error) {
	var items []holdfast.InboxItem
	err := s.read(ctx, key, func(t *thread) error {
		items = slices.Clone(t.inbox)
		for i := range items {
			items[i].Data = bytes.Clone(items[i].Data)
		}
		return nil
	})
	return items, err
}

// Size implements [holdfast.Reader].
func (s *Store) Size(ctx context.Context, key holdfast.ThreadKey) (map[string]int64, error) {
	size := map[string]int64{}
	// Where values are framed, none is empty.
	add := func(what string, data []byte) { size[what] += 1 + int64(len(data)) }
	err := s.read(ctx, key, func(t *thread) error {
		for i := range t.records {
			add(holdfast.SizeRecords, t.records[i].Data)
		}
		for i := range t.messages {
			add(holdfast.SizeMessages, t.messages[i].Data)
		}
		for kind, values := range t.values {
			for _, data := range values {
				add(string(kind), data)
			}
		}
		return nil
	})
	return size, err
}

// Walk implements [holdfast.Directory], in the order of the keys.
func (s *Store) Walk(ctx context.Context, after string, limit int) (heads []holdfast.Head, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Collect(maps.Keys(s.threads))
	slices.SortFunc(keys, func(a, b holdfast.ThreadKey) int { return cmp.Compare(place(a), place(b)) })
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

// place is a key as a text that no other key has.
func place(key holdfast.ThreadKey) string { return fmt.Sprintf("%q/%q", key.Tenant, key.Thread) }

// Children implements [holdfast.Directory].
func (s *Store) Children(ctx context.Context, parent holdfast.ThreadKey, after string, limit int) ([]string, error) {
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

// Threads implements [holdfast.Directory].
func (s *Store) Threads(ctx context.Context, owner holdfast.Principal, before time.Time, limit int) ([]holdfast.Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var heads []holdfast.Head
	for key, t := range s.threads {
		active := before.IsZero() || t.head.UpdatedAt.Before(before)
		if key.Tenant == owner.Tenant && t.head.User == owner.User && active {
			h := t.head
			h.State = nil
			heads = append(heads, h)
		}
	}
	slices.SortFunc(heads, func(a, b holdfast.Head) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
	return heads[:min(len(heads), max(limit, 0))], nil
}

// Owned implements [holdfast.Directory].
func (s *Store) Owned(ctx context.Context) ([]holdfast.OwnedThread, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var owned []holdfast.OwnedThread
	for key, t := range s.threads {
		if t.head.Process != "" {
			owned = append(owned, holdfast.OwnedThread{Key: key, Process: t.head.Process})
		}
	}
	return owned, nil
}
