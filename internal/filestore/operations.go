package filestore

import (
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// A commit, a post and a removal on their way to the committer, each checked against what is
// stored before anything of it is written. The writes of a commit are in write.go.

// commit is a commit whose values are framed, which the caller's goroutine has done
// so that the committer does not have to.
type commit struct {
	*store.Commit
	state    []byte
	records  [][]byte
	messages [][]byte
	values   [][]byte
	size     int

	thread *thread // nil: the thread is new
	old    *head

	// number is that of the new thread, if its messages are written already; see
	// commitInSteps.
	number  uint64
	written bool // the rest is, or is about to be
}

// messageWork is what a message's two keys take of the committer's time, in bytes that are
// written in that time.
const messageWork = 512

func newCommit(codec *frame.Codec, c *store.Commit) *commit {
	p := &commit{Commit: c}
	frame := func(own []byte, name string, raw []byte) []byte {
		b := codec.Encode(own, name, raw)
		p.size += len(b)
		return b
	}
	if c.State != nil {
		p.state = frame(nil, stateName, c.State)
	}
	tag := appendName(nil, c.Fence.Tag())
	for i, r := range c.Records {
		// The buffer has room for the tag, the frame and the record.
		own := append(make([]byte, 0, len(tag)+8+len(r)), tag...)
		p.records = append(p.records, frame(own, recordName(c.Expect.Next+uint64(i)), r))
	}
	for _, m := range c.Messages {
		p.messages = append(p.messages, frame(appendName(appendName(nil, m.ID), m.Parent), messageName, m.Data))
		p.size += messageWork
	}
	for _, v := range c.Put {
		p.values = append(p.values, frame(nil, valueName(v.Kind, v.ID), v.Data))
	}
	return p
}

func (c *commit) bytes() int { return c.size }

func (c *commit) tell(w *storekit.Waiters) {
	if len(c.Records) > 0 {
		w.Committed(c.Key)
	}
}

// check compares the head with the one the commit builds on, and the messages with
// the tree. A thread that does not exist has the zero fence.
func (c *commit) check(t *txn) (err error) {
	c.old, c.written = &head{Head: store.Head{Next: 1}}, false
	if c.thread, err = t.thread(c.Key); err != nil {
		return err
	}
	if c.thread != nil {
		c.old = c.thread.head
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
	added := make(map[string]bool, len(c.Messages))
	known := func(id string) (bool, error) {
		if added[id] || c.thread == nil {
			return added[id], nil
		}
		return t.has(messageIDKey(c.thread.number, id))
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		switch taken, err := known(m.ID); {
		case err != nil:
			return err
		case taken:
			return fmt.Errorf("message %q is there already: %w", m.ID, store.ErrInvalid)
		}
		if m.Parent != "" {
			switch there, err := known(m.Parent); {
			case err != nil:
				return err
			case !there:
				return fmt.Errorf("message %q has the unknown parent %q: %w", m.ID, m.Parent, store.ErrInvalid)
			}
		}
		added[m.ID] = true
	}
	return nil
}

// post is an inbox item on its way.
type post struct {
	key    store.ThreadKey
	id     string
	entry  []byte
	thread *thread
}

func (p *post) bytes() int { return len(p.entry) }

func (p *post) tell(w *storekit.Waiters) { w.Posted(p.key) }

// check looks for the item among those that are not consumed, which are few: an
// owner consumes at once.
func (p *post) check(t *txn) (err error) {
	if p.thread, err = t.thread(p.key); err != nil {
		return err
	}
	if p.thread == nil {
		return notFound(p.key)
	}
	prefix, first := sectionKey(p.thread.number, sectionInbox), p.thread.head.seen+1
	return t.ascend(prefix, placeKey(p.thread.number, sectionInbox, first), func(_, value []byte) (bool, error) {
		r := reader{b: value}
		if r.name() == p.id && r.err == nil {
			return false, errAlready
		}
		return true, r.err
	})
}

func (p *post) write(t *txn) error {
	h := *p.thread.head
	h.posted++
	p.thread.head = &h
	return errors.Join(t.set(placeKey(p.thread.number, sectionInbox, h.posted), p.entry),
		t.set(sectionKey(p.thread.number, sectionHead), h.encode()))
}

// removal is the deletion of a thread on its way.
type removal struct {
	key    store.ThreadKey
	at     store.Position
	thread *thread // nil if its head cannot be read
	number uint64
	entry  []byte // its key in the index, if its head cannot be read
}

func (r *removal) bytes() int { return 0 }

// tell wakes those who watch the thread: it is not there any more.
func (r *removal) tell(w *storekit.Waiters) { w.Committed(r.key) }

func (r *removal) check(t *txn) (err error) {
	if (r.at == store.Position{}) {
		return r.checkUnreadable(t)
	}
	if r.thread, err = t.thread(r.key); err != nil {
		return err
	}
	if r.thread == nil {
		return errAlready
	}
	if actual := r.thread.head.Position(); actual != r.at {
		return &store.ConflictError{Key: r.key, Expected: r.at, Actual: actual}
	}
	old := r.thread.head
	owner := holdfast.Principal{Tenant: r.key.Tenant, User: old.User}
	r.number = r.thread.number
	r.entry = activeKey(owner, minuteOf(old.UpdatedAt), r.number)
	return nil
}

// checkUnreadable is check for a thread that can be removed only if its head cannot be read.
// The committer's own memory of it does not count.
func (r *removal) checkUnreadable(t *txn) error {
	number, err := t.find(r.key)
	if err != nil {
		return err
	}
	if number == 0 {
		return errAlready
	}
	var h *head
	err = folder.Guard(func() (err error) {
		h, err = t.head(number)
		return err
	})
	if err == nil {
		return &store.ConflictError{Key: r.key, Actual: h.Position()}
	}
	if !errors.Is(err, store.ErrUnreadable) {
		return err
	}
	r.number = number
	_, r.entry, err = t.indexed(r.key, number)
	return err
}

func (r *removal) write(t *txn) error {
	t.hot.forget(r.key)
	_, err := t.with(sectionKey(r.number, sectionParent), func(parent []byte) error {
		return t.remove(childKey(r.key.Tenant, string(parent), r.key.Thread))
	})
	if r.thread == nil && errors.Is(folder.Unreadable(err), store.ErrUnreadable) {
		err = nil // the child stays listed, and its reader does not find it
	}
	prefix := threadPrefix(r.number)
	err = errors.Join(err, r.unlist(t))
	err = errors.Join(err, t.removeAll(prefix), t.remove(ownedKey(r.number)), t.remove(nameKey(r.key)))
	if r.entry != nil {
		minute := r.entry[len(r.entry)-16:] // and the number
		err = errors.Join(err, t.remove(r.entry), t.remove(append(tenantPrefix(r.key.Tenant), minute...)))
	}
	return err
}

// unlist takes the thread out of the lists that it is in, as far as that can be read: a list
// leaves out what no thread confirms.
func (r *removal) unlist(t *txn) error {
	listings, err := t.listings(r.number)
	if errors.Is(folder.Unreadable(err), store.ErrUnreadable) {
		return nil
	}
	for _, l := range listings {
		err = errors.Join(err, t.remove(listKey(l, r.number)))
	}
	return err
}
