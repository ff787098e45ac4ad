package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Pruning removes what is no longer needed: checkpoints, and then everything that neither
// the head nor a checkpoint that stays refers to. A caller asks for it, or retention does
// (retention.go). Deleting a thread, with its forks if asked to, is here too.

// Prune keeps the newest checkpoints of a thread, keep of them but at least one, and
// removes what neither they nor the head need: other branches of the history, versions of
// the shared state, the logs of earlier runs. With dryRun it only counts. etag, if it is
// not empty, must be the thread's.
func (k *Keeper) Prune(
	ctx context.Context, who holdfast.Principal, id, etag string, keep int, dryRun bool,
) (*threads.Cleaned, error) {
	cleaned := &threads.Cleaned{DryRun: dryRun, Threads: 1}
	_, err := k.onStill(ctx, who, id, etag, func(t *thread.Thread) (*store.Commit, error) {
		p := pruning{k: k, t: t}
		c, err := p.commit(ctx, func(n int, _ *thread.Checkpoint) bool { return n < keep })
		cleaned.Checkpoints, cleaned.Messages = p.checkpoints, len(p.forget)
		if dryRun {
			c = nil
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	if !dryRun {
		k.counting.measure(ctx, store.ThreadKey{Tenant: who.Tenant, Thread: id})
	}
	return cleaned, nil
}

// pruning is what is removed from one thread.
type pruning struct {
	k           *Keeper
	t           *thread.Thread
	kept        []*thread.State // of the head and of the checkpoints that stay
	checkpoints int             // how many are removed
	oldest      time.Time       // when the oldest of those that stay was taken
	forget      []string        // ids of the messages that are removed
	stays       []store.Message // the others
}

// commit returns the commit that removes the checkpoints for which stays returns false, and
// everything that is not needed without them; nil if that is nothing. stays gets their
// place, 0 being the newest, which always stays.
func (p *pruning) commit(ctx context.Context, stays func(n int, cp *thread.Checkpoint) bool) (*store.Commit, error) {
	c := p.k.cfg.amend(p.t)
	p.kept = []*thread.State{p.t.State}
	all, err := p.k.cfg.Store.Values(ctx, p.t.Key, store.KindCheckpoint, "", 0)
	if err != nil {
		return nil, thread.ReadError(p.t.Key, err)
	}
	for n, v := range all {
		cp, err := thread.DecodeCheckpoint(v.Data)
		if err != nil {
			return nil, thread.ReadError(p.t.Key, thread.AtCheckpoint(v.ID, err))
		}
		if n == 0 || stays(n, cp) {
			p.kept, p.oldest = append(p.kept, cp.State), cp.CreatedAt
			continue
		}
		p.checkpoints++
		c.Delete = append(c.Delete, store.ValueID{Kind: store.KindCheckpoint, ID: v.ID})
	}
	if err := p.messages(ctx, c); err != nil {
		return nil, err
	}
	if err := p.values(ctx, c); err != nil {
		return nil, err
	}
	if len(c.Delete) == 0 && len(c.Forget) == 0 {
		return nil, nil
	}
	return c, nil
}

// messages has the commit forget the messages that lead to none of the leaves that stay.
func (p *pruning) messages(ctx context.Context, c *store.Commit) error {
	stored, err := p.k.cfg.Store.Messages(ctx, p.t.Key)
	if err != nil {
		return thread.ReadError(p.t.Key, err)
	}
	parent := map[string]string{}
	for i := range stored {
		parent[stored[i].ID] = stored[i].Parent
	}
	needed := map[string]bool{"": true}
	for _, st := range p.kept {
		for id := st.Leaf; !needed[id]; id = parent[id] {
			needed[id] = true
		}
	}
	for i := range stored {
		if needed[stored[i].ID] {
			p.stays = append(p.stays, stored[i])
		} else {
			p.forget = append(p.forget, stored[i].ID)
		}
	}
	c.Forget = p.forget
	return nil
}

// values has the commit delete the versions of the shared state, the schemas and the logs
// that nothing that stays refers to.
func (p *pruning) values(ctx context.Context, c *store.Commit) error {
	var blobs, runs []string
	for _, st := range p.kept {
		blobs, runs = append(blobs, st.Blobs()...), append(runs, st.Run())
	}
	if err := p.unneeded(ctx, c, store.KindBlob, blobs); err != nil {
		return err
	}
	if err := p.unneeded(ctx, c, store.KindLog, runs); err != nil {
		return err
	}
	return p.outside(ctx, c)
}

// unneeded has the commit delete the values of a kind that are not needed.
func (p *pruning) unneeded(ctx context.Context, c *store.Commit, kind store.Kind, needed []string) error {
	values, err := p.k.cfg.Store.Values(ctx, p.t.Key, kind, "", 0)
	if err != nil {
		return thread.ReadError(p.t.Key, err)
	}
	stays := make(map[string]bool, len(needed))
	for _, id := range needed {
		stays[id] = true
	}
	for _, v := range values {
		if !stays[v.ID] {
			c.Delete = append(c.Delete, store.ValueID{Kind: kind, ID: v.ID})
		}
	}
	return nil
}

// outside has the commit delete how outside calls ended that no message makes any more.
func (p *pruning) outside(ctx context.Context, c *store.Commit) error {
	values, err := p.k.cfg.Store.Values(ctx, p.t.Key, store.KindOutside, "", 0)
	if err != nil {
		return thread.ReadError(p.t.Key, err)
	}
	if len(values) == 0 {
		return nil
	}
	made := map[string]bool{}
	for i := range p.stays {
		m, err := agui.DecodeMessage(p.stays[i].Data)
		if err != nil {
			return thread.ReadError(p.t.Key, fmt.Errorf("message %s: %w: %w", p.stays[i].ID, thread.ErrUnreadable, err))
		}
		for j := range m.ToolCalls {
			made[m.ToolCalls[j].ID] = true
		}
	}
	for _, v := range values {
		if !made[v.ID] {
			c.Delete = append(c.Delete, store.ValueID{Kind: store.KindOutside, ID: v.ID})
		}
	}
	return nil
}

// Delete removes a thread that does not run and, if children is set, the threads that were
// forked from it, and theirs. It returns how many were deleted. etag, if it is not empty,
// must be the thread's.
func (k *Keeper) Delete(ctx context.Context, who holdfast.Principal, id, etag string, children bool) (int, error) {
	return k.delete(ctx, who, id, etag, children, map[string]bool{})
}

// delete is Delete without the threads in seen, so that it ends if forks form a circle.
func (k *Keeper) delete(
	ctx context.Context, who holdfast.Principal, id, etag string, children bool, seen map[string]bool,
) (int, error) {
	seen[id] = true
	key := store.ThreadKey{Tenant: who.Tenant, Thread: id}
	if _, _, err := k.deletable(ctx, who, key, etag); err != nil {
		return 0, err
	}
	deleted := 0
	if children {
		parent := &thread.State{}
		if t, err := k.read.Existing(ctx, who, id); err == nil {
			parent = t.State
		} // else nobody can tell which fork is one of an earlier thread, so those stay
		list, err := k.children(ctx, who, key, parent)
		if err != nil {
			return 0, err
		}
		for _, child := range list {
			if seen[child.ID] {
				continue
			}
			n, err := k.delete(ctx, who, child.ID, "", true, seen)
			deleted += n
			if err != nil {
				return deleted, err
			}
		}
	}
	err := k.deleteNow(ctx, who, key, etag)
	if err == nil {
		deleted++
	}
	return deleted, err
}

// deleteNow deletes a thread where it stands. If etag is empty, one that has moved
// meanwhile is looked at again.
func (k *Keeper) deleteNow(ctx context.Context, who holdfast.Principal, key store.ThreadKey, etag string) error {
	for range maxTries {
		at, bytes, err := k.deletable(ctx, who, key, etag)
		if err != nil {
			return err
		}
		err = k.deleteAt(ctx, who, key, at, bytes)
		var conflict *store.ConflictError
		switch {
		case errors.As(err, &conflict) && seen(etag, conflict.Actual.ETag):
			return errETag(etag, conflict.Actual.ETag)
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced):
			continue
		case err != nil:
			return thread.ReadError(key, err)
		}
		return nil
	}
	return thread.KeptChanging()
}

// deletable returns where a thread stands that may be deleted: it does not run, and has
// the etag if that is not empty. One that cannot be read may be deleted too, unless a
// living process runs it. bytes is what it is counted for.
func (k *Keeper) deletable(
	ctx context.Context, who holdfast.Principal, key store.ThreadKey, etag string,
) (at store.Position, bytes int64, err error) {
	t, err := k.engine.Current(ctx, who, key.Thread)
	switch {
	case err == nil:
		if seen(etag, t.Head.ETag) {
			return at, 0, errETag(etag, t.Head.ETag)
		}
		if t.State.Running() {
			return at, 0, errStillRunning(key.Thread, t.State.Run())
		}
		return t.Head.Position(), t.State.Bytes, nil
	case !thread.Unreadable(err):
		return at, 0, err
	}
	head, lost := k.cfg.Store.Head(ctx, key)
	switch {
	case lost != nil && !thread.Unreadable(lost):
		return at, 0, thread.ReadError(key, lost)
	case head == nil: // nobody can tell whose it is, or whether it is there
		return at, 0, thread.ReadError(store.ThreadKey{}, lost)
	case head.User != who.User:
		return at, 0, thread.NotFound(key.Thread)
	case seen(etag, head.ETag):
		return at, 0, errETag(etag, head.ETag)
	}
	if head.Process != "" && !k.engine.Left(head) {
		lease, err := k.cfg.Store.Lease(ctx, head.Process)
		if err != nil {
			return at, 0, thread.StoreError(err)
		}
		if lease.Alive() {
			return at, 0, errStillRunning(key.Thread, "")
		}
	}
	return head.Position(), 0, nil
}

// deleteAt deletes a thread if it still stands there. bytes is what it is counted for.
func (k *Keeper) deleteAt(
	ctx context.Context, who holdfast.Principal, key store.ThreadKey, at store.Position, bytes int64,
) error {
	defer k.engine.Lock(key)()
	err := k.cfg.Store.Delete(ctx, key, at)
	if err == nil {
		k.cfg.Limits.Deleted(who, bytes)
		k.cfg.Log.Info("thread deleted", "thread", key.Thread)
	}
	return err
}

// maxChildren bounds a list of children.
const maxChildren = 1000

// Children lists the threads of the caller that were forked from a thread. Those of an
// earlier thread with the same id, which was deleted, are not its children.
func (k *Keeper) Children(ctx context.Context, who holdfast.Principal, id string) ([]threads.Info, error) {
	parent, err := k.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return k.children(ctx, who, parent.Key, parent.State)
}

// children is Children for a thread that is known to be there.
func (k *Keeper) children(
	ctx context.Context, who holdfast.Principal, key store.ThreadKey, parent *thread.State,
) ([]threads.Info, error) {
	ids, err := k.cfg.Store.Children(ctx, key, "", maxChildren)
	if err != nil {
		return nil, thread.ReadError(key, err)
	}
	list := []threads.Info{}
	for _, child := range ids {
		t, err := k.read.Existing(ctx, who, child)
		if err == nil {
			if t.State.Origin.From(parent) {
				list = append(list, *t.Info())
			}
			continue
		}
		info, err := inList(&store.Head{Key: store.ThreadKey{Tenant: key.Tenant, Thread: child}}, err)
		if err != nil {
			return nil, err
		}
		if info != nil { // else it is somebody else's, or gone meanwhile
			list = append(list, *info)
		}
	}
	return list, nil
}
