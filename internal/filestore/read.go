package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// The Reader role. Every read sees one snapshot, of what is durable.

// read runs f on a thread that exists.
func (s *Store) read(ctx context.Context, key store.ThreadKey, f func(v view, thread uint64) error) error {
	return s.committer.view(ctx, func(v view) error {
		thread, err := v.existing(key)
		if err != nil {
			return err
		}
		return f(v, thread)
	})
}

// Head implements [store.Reader].
func (s *Store) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	var found *store.Head
	err := s.read(ctx, key, func(v view, thread uint64) error {
		var h *head
		err := folder.Guard(func() (err error) {
			h, err = v.head(thread)
			return err
		})
		if errors.Is(err, store.ErrUnreadable) {
			var lost error
			found, _, lost = v.indexed(key, thread)
			return cmp.Or(lost, err)
		}
		if err != nil {
			return err
		}
		found = &h.Head
		found.Key = key
		_, err = v.with(sectionKey(thread, sectionState), func(state []byte) (err error) {
			found.State, err = v.codec.Decode(nil, stateName, state)
			return err
		})
		return err
	})
	return found, err
}

// Messages implements [store.Reader].
func (s *Store) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	var messages []store.Message
	err := s.read(ctx, key, func(v view, thread uint64) error {
		prefix := sectionKey(thread, sectionMessages)
		return v.ascend(prefix, prefix, func(_, value []byte) (bool, error) {
			m, err := v.message(value)
			messages = append(messages, m)
			return err == nil, err
		})
	})
	return messages, err
}

// MessagesOf implements [store.Reader].
func (s *Store) MessagesOf(ctx context.Context, key store.ThreadKey, ids []string) ([]store.Message, error) {
	var messages []store.Message
	err := s.read(ctx, key, func(v view, thread uint64) error {
		for _, id := range ids {
			place, err := v.number(messageIDKey(thread, id))
			if err != nil {
				return err
			}
			there, err := v.with(placeKey(thread, sectionMessages, place), func(value []byte) error {
				m, err := v.message(value)
				messages = append(messages, m)
				return err
			})
			if err != nil {
				return err
			}
			if !there {
				return fmt.Errorf("thread %s, message %q: %w", key, id, store.ErrNotFound)
			}
		}
		return nil
	})
	return messages, err
}

// message decodes an entry of the messages.
func (v view) message(value []byte) (m store.Message, err error) {
	r := reader{b: value}
	m = store.Message{ID: r.name(), Parent: r.name()}
	if r.err != nil {
		return m, r.err
	}
	m.Data, err = v.codec.Decode(r.before(value), messageName, r.b)
	return m, err
}

// Records implements [store.Reader].
func (s *Store) Records(
	ctx context.Context, key store.ThreadKey, after store.Cursor, limit int,
) ([]store.Record, error) {
	var records []store.Record
	err := s.read(ctx, key, func(v view, thread uint64) error {
		switch held, err := v.holds(thread, after); {
		case err != nil:
			return err
		case !held || after.Number == math.MaxUint64:
			return fmt.Errorf("thread %s, cursor %s: %w", key, after, store.ErrCursor)
		}
		from := placeKey(thread, sectionRecords, after.Number+1)
		return v.ascend(sectionKey(thread, sectionRecords), from, func(k, value []byte) (bool, error) {
			if len(records) >= limit {
				return false, nil
			}
			r := reader{b: value}
			rec := store.Record{Cursor: store.Cursor{Number: placeOf(k), Tag: r.name()}}
			if r.err != nil {
				return false, r.err
			}
			var err error
			rec.Data, err = v.codec.Decode(r.before(value), recordName(rec.Number), r.b)
			records = append(records, rec)
			return true, err
		})
	})
	return records, err
}

// holds reports whether the log has the record that the cursor names.
func (v view) holds(thread uint64, c store.Cursor) (held bool, err error) {
	if c == (store.Cursor{}) {
		return true, nil
	}
	_, err = v.with(placeKey(thread, sectionRecords, c.Number), func(value []byte) error {
		r := reader{b: value}
		held = r.name() == c.Tag
		return r.err
	})
	return held, err
}

// Value implements [store.Reader].
func (s *Store) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	var data []byte
	err := s.read(ctx, key, func(v view, thread uint64) error {
		there, err := v.with(valueKey(thread, kind, id), func(value []byte) (err error) {
			data, err = v.codec.Decode(nil, valueName(kind, id), value)
			return err
		})
		if err == nil && !there {
			err = fmt.Errorf("thread %s, %s %q: %w", key, kind, id, store.ErrNotFound)
		}
		return err
	})
	return data, err
}

// ValuesOf implements [store.Reader].
func (s *Store) ValuesOf(
	ctx context.Context, key store.ThreadKey, kind store.Kind, ids []string,
) ([]store.Value, error) {
	var values []store.Value
	err := s.read(ctx, key, func(v view, thread uint64) error {
		for _, id := range ids {
			_, err := v.with(valueKey(thread, kind, id), func(value []byte) error {
				data, err := v.codec.Decode(nil, valueName(kind, id), value)
				values = append(values, store.Value{Kind: kind, ID: id, Data: data})
				return err
			})
			if err != nil {
				return err
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
	err := s.read(ctx, key, func(v view, thread uint64) error {
		prefix := kindPrefix(thread, kind)
		upTo := end(prefix)
		if before != "" {
			upTo = valueKey(thread, kind, before)
		}
		return v.descend(prefix, upTo, func(k, value []byte) (bool, error) {
			if limit > 0 && len(values) == limit {
				return false, nil
			}
			id := string(k[len(prefix):])
			data, err := v.codec.Decode(nil, valueName(kind, id), value)
			values = append(values, store.Value{Kind: kind, ID: id, Data: data})
			return true, err
		})
	})
	return values, err
}

// Inbox implements [store.Reader].
func (s *Store) Inbox(ctx context.Context, key store.ThreadKey) ([]store.InboxItem, error) {
	var items []store.InboxItem
	err := s.read(ctx, key, func(v view, thread uint64) error {
		prefix := sectionKey(thread, sectionInbox)
		return v.ascend(prefix, prefix, func(k, value []byte) (bool, error) {
			r := reader{b: value}
			it := store.InboxItem{ID: r.name(), Number: placeOf(k)}
			if r.err != nil {
				return false, r.err
			}
			var err error
			it.Data, err = v.codec.Decode(r.before(value), inboxName, r.b)
			items = append(items, it)
			return true, err
		})
	})
	return items, err
}

// Size implements [store.Reader].
func (s *Store) Size(ctx context.Context, key store.ThreadKey) (map[string]int64, error) {
	size := map[string]int64{}
	err := s.read(ctx, key, func(v view, thread uint64) error {
		prefix := threadPrefix(thread)
		return v.ascend(prefix, prefix, func(k, value []byte) (bool, error) {
			if what := kindOf(k[len(prefix):]); what != "" {
				size[what] += int64(len(value))
			}
			return true, nil
		})
	})
	return size, err
}

// kindOf says what Size calls an entry, by its key after the thread's number; "" is
// for what it does not count.
func kindOf(k []byte) string {
	switch k[0] {
	case sectionRecords:
		return store.SizeRecords
	case sectionMessages:
		return store.SizeMessages
	case sectionValues:
		r := reader{b: k[1:]}
		return r.name()
	}
	return ""
}
