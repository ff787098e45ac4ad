package boltstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// read runs f on a thread that exists, in a read transaction.
func (s *Store) read(ctx context.Context, key store.ThreadKey, f func(t *txn, thread uint64) error) error {
	return s.view(ctx, func(t *txn) error {
		thread, err := t.thread(key)
		if err != nil {
			return err
		}
		return f(t, thread)
	})
}

// Head implements [store.Reader].
func (s *Store) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	var head *store.Head
	err := s.read(ctx, key, func(t *txn, thread uint64) error {
		h, err := t.hot(thread)
		if err != nil {
			return err
		}
		head = &h.Head
		head.Key = key
		stateKey := sectionKey(thread, sectionState)
		if state := t.data.Get(stateKey); state != nil {
			head.State, err = t.decode(stateKey, state)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return head, nil
}

// Messages implements [store.Reader].
func (s *Store) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	var messages []store.Message
	err := s.read(ctx, key, func(t *txn, thread uint64) error {
		prefix := sectionKey(thread, sectionMessages)
		return ascend(t.data, prefix, prefix, func(k, v []byte) (bool, error) {
			r := reader{b: v}
			m := store.Message{ID: r.name(), Parent: r.name()}
			if r.err != nil {
				return false, r.err
			}
			var err error
			m.Data, err = t.decode(k, r.b)
			messages = append(messages, m)
			return true, err
		})
	})
	return messages, err
}

// Records implements [store.Reader].
func (s *Store) Records(ctx context.Context, key store.ThreadKey, after store.Cursor, limit int) ([]store.Record, error) {
	var records []store.Record
	err := s.read(ctx, key, func(t *txn, thread uint64) error {
		if !t.holds(thread, after) {
			return fmt.Errorf("thread %s, cursor %s: %w", key, after, store.ErrCursor)
		}
		from := numberedKey(thread, sectionRecords, after.Number+1)
		return ascend(t.data, sectionKey(thread, sectionRecords), from, func(k, v []byte) (bool, error) {
			if len(records) >= limit {
				return false, nil
			}
			r := reader{b: v}
			rec := store.Record{Cursor: store.Cursor{Number: binary.BigEndian.Uint64(k[len(k)-8:]), Tag: r.name()}}
			if r.err != nil {
				return false, r.err
			}
			var err error
			rec.Data, err = t.decode(k, r.b)
			records = append(records, rec)
			return true, err
		})
	})
	return records, err
}

func (t *txn) holds(thread uint64, c store.Cursor) bool {
	if c == (store.Cursor{}) {
		return true
	}
	v := t.data.Get(numberedKey(thread, sectionRecords, c.Number))
	r := reader{b: v}
	return v != nil && r.name() == c.Tag && r.err == nil
}

// Value implements [store.Reader].
func (s *Store) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	var data []byte
	err := s.read(ctx, key, func(t *txn, thread uint64) (err error) {
		k := valueKey(thread, kind, id)
		v := t.data.Get(k)
		if v == nil {
			return fmt.Errorf("thread %s, %s %q: %w", key, kind, id, store.ErrNotFound)
		}
		data, err = t.decode(k, v)
		return err
	})
	return data, err
}

// Values implements [store.Reader].
func (s *Store) Values(ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int) ([]store.Value, error) {
	var values []store.Value
	err := s.read(ctx, key, func(t *txn, thread uint64) error {
		prefix := kindPrefix(thread, kind)
		end := after(prefix)
		if before != "" {
			end = valueKey(thread, kind, before)
		}
		return descend(t.data, prefix, end, func(k, v []byte) (bool, error) {
			if limit > 0 && len(values) == limit {
				return false, nil
			}
			data, err := t.decode(k, v)
			values = append(values, store.Value{Kind: kind, ID: string(k[len(prefix):]), Data: data})
			return true, err
		})
	})
	return values, err
}

// Inbox implements [store.Reader].
func (s *Store) Inbox(ctx context.Context, key store.ThreadKey) ([]store.InboxItem, error) {
	var items []store.InboxItem
	err := s.read(ctx, key, func(t *txn, thread uint64) error {
		prefix := sectionKey(thread, sectionInbox)
		return ascend(t.data, prefix, prefix, func(k, v []byte) (bool, error) {
			r := reader{b: v}
			it := store.InboxItem{ID: r.name(), Number: binary.BigEndian.Uint64(k[len(prefix):])}
			if r.err != nil {
				return false, r.err
			}
			var err error
			it.Data, err = t.decode(k, r.b)
			items = append(items, it)
			return true, err
		})
	})
	return items, err
}

// Threads implements [store.Directory]. It reads the owner's threads minute
// by minute, newest first, and orders those of one minute by their heads.
func (s *Store) Threads(ctx context.Context, owner holdfast.Principal, before time.Time, limit int) ([]store.Head, error) {
	var heads []store.Head
	err := s.view(ctx, func(t *txn) error {
		prefix := activePrefix(owner)
		end := after(prefix)
		if !before.IsZero() {
			end = after(appendMinute(slices.Clip(prefix), minuteOf(before)))
		}
		sorted, minute := 0, uint64(0) // heads[sorted:] are of this minute
		err := descend(t.active, prefix, end, func(k, v []byte) (bool, error) {
			if m := binary.BigEndian.Uint64(k[len(prefix):]); m != minute {
				sortHeads(heads[sorted:])
				sorted, minute = len(heads), m
				if sorted >= limit {
					return false, nil
				}
			}
			h, err := t.hot(binary.BigEndian.Uint64(k[len(prefix)+8:]))
			if err == nil && (before.IsZero() || h.UpdatedAt.Before(before)) {
				h.Key = store.ThreadKey{Tenant: owner.Tenant, Thread: string(v)}
				heads = append(heads, h.Head)
			}
			return true, err
		})
		sortHeads(heads[sorted:])
		return err
	})
	return heads[:min(len(heads), max(limit, 0))], err
}

func sortHeads(heads []store.Head) {
	slices.SortFunc(heads, func(a, b store.Head) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
}

// Owned implements [store.Directory].
func (s *Store) Owned(ctx context.Context) ([]store.OwnedThread, error) {
	var owned []store.OwnedThread
	err := s.view(ctx, func(t *txn) error {
		return ascend(t.owned, nil, nil, func(_, v []byte) (bool, error) {
			r := reader{b: v}
			o := store.OwnedThread{Key: store.ThreadKey{Tenant: r.name(), Thread: r.name()}}
			o.Process = string(r.b)
			owned = append(owned, o)
			return true, r.err
		})
	})
	return owned, err
}
