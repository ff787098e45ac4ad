package filestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// The Directory role: threads by their users, their owners, their parents, and all of them.
// Damage does not end a list, and a head that is damaged is in it.

// Threads implements [store.Directory].
func (s *Store) Threads(
	ctx context.Context, owner holdfast.Principal, before time.Time, limit int,
) ([]store.Head, error) {
	return s.recent(ctx, activePrefix(owner), before, limit, func(value []byte) (store.ThreadKey, string, error) {
		return store.ThreadKey{Tenant: owner.Tenant, Thread: string(value)}, owner.User, nil
	})
}

// recent reads a list minute by minute, newest first, and orders the threads of one minute by
// their heads. named says which thread, of which user, a value of the list names. Where the list
// itself is damaged, it is good as far as it goes, and the error says so.
func (s *Store) recent(
	ctx context.Context, prefix []byte, before time.Time, limit int,
	named func(value []byte) (key store.ThreadKey, user string, err error),
) ([]store.Head, error) {
	var heads []store.Head
	err := s.committer.view(ctx, func(v view) error {
		from := prefix
		if !before.IsZero() {
			from = appendMinute(slices.Clip(prefix), minuteOf(before))
		}
		sorted, minute := 0, uint64(0) // heads[sorted:] are of this minute
		damage, err := v.ascendPast(prefix, from, func(k, value []byte) (bool, error) {
			if m := binary.BigEndian.Uint64(k[len(prefix):]); m != minute {
				sortHeads(heads[sorted:])
				sorted, minute = len(heads), m
				if sorted >= limit {
					return false, nil
				}
			}
			key, user, err := named(value)
			if err != nil {
				return true, err
			}
			h, err := v.headOf(key, placeOf(k))
			if h.Unreadable != nil {
				h.User, h.UpdatedAt = user, timeOf(minute)
			}
			if err == nil && (before.IsZero() || h.UpdatedAt.Before(before)) {
				heads = append(heads, h)
			}
			return true, err
		})
		sortHeads(heads[sorted:])
		return cmp.Or(err, damage)
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
	err := s.committer.view(ctx, func(v view) error {
		prefix := []byte{spaceOwned}
		_, err := v.ascendPast(prefix, prefix, func(_, value []byte) (bool, error) {
			r := reader{b: value}
			o := store.OwnedThread{Key: store.ThreadKey{Tenant: r.name(), Thread: r.name()}}
			o.Process = string(r.b)
			if r.err == nil {
				owned = append(owned, o)
			}
			return true, r.err
		})
		return err
	})
	return owned, err
}

// Walk implements [store.Directory], in the order of the names. In a store that is only read,
// because somebody looks for damage, it reads the other lists in the end.
func (s *Store) Walk(ctx context.Context, after string, limit int) (heads []store.Head, next string, err error) {
	var damage error
	err = s.committer.view(ctx, func(v view) (err error) {
		prefix := []byte{spaceNames}
		from := prefix
		if after != "" {
			from = append(append([]byte{spaceNames}, after...), 0)
		}
		damage, err = v.ascendPast(prefix, from, func(k, value []byte) (bool, error) {
			if len(heads) >= max(limit, 1) {
				next = after
				return false, nil
			}
			name := k[len(prefix):]
			r := reader{b: name}
			key := store.ThreadKey{Tenant: r.name(), Thread: string(r.b)}
			if r.err != nil {
				return true, r.err
			}
			h := store.Head{Key: key, Unreadable: folder.ErrDamaged}
			var err error
			if len(value) == 8 {
				h, err = v.headOf(key, binary.BigEndian.Uint64(value))
			}
			heads, after = append(heads, h), string(name)
			return true, err
		})
		return err
	})
	if damage == nil && next == "" && s.lost != nil {
		damage = s.lost.err
	}
	if err == nil && damage == nil && next == "" && s.readOnly {
		err = s.committer.view(ctx, func(v view) (err error) {
			damage, err = v.lists()
			return err
		})
	}
	return heads, next, cmp.Or(err, damage)
}

// lists reads what all threads share besides their names, and returns what is damaged of it.
func (v view) lists() (damage, err error) {
	for _, space := range []byte{spaceMeta, spaceOwned, spaceActive, spaceChildren, spaceLedger, spaceLists,
		spaceTenants} {
		prefix := []byte{space}
		damage, err = v.ascendPast(prefix, prefix, func(_, _ []byte) (bool, error) { return true, nil })
		if damage != nil || err != nil {
			return damage, err
		}
	}
	return nil, nil
}

// headOf reads the head of the thread with the number. If it is damaged, the head has
// only the key, and why.
func (v view) headOf(key store.ThreadKey, number uint64) (store.Head, error) {
	var h *head
	err := folder.Guard(func() (err error) {
		h, err = v.head(number)
		return err
	})
	switch {
	case errors.Is(err, store.ErrUnreadable):
		return store.Head{Key: key, Unreadable: err}, nil
	case err != nil:
		return store.Head{}, err
	}
	h.Key = key
	return h.Head, nil
}

// indexed returns what the index of threads knows of one whose head cannot be read: whose
// it is. It looks at all of the tenant's threads. It returns nil for one that is not there.
func (v view) indexed(key store.ThreadKey, number uint64) (known *store.Head, entry []byte, err error) {
	prefix := appendName([]byte{spaceActive}, key.Tenant)
	_, err = v.ascendPast(prefix, prefix, func(k, _ []byte) (bool, error) {
		if placeOf(k) != number {
			return true, nil
		}
		r := reader{b: k[len(prefix):]}
		known = &store.Head{Key: key, User: r.name()}
		entry = bytes.Clone(k)
		return false, r.err
	})
	return known, entry, err
}

// Children implements [store.Directory].
func (s *Store) Children(ctx context.Context, parent store.ThreadKey, after string, limit int) ([]string, error) {
	var ids []string
	err := s.committer.view(ctx, func(v view) error {
		prefix := childPrefix(parent)
		from := prefix
		if after != "" {
			from = append(append(slices.Clip(prefix), after...), 0)
		}
		damage, err := v.ascendPast(prefix, from, func(k, _ []byte) (bool, error) {
			if len(ids) >= limit {
				return false, nil
			}
			ids = append(ids, string(k[len(prefix):]))
			return true, nil
		})
		return cmp.Or(err, damage)
	})
	return ids, err
}
