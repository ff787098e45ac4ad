package memstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast/store"
)

// The Committer role: Commit, Post and Delete, each of them under the store's one
// lock. A commit is checked as a whole before it changes anything.

// Commit implements [store.Committer].
func (s *Store) Commit(ctx context.Context, c *store.Commit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[c.Key]
	if t == nil {
		t = &thread{
			head:   store.Head{Key: c.Key, Next: 1},
			known:  map[string]bool{},
			values: map[store.Kind]map[string][]byte{},
		}
	}
	if t.head.ETag == c.ID {
		return nil
	}
	if t.head.Position() != c.Expect {
		return &store.ConflictError{Key: c.Key, Expected: c.Expect, Actual: t.head.Position()}
	}
	if err := t.check(c); err != nil {
		return fmt.Errorf("commit to thread %s: %w", c.Key, err)
	}
	t.apply(c)
	s.threads[c.Key] = t
	if len(c.Records) > 0 {
		s.waiters.Committed(c.Key)
	}
	return nil
}

// check returns an error if the tree cannot take the commit's messages.
func (t *thread) check(c *store.Commit) error {
	added := map[string]bool{}
	for _, m := range c.Messages {
		if t.known[m.ID] || added[m.ID] {
			return fmt.Errorf("message %q already exists: %w", m.ID, store.ErrInvalid)
		}
		if m.Parent != "" && !t.known[m.Parent] && !added[m.Parent] {
			return fmt.Errorf("message %q has the unknown parent %q: %w", m.ID, m.Parent, store.ErrInvalid)
		}
		added[m.ID] = true
	}
	return nil
}

// apply makes the changes of a commit that was checked.
func (t *thread) apply(c *store.Commit) {
	for i, data := range c.Records {
		cursor := store.Cursor{Number: c.Expect.Next + uint64(i), Tag: c.Fence.Tag()}
		t.records = append(t.records, store.Record{Cursor: cursor, Data: bytes.Clone(data)})
	}
	for _, id := range c.Forget {
		t.messages = slices.DeleteFunc(t.messages, func(m store.Message) bool { return m.ID == id })
		delete(t.known, id)
	}
	for _, m := range c.Messages {
		m.Data = bytes.Clone(m.Data)
		t.messages = append(t.messages, m)
		t.known[m.ID] = true
	}
	if c.Trim > t.trimmed {
		t.records = slices.Clone(t.records[c.Trim-t.trimmed:])
		t.trimmed = c.Trim
	}
	if c.Parent != "" {
		t.parent = c.Parent
	}
	if c.Listings != nil {
		t.listings = listingsOf(c)
	}
	t.setValues(c)
	t.inbox = slices.DeleteFunc(t.inbox, func(it store.InboxItem) bool { return it.Number <= c.InboxSeen })
	h := &t.head
	h.User, h.Fence, h.Process, h.ETag = c.User, c.Fence, c.Process, c.ID
	h.UpdatedAt = c.UpdatedAt.Round(0).UTC() // the wall clock only, as a file would store it
	h.Next += uint64(len(c.Records))
	if c.State != nil {
		h.State = bytes.Clone(c.State)
	}
}

// setValues clears, puts, deletes and trims, in this order.
func (t *thread) setValues(c *store.Commit) {
	for _, kind := range c.Clear {
		delete(t.values, kind)
	}
	for _, v := range c.Put {
		if t.values[v.Kind] == nil {
			t.values[v.Kind] = map[string][]byte{}
		}
		t.values[v.Kind][v.ID] = bytes.Clone(v.Data)
	}
	for _, id := range c.Delete {
		delete(t.values[id.Kind], id.ID)
	}
	for kind, keep := range c.Keep {
		for i, id := range t.newest(kind) {
			if i >= keep {
				delete(t.values[kind], id)
			}
		}
	}
}

// Post implements [store.Committer].
func (s *Store) Post(ctx context.Context, key store.ThreadKey, item store.InboxItem) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := item.Validate(); err != nil {
		return err
	}
	if err := s.post(key, item); err != nil {
		return err
	}
	s.waiters.Posted(key)
	return nil
}

// post adds the item unless the inbox already has it.
func (s *Store) post(key store.ThreadKey, item store.InboxItem) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.thread(key)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(t.inbox, func(it store.InboxItem) bool { return it.ID == item.ID }) {
		return nil
	}
	t.posted++
	item.Number, item.Data = t.posted, bytes.Clone(item.Data)
	t.inbox = append(t.inbox, item)
	return nil
}

// Delete implements [store.Committer].
func (s *Store) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.threads[key]; t != nil && t.head.Position() != at {
		return &store.ConflictError{Key: key, Expected: at, Actual: t.head.Position()}
	}
	delete(s.threads, key)
	return nil
}
