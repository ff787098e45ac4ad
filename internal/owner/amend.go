package owner

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Amend has the owner of the thread's run change what only it may change, and waits until that
// is stored. It reports false if the run has ended before that. The title of a description is
// stored as it is.
func (e *Engine) Amend(ctx context.Context, t *thread.Thread, a thread.Amendment) (bool, error) {
	if t.State.Waiting != nil {
		return false, errWaits(t.Key.Thread)
	}
	wake, stop := e.cfg.Store.Watch(t.Key)
	defer stop()
	run := t.State.Run()
	in := loop.Item{Type: loop.ItemDescribe, Run: run, Amendment: a}
	if a.Mark != nil {
		in.Type = loop.ItemMark
	}
	id := in.Type + "/" + e.cfg.NewID("d")
	item := store.InboxItem{ID: id, Data: thread.MustJSON(in)}
	if err := e.cfg.Store.Post(ctx, t.Key, item); err != nil {
		return false, thread.ReadError(t.Key, err)
	}
	if err := e.takeovers.ensureOwnerOf(ctx, t.Key); err != nil {
		return false, thread.ReadError(t.Key, err)
	}
	for {
		now, err := e.read.Head(ctx, t.Key)
		if err != nil {
			return false, thread.ReadError(t.Key, err)
		}
		// Read after the head: an item that is still there after the run's end was not taken.
		items, err := e.cfg.Store.Inbox(ctx, t.Key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, thread.ReadError(t.Key, err)
		}
		taken := !slices.ContainsFunc(items, func(it store.InboxItem) bool { return it.ID == id })
		if !taken && now.State != nil && now.State.Waiting != nil {
			return false, errWaits(t.Key.Thread)
		}
		runs := now.State != nil && now.State.Running() && now.State.Run() == run
		if taken || !runs { // a post that was repeated may have put it there again after it was taken
			return e.amended(ctx, t.Key, run, &a)
		}
		select {
		case <-wake:
			if e.over() {
				return false, errShuttingDown()
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-e.closed:
			return false, errShuttingDown()
		}
	}
}

// amended reports whether a run has made a change that is not in its inbox any more. While the run
// goes on, nobody else has read that; another run passes over what came for this one after its end,
// and a thread that went back may name this one as its last again.
func (e *Engine) amended(ctx context.Context, key store.ThreadKey, run string, a *thread.Amendment) (bool, error) {
	now, err := e.read.Head(ctx, key)
	if err != nil {
		return false, thread.ReadError(key, err)
	}
	if now.State != nil && now.State.Running() && now.State.Run() == run {
		return true, nil
	}
	rec, err := e.read.Run(ctx, key, run)
	if err != nil {
		return false, err
	}
	name, value := a.Notice()
	for after := rec.After; ; {
		records, err := e.read.Records(ctx, key, rec, after, amendedPage)
		if err != nil {
			return false, thread.ReadError(key, err)
		}
		if len(records) == 0 {
			return false, nil
		}
		for _, r := range records {
			switch agui.TypeOf(r.Data) {
			case agui.TypeRunFinished, agui.TypeRunError:
				return false, nil
			case agui.TypeCustom:
				if ev, err := agui.DecodeEvent(r.Data); err == nil {
					if said, is := ev.(agui.Custom); is && said.Name == name && bytes.Equal(said.Value, value) {
						return true, nil
					}
				}
			}
		}
		after = records[len(records)-1].Cursor
	}
}

// amendedPage is how many records are read at a time.
const amendedPage = 1024
