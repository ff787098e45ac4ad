package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
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
		rest := t.records[after.Number:]
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
	return c.Number >= 1 && c.Number <= uint64(len(t.records)) && t.records[c.Number-1].Tag == c.Tag
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
