package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/wake"
	"github.com/holdfast-agents/holdfast/store"

	bolt "go.etcd.io/bbolt"
)

// Delete implements [store.Committer].
func (s *Store) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	return s.submit(ctx, &removal{key: key, at: at})
}

// removal is the deletion of a thread on its way.
type removal struct {
	key    store.ThreadKey
	at     store.Position
	thread uint64
	old    *hot
}

func (r *removal) bytes() int { return 0 }

// tell wakes those who watch the thread: it is not there any more.
func (r *removal) tell(l *wake.List) { l.Committed(r.key) }

func (r *removal) check(t *txn) error {
	var known bool
	if r.thread, known = t.find(r.key); !known {
		return errAlready
	}
	var err error
	if r.old, err = t.hot(r.thread); err != nil {
		return err
	}
	if r.old.Position() != r.at {
		return &store.ConflictError{Key: r.key, Expected: r.at, Actual: r.old.Position()}
	}
	return nil
}

func (r *removal) write(t *txn) error {
	owner := holdfast.Principal{Tenant: r.key.Tenant, User: r.old.User}
	if parent := t.data.Get(sectionKey(r.thread, sectionParent)); parent != nil {
		if err := t.children.Delete(childKey(r.key.Tenant, string(parent), r.key.Thread)); err != nil {
			return err
		}
	}
	number := numberKey(r.thread)
	return errors.Join(
		dropAll(t.chunks, number), dropAll(t.data, number),
		t.owned.Delete(number),
		t.active.Delete(activeKey(owner, minuteOf(r.old.UpdatedAt), r.thread)),
		t.names.Delete(nameKey(r.key)),
	)
}

// dropAll deletes every key with the prefix.
func dropAll(b *bolt.Bucket, prefix []byte) error {
	var doomed [][]byte
	err := ascend(b, prefix, prefix, func(k, _ []byte) (bool, error) {
		doomed = append(doomed, bytes.Clone(k))
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, k := range doomed {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// Size implements [store.Reader].
func (s *Store) Size(ctx context.Context, key store.ThreadKey) (map[string]int64, error) {
	size := map[string]int64{}
	err := s.read(ctx, key, func(t *txn, thread uint64) error {
		number := numberKey(thread)
		count := func(k, v []byte) (bool, error) {
			if what := kindOf(k[len(number):]); what != "" && len(v) > 0 {
				size[what] += int64(len(v))
			}
			return true, nil
		}
		return errors.Join(ascend(t.data, number, number, count), ascend(t.chunks, number, number, count))
	})
	return size, err
}

// kindOf says what Size calls an entry, by its key after the thread's number; ""
// is for what it does not count.
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

// Walk implements [store.Directory], in the order of the names.
func (s *Store) Walk(ctx context.Context, after string, limit int) (heads []store.Head, next string, err error) {
	err = s.view(ctx, func(t *txn) error {
		return ascend(t.names, nil, append([]byte(after), 0), func(k, v []byte) (bool, error) {
			if len(heads) >= max(limit, 1) {
				next = after
				return false, nil
			}
			h, err := t.hot(binary.BigEndian.Uint64(v))
			if err != nil {
				return false, err
			}
			r := reader{b: k}
			h.Key.Tenant = r.name()
			h.Key.Thread = string(r.b)
			heads, after = append(heads, h.Head), string(k)
			return true, r.err
		})
	})
	return heads, next, err
}

// Children implements [store.Directory].
func (s *Store) Children(ctx context.Context, parent store.ThreadKey, after string, limit int) ([]string, error) {
	var ids []string
	err := s.view(ctx, func(t *txn) error {
		prefix := childPrefix(parent)
		from := append(append(prefix[:len(prefix):len(prefix)], after...), 0)
		if after == "" {
			from = prefix
		}
		return ascend(t.children, prefix, from, func(k, _ []byte) (bool, error) {
			if len(ids) >= limit {
				return false, nil
			}
			ids = append(ids, string(k[len(prefix):]))
			return true, nil
		})
	})
	return ids, err
}
