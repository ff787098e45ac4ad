package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/store"
)

// view is the store at one moment: a snapshot, or a batch that is being put
// together on top of one.
type view struct {
	pebble.Reader
	codec  *frame.Codec
	damage *damage
}

// noted notes damage of what all threads share.
func (v view) noted(key []byte, err error) error {
	if err != nil && key[0] != spaceThreads && errors.Is(folder.Unreadable(err), store.ErrUnreadable) {
		v.damage.share(err)
	}
	return err
}

// with calls f with the value under the key, which is valid only during the call,
// and reports whether there is one.
func (v view) with(key []byte, f func(value []byte) error) (bool, error) {
	value, closer, err := v.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, v.noted(key, err)
	}
	return true, v.noted(key, errors.Join(f(value), closer.Close()))
}

// has reports whether there is a value under the key.
func (v view) has(key []byte) (bool, error) {
	return v.with(key, func([]byte) error { return nil })
}

// number reads a number; 0 if there is none.
func (v view) number(key []byte) (n uint64, err error) {
	_, err = v.with(key, func(value []byte) error {
		if len(value) != 8 {
			return folder.ErrDamaged
		}
		n = binary.BigEndian.Uint64(value)
		return nil
	})
	return n, err
}

// find returns the number of a thread, or 0 if there is none.
func (v view) find(key store.ThreadKey) (uint64, error) { return v.number(nameKey(key)) }

// existing is find with an error that wraps [store.ErrNotFound].
func (v view) existing(key store.ThreadKey) (uint64, error) {
	n, err := v.find(key)
	if err == nil && n == 0 {
		err = notFound(key)
	}
	return n, err
}

func notFound(key store.ThreadKey) error {
	return fmt.Errorf("thread %s: %w", key, store.ErrNotFound)
}

func (v view) head(thread uint64) (h *head, err error) {
	there, err := v.with(sectionKey(thread, sectionHead), func(value []byte) error {
		h, err = decodeHead(value)
		return err
	})
	if err == nil && !there {
		err = folder.ErrDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("the head of thread number %d: %w", thread, err)
	}
	return h, nil
}

// ascend calls f with the entries whose keys have the prefix, from the key from on,
// in order, until f returns false. They are valid only during the call.
func (v view) ascend(prefix, from []byte, f func(key, value []byte) (bool, error)) error {
	it, err := v.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: end(prefix)})
	if err != nil {
		return v.noted(prefix, err)
	}
	return v.noted(prefix, walk(it, it.First, it.Next, f))
}

// descend is ascend backwards, over the keys before the key before.
func (v view) descend(prefix, before []byte, f func(key, value []byte) (bool, error)) error {
	it, err := v.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: before})
	if err != nil {
		return v.noted(prefix, err)
	}
	return v.noted(prefix, walk(it, it.Last, it.Prev, f))
}

func walk(it *pebble.Iterator, first, next func() bool, f func(key, value []byte) (bool, error)) error {
	err := func() error {
		for ok := first(); ok; ok = next() {
			value, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			if more, err := f(it.Key(), value); err != nil || !more {
				return err
			}
		}
		return it.Error()
	}()
	if closing := it.Close(); err == nil {
		err = closing // which is the error of the iterator, if it has one
	}
	return err
}
