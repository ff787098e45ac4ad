package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// ArchiveSoon has the thread's log archived once Config.ArchiveAfter has passed. It does
// not block.
func (k *Keeper) ArchiveSoon(key store.ThreadKey) { k.finished.add(endedThread{key, clock.Now()}) }

// archivers is how many threads are archived at a time: one waits for the store most of the time.
const archivers = 8

// keepArchives archives the logs of threads, one after the other, in the order in which
// their runs ended.
func (k *Keeper) keepArchives() {
	for {
		t, is := k.finished.next(k.ctx)
		if !is {
			return
		}
		select {
		case <-k.ctx.Done():
			return
		case <-time.After(k.cfg.ArchiveAfter - t.ended.Ran()):
		}
		err := routine.Caught(func() error { return k.Archive(k.ctx, t.key) })
		if err != nil && k.ctx.Err() == nil && !errors.Is(err, store.ErrConflict) &&
			!errors.Is(err, store.ErrFenced) && !errors.Is(err, store.ErrNotFound) {
			k.cfg.Log.Warn("a log could not be archived; it stays as it is", "thread", t.key.Thread, "error", err)
		}
	}
}

// Archive stores the logs of all ended runs of a thread apart from its live log. A thread
// that runs stays as it is.
func (k *Keeper) Archive(ctx context.Context, key store.ThreadKey) error {
	changed, err := k.archive(ctx, key)
	if changed {
		k.counting.measure(ctx, key)
	}
	return err
}

// archive is Archive, under the thread's lock. It reports whether the thread's size is
// another one than was measured.
func (k *Keeper) archive(ctx context.Context, key store.ThreadKey) (changed bool, err error) {
	defer k.engine.Lock(key)()
	t, err := k.read.Head(ctx, key)
	if err != nil || t.State.Running() {
		return false, err
	}
	c, _, err := k.archiving(ctx, t)
	if err != nil || c == nil {
		return err == nil && !t.State.Measured, err
	}
	err = k.engine.Commit(ctx, t.Place(), c)
	return err == nil, err
}

// archiving returns the commit that archives the thread's live log, and the state that it stores; nil
// if there is none. If retention has nothing else to do, it is through with the thread then.
func (k *Keeper) archiving(ctx context.Context, t *thread.Thread) (*store.Commit, *thread.State, error) {
	records, err := k.read.LiveLog(ctx, t)
	if err != nil || len(records) == 0 {
		return nil, nil, err
	}
	all, err := k.read.TextsIn(ctx, t.Key, records)
	if err != nil {
		return nil, nil, err
	}
	c, st := k.cfg.amendUnseen(t), t.State.Clone()
	c.Trim = t.Head.Next - 1
	for _, run := range thread.ByRun(records) {
		c.Put = append(c.Put, store.Value{
			Kind: store.KindLog,
			ID:   run.ID,
			Data: thread.MustJSON(thread.ArchiveRun(run.ID, run.Records, all)),
		})
	}
	if keep := k.cfg.Retention; keep.PruneBytes <= 0 || st.Bytes <= keep.PruneBytes {
		st.Tidied = t.Head.Next
	}
	thread.Save(c, st)
	return c, st, nil
}

// amendUnseen is amend for a commit that changes nothing which clients see.
func (cfg *Config) amendUnseen(t *thread.Thread) *store.Commit {
	c := cfg.amend(t)
	c.ID = thread.UnseenCommit(t.Head.ETag, c.ID)
	return c
}
