package loop

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// endedThread is one whose log is due to be archived at a time.
type endedThread struct {
	key holdfast.ThreadKey
	due time.Time
}

// ArchiveSoon has the thread's log archived once ArchiveAfter has passed.
func (k *Keeper) ArchiveSoon(key holdfast.ThreadKey) {
	select {
	case k.finished <- endedThread{key, k.cfg.Now().Add(k.cfg.ArchiveAfter)}:
	default: // the next run of the thread has it done
	}
}

// keepArchives archives the logs of threads, one after the other, in the order in
// which their runs ended.
func (k *Keeper) keepArchives() {
	for {
		var t endedThread
		select {
		case <-k.ctx.Done():
			return
		case t = <-k.finished:
		}
		select {
		case <-k.ctx.Done():
			return
		case <-time.After(t.due.Sub(k.cfg.Now())):
		}
		err := k.archive(k.ctx, t.key)
		if err != nil && k.ctx.Err() == nil && !errors.Is(err, holdfast.ErrConflict) && !errors.Is(err, holdfast.ErrFenced) && !errors.Is(err, holdfast.ErrNotFound) {
			k.cfg.Log.Warn("a log could not be archived; it stays as it is", "thread", t.key.Thread, "error", err)
		}
	}
}

// archive stores the logs of the runs of a thread that does not run apart from it.
func (k *Keeper) archive(ctx context.Context, key holdfast.ThreadKey) error {
	defer k.engine.Lock(key)()
	t, err := k.read.head(ctx, key)
	if err != nil || t.st.Phase == phaseRunning {
		return err
	}
	records, err := k.read.liveLog(ctx, t)
	if err != nil || len(records) == 0 {
		return err
	}
	stored, err := k.cfg.Store.Messages(ctx, key)
	if err != nil {
		return err
	}
	all, err := textsOf(stored)
	if err != nil {
		return err
	}
	c := k.amend(t)
	c.Trim = t.head.Next - 1
	for _, run := range byRun(records) {
		c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindLog, ID: run.id, Data: mustJSON(archiveRun(run.id, run.records, all))})
	}
	return k.engine.Commit(ctx, t.place(), c)
}
