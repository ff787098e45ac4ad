package filestore

import (
	"context"

	"github.com/holdfast-agents/holdfast/store"
)

// The Committer role: a commit, a post and a removal, each checked against what is stored
// before anything of it is written. Framing is done here, on the caller's goroutine.

// Commit implements [store.Committer].
func (s *Store) Commit(ctx context.Context, c *store.Commit) error {
	if err := c.Validate(); err != nil {
		return err
	}
	p := newCommit(s.codec, c)
	if len(p.messages) > stepMessages && c.Expect == (store.Position{Next: 1}) && !s.readOnly {
		return commitInSteps(ctx, s.committer, p)
	}
	return s.committer.submit(ctx, p)
}

// Post implements [store.Committer].
func (s *Store) Post(ctx context.Context, key store.ThreadKey, item store.InboxItem) error {
	if err := item.Validate(); err != nil {
		return err
	}
	return s.committer.submit(ctx, &post{key: key, id: item.ID,
		entry: s.codec.Encode(appendName(nil, item.ID), inboxName, item.Data)})
}

// Delete implements [store.Committer].
func (s *Store) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	return s.committer.submit(ctx, &removal{key: key, at: at})
}
