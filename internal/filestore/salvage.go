package filestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/store"
)

// Saving what is whole of a damaged store. Threads are copied key by key and under their
// numbers, so cursors, owners and fences stay what they are. A thread of which a part cannot
// be read is not copied: half of a conversation would pass for a whole one.

// Salvage copies the threads that are whole from the store in one folder, in which nothing
// is changed, to a new one. It returns how many there are, and what could not be copied. The
// error wraps [store.ErrStoreLocked] if a server has the store open, and [io/fs.ErrExist] if
// the other folder is there.
func Salvage(ctx context.Context, from, to string) (threads int, lost []folder.Loss, err error) {
	if err := checkNew(to); err != nil {
		return 0, nil, err
	}
	if _, err := os.Stat(from); err != nil {
		return 0, nil, folder.SalvageFailed(from, err)
	}
	lock, err := lockFor(from, false, time.Millisecond)
	if err != nil {
		return 0, nil, folder.SalvageFailed(from, err)
	}
	r, err := folder.NewRescue(from)
	if err != nil {
		return 0, nil, folder.SalvageFailed(from, errors.Join(err, lock.Close()))
	}
	codec, err := frame.New()
	if err != nil {
		return 0, nil, errors.Join(err, lock.Close())
	}
	opts := Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)}
	source, err := begun(r, from, codec, lock, nil, opts)
	if err != nil {
		return 0, r.Lost, folder.SalvageFailed(from, err)
	}
	threads, err = salvage(ctx, source, to, r)
	for _, file := range source.damage.list() {
		r.Lose("table", file, "it is damaged in a part: what is there cannot be read")
	}
	return threads, r.Lost, errors.Join(err, source.Close())
}

// salvage copies what is whole of a store that is open.
func salvage(ctx context.Context, source *Store, to string, r *folder.Rescue) (threads int, err error) {
	target, err := Open(to, Options{})
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, target.Close())
		if err != nil {
			err = errors.Join(err, os.RemoveAll(to))
		}
	}()
	c := &copying{rescue: r, db: target.committer.writing.db}
	err = source.committer.view(ctx, func(v view) error {
		c.view = v
		return c.all(ctx)
	})
	return c.threads, err
}

// copying copies from a view to a store.
type copying struct {
	rescue  *folder.Rescue
	view    view
	db      *pebble.DB
	batch   *pebble.Batch
	threads int
	last    uint64 // the largest number of a thread
	number  uint64 // and of an account
}

// all copies everything.
func (c *copying) all(ctx context.Context) error {
	c.batch = c.db.NewBatch()
	damage, err := c.view.ascendPast([]byte{spaceNames}, []byte{spaceNames}, func(k, value []byte) (bool, error) {
		r := reader{b: k[1:]}
		key := store.ThreadKey{Tenant: r.name(), Thread: string(r.b)}
		if r.err != nil || len(value) != 8 {
			return true, folder.ErrDamaged
		}
		if err := c.thread(key, binary.BigEndian.Uint64(value)); err != nil {
			return false, err
		}
		return true, ctx.Err()
	})
	if damage != nil {
		c.rescue.Lose("list", "threads", "some names cannot be read, and their threads are lost: %s",
			folder.FirstLine(damage))
	}
	if err == nil {
		err = c.ledger()
	}
	if err == nil {
		err = c.counters()
	}
	return cmp.Or(err, c.flush())
}

// thread copies a thread if it is whole.
func (c *copying) thread(key store.ThreadKey, number uint64) error {
	c.last = max(c.last, number)
	one := c.db.NewBatch()
	defer one.Close()
	h, err := c.content(one, number)
	if errors.Is(err, store.ErrUnreadable) {
		c.rescue.Lose("thread", key.String(), "%s", folder.FirstLine(err))
		return nil
	}
	if err == nil {
		err = c.index(one, key, number, h)
	}
	if err == nil {
		err = c.batch.Apply(one, nil)
	}
	if err != nil {
		return err
	}
	c.threads++
	if c.batch.Len() < maxBatchBytes {
		return nil
	}
	err = c.flush()
	c.batch = c.db.NewBatch()
	return err
}

// content copies what is stored under a thread's number, if all of it can be read.
func (c *copying) content(one *pebble.Batch, number uint64) (h *head, err error) {
	err = folder.Guard(func() error {
		prefix := threadPrefix(number)
		return c.view.ascend(prefix, prefix, func(k, value []byte) (bool, error) {
			err := c.sound(k[len(prefix):], value)
			if err == nil && k[len(prefix)] == sectionHead {
				h, err = decodeHead(value)
			}
			return err == nil, cmp.Or(err, one.Set(k, value, nil))
		})
	})
	if err == nil && h == nil {
		err = fmt.Errorf("it has no head: %w", folder.ErrDamaged)
	}
	return h, err
}

// sound checks a value of a thread, whose key is section and what follows it.
func (c *copying) sound(key, value []byte) (err error) {
	switch section, rest := key[0], key[1:]; section {
	case sectionListings:
		_, err = decodeListings(value)
	case sectionState:
		_, err = c.view.codec.Decode(nil, stateName, value)
	case sectionMessages:
		_, err = c.view.message(value)
	case sectionValues:
		r := reader{b: rest}
		kind := store.Kind(r.name())
		if err = r.err; err == nil {
			_, err = c.view.codec.Decode(nil, valueName(kind, string(r.b)), value)
		}
	case sectionRecords, sectionInbox:
		r := reader{b: value}
		r.name()
		name := inboxName
		if section == sectionRecords {
			name = recordName(placeOf(rest))
		}
		if err = r.err; err == nil {
			_, err = c.view.codec.Decode(r.before(value), name, r.b)
		}
	}
	return err
}

// index puts a thread into the lists again.
func (c *copying) index(one *pebble.Batch, key store.ThreadKey, number uint64, h *head) error {
	t := &txn{view: view{Reader: one, codec: c.view.codec}, batch: one}
	commit := &commit{
		Commit: &store.Commit{Key: key, User: h.User, UpdatedAt: h.UpdatedAt, Process: h.Process},
		old:    &head{},
		thread: &thread{number: number},
	}
	err := t.set(nameKey(key), numbered(0, number)[1:])
	if err == nil {
		err = commit.index(t, true)
	}
	if err == nil && h.Process != "" {
		err = commit.own(t)
	}
	if err != nil {
		return err
	}
	listings, err := c.view.listings(number)
	if errors.Is(folder.Unreadable(err), store.ErrUnreadable) {
		err = nil // it is out of the lists until its next commit that names them
	}
	for _, l := range listings {
		err = errors.Join(err, t.set(listKey(l, number), fullName(key)))
	}
	if err != nil {
		return err
	}
	_, err = c.view.with(sectionKey(number, sectionParent), func(parent []byte) error {
		return t.set(childKey(key.Tenant, string(parent), key.Thread), nil)
	})
	return err
}

// ledger copies the accounts and reservations that can be read.
func (c *copying) ledger() error {
	prefix := []byte{spaceLedger}
	damage, err := c.view.ascendPast(prefix, prefix, func(k, value []byte) (bool, error) {
		r := reader{b: k[1:]}
		r.name()
		if r.err == nil && len(r.b) > 0 && r.b[0] == ledgerAccounts {
			a := reader{b: value}
			a.uvarint()
			c.number = max(c.number, a.uvarint())
		}
		return true, c.batch.Set(k, bytes.Clone(value), nil)
	})
	if damage != nil {
		c.rescue.Lose("list", "accounts",
			"some of what was counted for limits cannot be read; it is counted again: %s", folder.FirstLine(damage))
	}
	return err
}

// counters writes the numbers that were given away last.
func (c *copying) counters() error {
	for name, least := range map[string]uint64{metaThreads: c.last, metaAccounts: c.number} {
		var n uint64
		err := folder.Guard(func() (err error) {
			n, err = c.view.number(metaKey(name))
			return err
		})
		if err != nil && !errors.Is(err, store.ErrUnreadable) {
			return err
		}
		if n = max(n, least); n == 0 {
			continue
		}
		if err := c.batch.Set(metaKey(name), numbered(0, n)[1:], nil); err != nil {
			return err
		}
	}
	return nil
}

// flush writes what was gathered.
func (c *copying) flush() error { return errors.Join(c.batch.Commit(pebble.Sync), c.batch.Close()) }
