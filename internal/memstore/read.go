package memstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

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

// holds reports whether the log has the record that the cursor names; the zero
// cursor is before all of them.
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
	// Each value counts one byte more, as in stores that put a codec id before it.
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
