package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/wake"
	"github.com/holdfast-agents/holdfast/store"
)

// Commit implements [store.Committer].
func (s *Store) Commit(ctx context.Context, c *store.Commit) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return s.submit(ctx, s.newCommit(c))
}

// Post implements [store.Committer].
func (s *Store) Post(ctx context.Context, key store.ThreadKey, item store.InboxItem) error {
	if err := item.Validate(); err != nil {
		return err
	}
	return s.submit(ctx, &post{key: key, id: item.ID, entry: newEntry(s.codec, appendName(nil, item.ID), item.Data)})
}

// commit is a commit whose values are framed, which the caller's goroutine has
// done so that the committer does not have to.
type commit struct {
	*store.Commit
	state    entry
	records  []entry
	messages []entry
	values   []entry
	size     int

	thread uint64 // 0: the thread is new
	old    *hot
}

func (s *Store) newCommit(c *store.Commit) *commit {
	p := &commit{Commit: c}
	frame := func(own, raw []byte) entry {
		e := newEntry(s.codec, own, raw)
		p.size += len(e.data)
		return e
	}
	if c.State != nil {
		p.state = frame(nil, c.State)
	}
	tag := appendName(nil, c.Fence.Tag())
	for _, r := range c.Records {
		// The buffer has room for the tag, the codec and the record.
		own := append(make([]byte, 0, len(tag)+1+len(r)), tag...)
		p.records = append(p.records, frame(own, r))
	}
	for _, m := range c.Messages {
		p.messages = append(p.messages, frame(appendName(appendName(nil, m.ID), m.Parent), m.Data))
	}
	for _, v := range c.Put {
		p.values = append(p.values, frame(nil, v.Data))
	}
	return p
}

func (c *commit) bytes() int { return c.size }

func (c *commit) tell(l *wake.List) {
	if len(c.Records) > 0 {
		l.Committed(c.Key)
	}
}

// check compares the head with the one the commit builds on, and the messages
// with the tree. A thread that does not exist has the zero fence.
func (c *commit) check(t *txn) error {
	c.old = &hot{Head: store.Head{Next: 1}}
	var known bool
	if c.thread, known = t.find(c.Key); known {
		var err error
		if c.old, err = t.hot(c.thread); err != nil {
			return err
		}
	}
	switch {
	case c.old.ETag == c.ID:
		return errAlready
	case c.old.Position() != c.Expect:
		return &store.ConflictError{Key: c.Key, Expected: c.Expect, Actual: c.old.Position()}
	}
	if err := c.checkMessages(t); err != nil {
		return fmt.Errorf("commit to thread %s: %w", c.Key, err)
	}
	return nil
}

func (c *commit) checkMessages(t *txn) error {
	added := map[string]bool{}
	known := func(id string) bool {
		return added[id] || c.thread != 0 && t.data.Get(messageIDKey(c.thread, id)) != nil
	}
	for _, m := range c.Messages {
		if known(m.ID) {
			return fmt.Errorf("message %q is there already: %w", m.ID, store.ErrInvalid)
		}
		if m.Parent != "" && !known(m.Parent) {
			return fmt.Errorf("message %q has the unknown parent %q: %w", m.ID, m.Parent, store.ErrInvalid)
		}
		added[m.ID] = true
	}
	return nil
}

func (c *commit) write(t *txn) error {
	isNew := c.thread == 0
	if isNew {
		var err error
		if c.thread, err = t.names.NextSequence(); err != nil {
			return err
		}
		if err := t.names.Put(nameKey(c.Key), numberKey(c.thread)); err != nil {
			return err
		}
	}
	head := &hot{Head: store.Head{
		User: c.User, Fence: c.Fence, Process: c.Process, ETag: c.ID,
		Next: c.old.Next + uint64(len(c.Records)), UpdatedAt: c.UpdatedAt,
	}, messages: c.old.messages + uint64(len(c.Messages)), posted: c.old.posted}
	if err := t.data.Put(sectionKey(c.thread, sectionHead), head.encode()); err != nil {
		return err
	}
	steps := []func(*txn) error{c.forget, c.writeLog, c.trimLog, c.writeState, c.writeParent, c.writeValues, c.consume}
	for _, step := range steps {
		if err := step(t); err != nil {
			return err
		}
	}
	if err := c.index(t, isNew); err != nil {
		return err
	}
	return c.own(t)
}

// forget removes messages. Where a message is stands beside its id, except in
// files of the first version, which have to be searched.
func (c *commit) forget(t *txn) error {
	for _, id := range c.Forget {
		idKey := messageIDKey(c.thread, id)
		place := bytes.Clone(t.data.Get(idKey))
		if place == nil {
			continue
		}
		if len(place) == 0 {
			var err error
			if place, err = t.findMessage(c.thread, id); err != nil {
				return err
			}
		}
		if err := t.delete(append(sectionKey(c.thread, sectionMessages), place...)); err != nil {
			return err
		}
		if err := t.data.Delete(idKey); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) findMessage(thread uint64, id string) (place []byte, err error) {
	prefix := sectionKey(thread, sectionMessages)
	err = ascend(t.data, prefix, prefix, func(k, v []byte) (bool, error) {
		r := reader{b: v}
		if r.name() == id {
			place = bytes.Clone(k[len(prefix):])
		}
		return place == nil, r.err
	})
	return place, err
}

// writeLog appends the records and the messages.
func (c *commit) writeLog(t *txn) error {
	for i, e := range c.records {
		if err := t.put(numberedKey(c.thread, sectionRecords, c.old.Next+uint64(i)), e); err != nil {
			return err
		}
	}
	for i, e := range c.messages {
		place := c.old.messages + uint64(i)
		if err := t.put(numberedKey(c.thread, sectionMessages, place), e); err != nil {
			return err
		}
		if err := t.data.Put(messageIDKey(c.thread, c.Messages[i].ID), binary.BigEndian.AppendUint64(nil, place)); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) trimLog(t *txn) error { return t.dropUpTo(c.thread, sectionRecords, c.Trim) }

// dropUpTo deletes the records, or the inbox items, up to a number; 0 is none.
func (t *txn) dropUpTo(thread uint64, section byte, last uint64) error {
	if last == 0 {
		return nil
	}
	var doomed [][]byte
	prefix, end := sectionKey(thread, section), numberedKey(thread, section, last)
	err := ascend(t.data, prefix, prefix, func(k, _ []byte) (bool, error) {
		if bytes.Compare(k, end) > 0 {
			return false, nil
		}
		doomed = append(doomed, bytes.Clone(k))
		return true, nil
	})
	if err != nil {
		return err
	}
	return t.deleteAll(doomed)
}

func (c *commit) writeParent(t *txn) error {
	if c.Parent == "" {
		return nil
	}
	if err := t.data.Put(sectionKey(c.thread, sectionParent), []byte(c.Parent)); err != nil {
		return err
	}
	return t.children.Put(childKey(c.Key.Tenant, c.Parent, c.Key.Thread), []byte{})
}

func (c *commit) writeState(t *txn) error {
	if c.State == nil {
		return nil
	}
	return t.replace(sectionKey(c.thread, sectionState), c.state)
}

// writeValues clears, puts, deletes and trims, in this order.
func (c *commit) writeValues(t *txn) error {
	for _, kind := range c.Clear {
		if err := t.trim(c.thread, kind, 0); err != nil {
			return err
		}
	}
	for i, v := range c.Put {
		if err := t.replace(valueKey(c.thread, v.Kind, v.ID), c.values[i]); err != nil {
			return err
		}
	}
	for _, v := range c.Delete {
		if err := t.delete(valueKey(c.thread, v.Kind, v.ID)); err != nil {
			return err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Keep)) {
		if err := t.trim(c.thread, kind, c.Keep[kind]); err != nil {
			return err
		}
	}
	return nil
}

// trim deletes all values of a kind but the newest.
func (t *txn) trim(thread uint64, kind store.Kind, keep int) error {
	var doomed [][]byte
	prefix := kindPrefix(thread, kind)
	err := descend(t.data, prefix, after(prefix), func(k, _ []byte) (bool, error) {
		if keep--; keep < 0 {
			doomed = append(doomed, bytes.Clone(k))
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return t.deleteAll(doomed)
}

func (t *txn) deleteAll(keys [][]byte) error {
	for _, k := range keys {
		if err := t.delete(k); err != nil {
			return err
		}
	}
	return nil
}

// consume removes the inbox items that the owner has seen.
func (c *commit) consume(t *txn) error { return t.dropUpTo(c.thread, sectionInbox, c.InboxSeen) }

// index moves the thread in the active index, if its minute or its user is
// another now.
func (c *commit) index(t *txn, isNew bool) error {
	before := holdfast.Principal{Tenant: c.Key.Tenant, User: c.old.User}
	now := holdfast.Principal{Tenant: c.Key.Tenant, User: c.User}
	was, is := minuteOf(c.old.UpdatedAt), minuteOf(c.UpdatedAt)
	if !isNew {
		if before == now && was == is {
			return nil
		}
		if err := t.active.Delete(activeKey(before, was, c.thread)); err != nil {
			return err
		}
	}
	return t.active.Put(activeKey(now, is, c.thread), []byte(c.Key.Thread))
}

// own keeps the list of threads with an owner.
func (c *commit) own(t *txn) error {
	switch key := numberKey(c.thread); {
	case c.Process == c.old.Process:
		return nil
	case c.Process == "":
		return t.owned.Delete(key)
	default:
		return t.owned.Put(key, append(appendName(appendName(nil, c.Key.Tenant), c.Key.Thread), c.Process...))
	}
}

// post is an inbox item on its way.
type post struct {
	key    store.ThreadKey
	id     string
	entry  entry
	thread uint64
	head   *hot
}

func (p *post) bytes() int { return len(p.entry.data) }

func (p *post) tell(l *wake.List) { l.Posted(p.key) }

// check looks for the item among those that are not consumed, which are few:
// an owner consumes at once.
func (p *post) check(t *txn) (err error) {
	if p.thread, err = t.thread(p.key); err != nil {
		return err
	}
	if p.head, err = t.hot(p.thread); err != nil {
		return err
	}
	prefix := sectionKey(p.thread, sectionInbox)
	return ascend(t.data, prefix, prefix, func(_, v []byte) (bool, error) {
		r := reader{b: v}
		if r.name() == p.id {
			return false, errAlready
		}
		return true, r.err
	})
}

func (p *post) write(t *txn) error {
	p.head.posted++
	if err := t.put(numberedKey(p.thread, sectionInbox, p.head.posted), p.entry); err != nil {
		return err
	}
	return t.data.Put(sectionKey(p.thread, sectionHead), p.head.encode())
}
