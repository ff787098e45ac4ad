package memstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast/store"
)

// The Reader role. The caller gets a copy, because the result belongs to it.

// read finds the thread and lets f copy from it under the lock.
func (s *Store) read(ctx context.Context, key store.ThreadKey, f func(t *thread) error) error {
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

// Head implements [store.Reader].
func (s *Store) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	var h store.Head
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

// Messages implements [store.Reader].
func (s *Store) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	var messages []store.Message
	err := s.read(ctx, key, func(t *thread) error {
		messages = slices.Clone(t.messages)
		for i := range messages {
			messages[i].Data = bytes.Clone(messages[i].Data)
		}
		return nil
	})
	return messages, err
}

// MessagesOf implements [store.Reader].
func (s *Store) MessagesOf(ctx context.Context, key store.ThreadKey, ids []string) ([]store.Message, error) {
	var messages []store.Message
	err := s.read(ctx, key, func(t *thread) error {
		for _, id := range ids {
			at := slices.IndexFunc(t.messages, func(m store.Message) bool { return m.ID == id })
			if at < 0 {
				return fmt.Errorf("thread %s, message %q: %w", key, id, store.ErrNotFound)
			}
			m := t.messages[at]
			m.Data = bytes.Clone(m.Data)
			messages = append(messages, m)
		}
		return nil
	})
	return messages, err
}

// Records implements [store.Reader].
func (s *Store) Records(
	ctx context.Context, key store.ThreadKey, after store.Cursor, limit int,
) ([]store.Record, error) {
	var records []store.Record
	err := s.read(ctx, key, func(t *thread) error {
		if !t.holds(after) {
			return fmt.Errorf("thread %s, cursor %s: %w", key, after, store.ErrCursor)
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
func (t *thread) holds(c store.Cursor) bool {
	if c == (store.Cursor{}) {
		return true
	}
	return c.Number > t.trimmed && c.Number-t.trimmed <= uint64(len(t.records)) &&
		t.records[c.Number-t.trimmed-1].Tag == c.Tag
}

// Value implements [store.Reader].
func (s *Store) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	var data []byte
	err := s.read(ctx, key, func(t *thread) error {
		v, ok := t.values[kind][id]
		if !ok {
			return fmt.Errorf("thread %s, %s %q: %w", key, kind, id, store.ErrNotFound)
		}
		data = bytes.Clone(v)
		return nil
	})
	return data, err
}

// ValuesOf implements [store.Reader].
func (s *Store) ValuesOf(
	ctx context.Context, key store.ThreadKey, kind store.Kind, ids []string,
) ([]store.Value, error) {
	var values []store.Value
	err := s.read(ctx, key, func(t *thread) error {
		for _, id := range ids {
			if v, there := t.values[kind][id]; there {
				values = append(values, store.Value{Kind: kind, ID: id, Data: bytes.Clone(v)})
			}
		}
		return nil
	})
	return values, err
}

// Values implements [store.Reader].
func (s *Store) Values(
	ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int,
) ([]store.Value, error) {
	var values []store.Value
	err := s.read(ctx, key, func(t *thread) error {
		for _, id := range t.newest(kind) {
			if before != "" && id >= before {
				continue
			}
			if limit > 0 && len(values) == limit {
				break
			}
			values = append(values, store.Value{Kind: kind, ID: id, Data: bytes.Clone(t.values[kind][id])})
		}
		return nil
	})
	return values, err
}

// Inbox implements [store.Reader].
func (s *Store) Inbox(ctx context.Context, key store.ThreadKey) ([]store.InboxItem, error) {
	var items []store.InboxItem
	err := s.read(ctx, key, func(t *thread) error {
		items = slices.Clone(t.inbox)
		for i := range items {
			items[i].Data = bytes.Clone(items[i].Data)
		}
		return nil
	})
	return items, err
}

// Size implements [store.Reader].
func (s *Store) Size(ctx context.Context, key store.ThreadKey) (map[string]int64, error) {
	size := map[string]int64{}
	// Each value counts one byte more, as in stores that put a codec id before it.
	add := func(what string, data []byte) { size[what] += 1 + int64(len(data)) }
	err := s.read(ctx, key, func(t *thread) error {
		for i := range t.records {
			add(store.SizeRecords, t.records[i].Data)
		}
		for i := range t.messages {
			add(store.SizeMessages, t.messages[i].Data)
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
