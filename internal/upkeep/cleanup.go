package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// cleanupPage is how many threads a clean-up lists at a time.
const cleanupPage = 100

// DeleteOlderThan removes the checkpoints of the caller's threads that were taken before
// cutoff, except each thread's newest. With dryRun it only counts.
func (k *Keeper) DeleteOlderThan(
	ctx context.Context, who holdfast.Principal, cutoff time.Time, dryRun bool,
) (*threads.Cleaned, error) {
	cleaned := &threads.Cleaned{DryRun: dryRun}
	err := k.each(ctx, who, time.Time{}, cleaned, func(id string) error {
		changed := false
		_, err := k.onStill(ctx, who, id, "", func(t *thread.Thread) (*store.Commit, error) {
			p := pruning{k: k, t: t}
			c, err := p.commit(ctx, func(_ int, cp *thread.Checkpoint) bool { return !cp.CreatedAt.Before(cutoff) })
			if err != nil || c == nil || p.checkpoints == 0 {
				return nil, err
			}
			cleaned.Threads++
			cleaned.Checkpoints += p.checkpoints
			cleaned.Messages += len(p.forget)
			if dryRun {
				c = nil
			}
			changed = c != nil
			return c, nil
		})
		if err == nil && changed {
			k.counting.measure(ctx, store.ThreadKey{Tenant: who.Tenant, Thread: id})
		}
		return err
	})
	return cleaned, err
}

// DeleteInactive deletes the caller's threads that are idle and were last active before
// cutoff. A thread that is stopped or waits is unfinished work, and stays. With dryRun it
// only counts.
func (k *Keeper) DeleteInactive(
	ctx context.Context, who holdfast.Principal, cutoff time.Time, dryRun bool,
) (*threads.Cleaned, error) {
	cleaned := &threads.Cleaned{DryRun: dryRun}
	err := k.each(ctx, who, cutoff, cleaned, func(id string) error {
		t, err := k.read.Existing(ctx, who, id)
		if err != nil {
			return err
		}
		if t.State.Status() != threads.StatusIdle || len(t.State.OutsideCalls()) > 0 ||
			!t.Head.UpdatedAt.Before(cutoff) {
			cleaned.Kept++
			return nil
		}
		if !dryRun {
			if err := k.deleteAt(ctx, who, t.Key, t.Head.Position(), t.State.Bytes); err != nil {
				return err
			}
		}
		cleaned.Threads++
		return nil
	})
	return cleaned, err
}

// leaveOut counts a thread that runs, has moved or is gone as kept, and one that cannot be
// read as such. Other errors end the clean-up.
func (k *Keeper) leaveOut(c *threads.Cleaned, key store.ThreadKey, err error) error {
	var pub *holdfast.Error
	var panicked *routine.PanicError
	switch {
	case err == nil:
		return nil
	case thread.Unreadable(err), errors.As(err, &panicked):
		c.Unreadable++
		k.cfg.Log.Warn("a clean-up left a thread as it is", "thread", key.Thread, "error", err)
		return nil
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced):
	case errors.As(err, &pub) && (pub.Code == codes.RunInProgress || pub.Code == codes.NotFound ||
		pub.Code == codes.CheckpointConflict):
	default:
		return thread.ReadError(key, err)
	}
	c.Kept++
	return nil
}

// each calls f with the ids of the caller's threads that were last active before the given
// time (zero: all). A thread for which f returns an error is left out, as cleaned then
// says; an error of the store ends it.
func (k *Keeper) each(
	ctx context.Context, who holdfast.Principal, before time.Time, cleaned *threads.Cleaned, f func(id string) error,
) error {
	seen := map[string]bool{}
	for {
		heads, err := k.cfg.Store.Threads(ctx, who, before, cleanupPage)
		if err != nil {
			return thread.ReadError(store.ThreadKey{}, err)
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
			err := heads[i].Unreadable
			if err == nil {
				err = routine.Caught(func() error { return f(id) })
			}
			if err := k.leaveOut(cleaned, heads[i].Key, err); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if len(heads) < cleanupPage || fresh == 0 {
			return nil
		}
		before = before.Add(1) // others of the same instant
	}
}
