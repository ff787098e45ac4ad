package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/store"
)

// The Committer role: one script for each commit, and what its codes mean. The scripts'
// arguments are in arguments.go.

// Commit implements [store.Committer] with one script, preceded by the hints that
// announce the thread: in the first commit of a run, and once a minute.
func (s *Store) Commit(ctx context.Context, c *store.Commit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	tag := tag(c.Key)
	has, _ := s.hints.get(tag)
	lists := relists(c, &has)
	n, err := codeUnclear, error(nil)
	if lists.is == nil && appends(c) {
		n, err = s.announcer.commit(ctx, tag, c, s.calls.append(tag, c), lists)
	}
	if n == codeUnclear && err == nil {
		n, err = s.announcer.commit(ctx, tag, c, s.calls.commit(tag, c, lists.is), lists)
	}
	if err != nil {
		return failed("commit to thread "+c.Key.String(), err)
	}
	switch n % 8 {
	case codeOK, codeAlready:
		s.replicas.know(tag, acknowledged{commit: c.ID})
		if n == codeOK && len(c.Records) > 0 {
			s.watchers.Committed(c.Key)
		}
		return nil
	case codeTooNew:
		return s.directory.newer(ctx, c.Key)
	case codeFenced, codeConflict:
		return s.conflict(ctx, c.Key, c.Expect, n%8)
	default:
		return fmt.Errorf("commit to thread %s: %w", c.Key, refusal(c, n))
	}
}

// conflict is the error for a refused commit, with the actual position beside the
// expected one. The position is read after the refusal, which stands whatever has
// happened since.
func (s *Store) conflict(ctx context.Context, key store.ThreadKey, expected store.Position, code int) error {
	refused := store.ErrConflict
	if code == codeFenced {
		refused = store.ErrFenced
	}
	actual := store.Position{Next: 1}
	if head, err := s.Head(ctx, key); err == nil {
		actual = head.Position()
	}
	conflict := &store.ConflictError{Key: key, Expected: expected, Actual: actual}
	if !errors.Is(conflict, refused) {
		return fmt.Errorf("commit to thread %s: %w", key, refused)
	}
	return conflict
}

// refusal says which message of the commit the tree cannot take.
func refusal(c *store.Commit, n int) error {
	switch n % 8 {
	case codeDouble:
		return fmt.Errorf("message %q already exists: %w", c.Messages[n/8-1].ID, store.ErrInvalid)
	default:
		m := c.Messages[n/8-1]
		return fmt.Errorf("message %q has the unknown parent %q: %w", m.ID, m.Parent, store.ErrInvalid)
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
	tag := tag(key)
	channel := s.keys.inboxChannel()
	if isCluster(s.client) {
		// The script can neither publish on a channel of another shard nor count the listeners at all nodes.
		channel = ""
	}
	args := []any{
		layoutText, item.ID, s.values.encode(nil, item.ID, item.Data), tag, channel, s.keys.ownInboxes(),
		s.keys.database,
	}
	reply := s.replicas.script(ctx, s.scripts.post, []string{s.keys.thread(tag), s.keys.inbox(tag)}, args...)
	n, err := codeOf(reply, 0)
	switch {
	case err != nil:
		return failed("post to thread "+key.String(), err)
	case n == 1:
		return notFound(key)
	case n == codeTooNew:
		return s.directory.newer(ctx, key)
	}
	s.watchers.Posted(key)
	if all, _ := reply.Val().([]any); channel == "" && len(all) == 2 {
		owner, _ := all[1].(string)
		if err := s.watchers.post(ctx, owner, tag); err != nil {
			return failed("tell of a post to thread "+key.String(), err)
		}
	}
	return nil
}

// newer is the error for a thread that a script has found too new, or of no layout.
func (s *directory) newer(ctx context.Context, key store.ThreadKey) error {
	fields, err := s.client.HMGet(ctx, s.keys.thread(tag(key)), fieldLayout, "h").Result()
	if err == nil {
		_, err = decodeHead(key, fields)
	}
	if err == nil {
		err = fmt.Errorf("thread %s: %w", key, store.ErrVersionTooNew)
	}
	return err
}

// Delete implements [store.Committer]. The hints are removed last: one that is left
// behind names a thread that its reader does not find.
func (s *Store) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	tag := tag(key)
	fields, err := s.client.HMGet(ctx, s.keys.thread(tag), fieldLayout, "h", fieldListings, fieldParent, fieldUser).
		Result()
	if err != nil {
		return failed("delete thread "+key.String(), err)
	}
	head, err := decodeHead(key, fields[:2])
	// A head that cannot be read must still be the same one when the thread is removed.
	args := []any{appendPosition(nil, at), appendFence(nil, at.Fence), layoutText, s.keys.values(tag, "")}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil && at == store.Position{}:
		args = append(args, fields[1], fields[0])
		head = ownedBy(key, fields[4])
	case err != nil:
		return err
	}
	keys := []string{s.keys.thread(tag), s.keys.log(tag), s.keys.inbox(tag), s.keys.history(tag)}
	for _, k := range knownKinds {
		keys = append(keys, s.keys.values(tag, k))
	}
	n, err := s.replicas.write(ctx, s.scripts.remove, keys, args...)
	switch {
	case err != nil:
		return failed("delete thread "+key.String(), err)
	case n == codeTooNew:
		return s.directory.newer(ctx, key)
	case n == codeFenced, n == codeConflict:
		return s.conflict(ctx, key, at, n)
	}
	s.hints.drop(tag)
	s.watchers.Committed(key)
	if head == nil {
		return nil // nobody can be told whose hint it was
	}
	parent, _ := fields[3].(string)
	// Those that cannot be read are found wrong by the readers of the lists.
	listings, _ := s.directory.listingsIn(key, fields)
	again, err := s.announcer.unlist(ctx, head, s.directory.wanted(head, listings, parent))
	if again {
		_, err = s.Mend(ctx, key)
	}
	return err
}
