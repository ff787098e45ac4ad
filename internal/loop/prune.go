package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Prune keeps the newest checkpoints of a thread and removes what neither they nor
// the head need: other branches of the history, versions of the shared state, the
// logs of runs before them. The newest checkpoint is always kept.
func (e *Engine) Prune(ctx context.Context, who holdfast.Principal, id string, keep int, dryRun bool) (*holdfast.Cleaned, error) {
	cleaned := &holdfast.Cleaned{DryRun: dryRun, Threads: 1}
	_, err := e.onStill(ctx, who, id, "", func(t *thread) (*holdfast.Commit, error) {
		p := pruning{e: e, t: t}
		c, err := p.commit(ctx, func(n int, _ *checkpoint) bool { return n < keep })
		cleaned.Checkpoints, cleaned.Messages = p.checkpoints, len(p.forget)
		if dryRun {
			c = nil
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return cleaned, nil
}

// pruning is what is to be removed of one thread.
type pruning struct {
	e           *Engine
	t           *thread
	kept        []*state // of the head and of the checkpoints that stay
	checkpoints int
	forget      []string
}

// commit returns what removes the checkpoints that stays does not name (by their
// place, the newest is 0), and all that is not needed then; nil if that is nothing.
func (p *pruning) commit(ctx context.Context, stays func(n int, cp *checkpoint) bool) (*holdfast.Commit, error) {
	c := p.e.amend(p.t)
	p.kept = []*state{p.t.st}
	all, err := p.e.cfg.Store.Values(ctx, p.t.key, holdfast.KindCheckpoint, "", 0)
	if err != nil {
		return nil, readError(err)
	}
	for n, v := range all {
		cp, err := decodeCheckpoint(v.Data)
		if err != nil {
			return nil, readError(err)
		}
		if n == 0 || stays(n, cp) {
			p.kept = append(p.kept, cp.State)
			continue
		}
		p.checkpoints++
		c.Delete = append(c.Delete, holdfast.ValueID{Kind: holdfast.KindCheckpoint, ID: v.ID})
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

// messages forgets those that are on the way to none of the leaves that stay.
func (p *pruning) messages(ctx context.Context, c *holdfast.Commit) error {
	stored, err := p.e.cfg.Store.Messages(ctx, p.t.key)
	if err != nil {
		return readError(err)
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
		if !needed[stored[i].ID] {
			p.forget = append(p.forget, stored[i].ID)
		}
	}
	c.Forget = p.forget
	return nil
}

// values deletes the versions of the shared state, the schemas and the logs that
// nothing that stays refers to.
func (p *pruning) values(ctx context.Context, c *holdfast.Commit) error {
	var blobs, runs []string
	for _, st := range p.kept {
		blobs, runs = append(blobs, st.blobs()...), append(runs, st.Run)
	}
	for kind, needed := range map[holdfast.Kind][]string{holdfast.KindBlob: blobs, holdfast.KindLog: runs} {
		values, err := p.e.cfg.Store.Values(ctx, p.t.key, kind, "", 0)
		if err != nil {
			return readError(err)
		}
		for _, v := range values {
			if !slices.Contains(needed, v.ID) {
				c.Delete = append(c.Delete, holdfast.ValueID{Kind: kind, ID: v.ID})
			}
		}
	}
	return nil
}

// Delete removes a thread that does not run and, if asked to, the threads that were
// forked from it, and theirs. It returns how many were deleted.
func (e *Engine) Delete(ctx context.Context, who holdfast.Principal, id, etag string, children bool) (int, error) {
	return e.delete(ctx, who, id, etag, children, map[string]bool{})
}

func (e *Engine) delete(ctx context.Context, who holdfast.Principal, id, etag string, children bool, seen map[string]bool) (int, error) {
	seen[id] = true
	deleted := 0
	t, err := e.onStill(ctx, who, id, etag, func(*thread) (*holdfast.Commit, error) { return nil, nil })
	if err != nil {
		return 0, err
	}
	if children {
		list, err := e.Children(ctx, who, id)
		if err != nil {
			return 0, err
		}
		for _, child := range list {
			if seen[child.ID] {
				continue
			}
			n, err := e.delete(ctx, who, child.ID, "", true, seen)
			deleted += n
			if err != nil {
				return deleted, err
			}
		}
	}
	if err := e.deleteAt(ctx, t); err != nil {
		var conflict *holdfast.ConflictError
		if errors.As(err, &conflict) {
			return deleted, errETag(t.head.ETag, conflict.Actual.ETag)
		}
		return deleted, readError(err)
	}
	return deleted + 1, nil
}

func (e *Engine) deleteAt(ctx context.Context, t *thread) error {
	m := e.lock(t.key)
	defer m.Unlock()
	err := e.cfg.Store.Delete(ctx, t.key, t.head.Position())
	if err == nil {
		e.cfg.Log.Info("thread deleted", "thread", t.key.Thread)
	}
	return err
}

// maxChildren bounds a list of children.
const maxChildren = 1000

// Children lists the threads of the caller that were forked from a thread.
func (e *Engine) Children(ctx context.Context, who holdfast.Principal, id string) ([]holdfast.ThreadInfo, error) {
	if _, err := e.existing(ctx, who, id); err != nil {
		return nil, err
	}
	ids, err := e.cfg.Store.Children(ctx, holdfast.ThreadKey{Tenant: who.Tenant, Thread: id}, "", maxChildren)
	if err != nil {
		return nil, readError(err)
	}
	list := []holdfast.ThreadInfo{}
	for _, child := range ids {
		info, err := e.info(ctx, who, child)
		var pub *holdfast.Error
		if errors.As(err, &pub) && pub.Code == holdfast.CodeNotFound {
			continue // somebody else's, or gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, *info)
	}
	return list, nil
}

// sweepPage is how many threads a clean-up looks at before it looks whether it is to
// go on.
const sweepPage = 100

// DeleteOlderThan removes the checkpoints of the caller's threads that were taken
// before cutoff, but never a thread's newest.
func (e *Engine) DeleteOlderThan(ctx context.Context, who holdfast.Principal, cutoff time.Time, dryRun bool) (*holdfast.Cleaned, error) {
	cleaned := &holdfast.Cleaned{DryRun: dryRun}
	err := e.each(ctx, who, time.Time{}, func(id string) error {
		_, err := e.onStill(ctx, who, id, "", func(t *thread) (*holdfast.Commit, error) {
			p := pruning{e: e, t: t}
			c, err := p.commit(ctx, func(_ int, cp *checkpoint) bool { return !cp.CreatedAt.Before(cutoff) })
			if err != nil || c == nil || p.checkpoints == 0 {
				return nil, err
			}
			cleaned.Threads++
			cleaned.Checkpoints += p.checkpoints
			cleaned.Messages += len(p.forget)
			if dryRun {
				c = nil
			}
			return c, nil
		})
		return leaveOut(cleaned, err)
	})
	return cleaned, err
}

// DeleteInactive deletes the caller's threads that are idle and were last active
// before cutoff. What is stopped or waits is somebody's unfinished work, and stays.
func (e *Engine) DeleteInactive(ctx context.Context, who holdfast.Principal, cutoff time.Time, dryRun bool) (*holdfast.Cleaned, error) {
	cleaned := &holdfast.Cleaned{DryRun: dryRun}
	err := e.each(ctx, who, cutoff, func(id string) error {
		t, err := e.existing(ctx, who, id)
		if err != nil {
			return leaveOut(cleaned, err)
		}
		if t.st.Phase != phaseIdle || !t.head.UpdatedAt.Before(cutoff) {
			cleaned.Kept++
			return nil
		}
		if !dryRun {
			if err := e.deleteAt(ctx, t); err != nil {
				return leaveOut(cleaned, err)
			}
		}
		cleaned.Threads++
		return nil
	})
	return cleaned, err
}

// leaveOut counts a thread that runs or has moved as kept; other errors end the
// clean-up.
func leaveOut(c *holdfast.Cleaned, err error) error {
	var pub *holdfast.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, holdfast.ErrConflict), errors.Is(err, holdfast.ErrFenced):
	case errors.As(err, &pub) && (pub.Code == holdfast.CodeRunInProgress || pub.Code == holdfast.CodeNotFound || pub.Code == holdfast.CodeCheckpointConflict):
	default:
		return readUnlessMoved(err)
	}
	c.Kept++
	return nil
}

// each calls f with the ids of the caller's threads that were last active before the
// given time (zero: all).
func (e *Engine) each(ctx context.Context, who holdfast.Principal, before time.Time, f func(id string) error) error {
	seen := map[string]bool{}
	for {
		heads, err := e.cfg.Store.Threads(ctx, who, before, sweepPage)
		if err != nil {
			return readError(err)
		}
		fresh := 0
		for i := range heads {
			id := heads[i].Key.Thread
			if before.IsZero() || heads[i].UpdatedAt.Before(before) {
				before = heads[i].UpdatedAt
			}
			if seen[id] {
				continue
			}
			seen[id] = true
			fresh++
			if err := f(id); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if len(heads) < sweepPage || fresh == 0 {
			return nil
		}
		before = before.Add(1) // others of the same instant
	}
}
