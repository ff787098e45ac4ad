package owner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Some things only the owner of a run may change. Others ask it for that: they leave an item in the thread's
// inbox, and read in the log what came of it.

// Amend has the owner of the thread's run change what only it may change, and waits until that
// is stored. It reports false if the run has ended before that. The title of a description is
// stored as it is.
func (e *Engine) Amend(ctx context.Context, t *thread.Thread, a thread.Amendment) (bool, error) {
	if t.State.Waiting != nil {
		return false, errWaits(t.Key.Thread)
	}
	said, done, err := (errand{e}).run(ctx, t, a)
	if said != nil && err == nil {
		err = said.Err()
	}
	return done, err
}

// PatchState has the owner of the thread's run change its shared state, and waits until that is stored. It
// returns the name of the version after that, and false if the run has ended before.
func (e *Engine) PatchState(ctx context.Context, t *thread.Thread, p thread.StatePatch) (string, bool, error) {
	if t.State.Waiting != nil {
		return "", false, errWaits(t.Key.Thread)
	}
	if err := (errand{e}).mayPatch(ctx, t, t.Head.Process); err != nil {
		return "", false, err
	}
	p.ID = e.cfg.NewID("p")
	said, done, err := (errand{e}).run(ctx, t, thread.Amendment{State: &p})
	if said == nil || err != nil {
		return "", done, err
	}
	return said.Version, done, said.Err()
}

// errand is an item that is left for the owner of a run.
type errand struct{ e *Engine }

// run leaves an item for the owner of the thread's run, and waits until it is stored what came of that. It
// returns false if the run has ended before.
func (x errand) run(
	ctx context.Context, t *thread.Thread, a thread.Amendment,
) (said *thread.PatchedState, done bool, err error) {
	wake, stop := x.e.cfg.Store.Watch(t.Key)
	defer stop()
	run, process := t.State.Run(), t.Head.Process
	id, err := x.leave(ctx, t, a)
	if err != nil {
		return nil, false, thread.ReadError(t.Key, err)
	}
	for {
		now, err := x.e.read.Head(ctx, t.Key)
		if err != nil {
			return nil, false, thread.ReadError(t.Key, err)
		}
		// Read after the head: an item that is still there after the run's end was not taken.
		items, err := x.e.cfg.Store.Inbox(ctx, t.Key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, false, thread.ReadError(t.Key, err)
		}
		at := slices.IndexFunc(items, func(it store.InboxItem) bool { return it.ID == id })
		taken := at < 0 || a.State != nil && now.State != nil && now.State.StateItem >= items[at].Number
		if !taken && now.State != nil && now.State.Waiting != nil {
			return nil, false, errWaits(t.Key.Thread)
		}
		runs := now.State != nil && now.State.Running() && now.State.Run() == run
		if taken || !runs { // a post that was repeated may have put it there again after it was taken
			return x.amended(ctx, t, run, &a)
		}
		if a.State != nil && now.Head.Process != process { // the next owner may be of an older version
			process = now.Head.Process
			if err := x.mayPatch(ctx, t, process); err != nil {
				return nil, false, err
			}
		}
		select {
		case <-wake:
			if x.e.over() {
				return nil, false, errShuttingDown()
			}
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		case <-x.e.closed:
			return nil, false, errShuttingDown()
		}
	}
}

// mayPatch returns an error if a process, which owns the run, cannot change its state for others.
func (x errand) mayPatch(ctx context.Context, t *thread.Thread, process string) error {
	able, err := x.e.fleet.patchesState(ctx, process)
	if err != nil {
		return thread.ReadError(t.Key, err)
	}
	if !able {
		return errPatchesNot(t.Key.Thread, t.State.Run())
	}
	return nil
}

// leave leaves the item, and makes sure that somebody reads it.
func (x errand) leave(ctx context.Context, t *thread.Thread, a thread.Amendment) (id string, err error) {
	in := loop.Item{Type: loop.ItemDescribe, Run: t.State.Run(), Amendment: a}
	switch {
	case a.Mark != nil:
		in.Type = loop.ItemMark
	case a.State != nil:
		in.Type = loop.ItemState
	}
	id = in.Type + "/" + x.e.cfg.NewID("d")
	if err := x.e.cfg.Store.Post(ctx, t.Key, store.InboxItem{ID: id, Data: thread.MustJSON(in)}); err != nil {
		return "", err
	}
	return id, x.e.takeovers.ensureOwnerOf(ctx, t.Key)
}

// amended returns what came of a change that is not in the inbox of its run any more, and false if the run has
// not made it. While the run goes on, nobody else has read that; another run passes over what came for this one
// after its end, and a thread that went back may name this one as its last again.
func (x errand) amended(
	ctx context.Context, t *thread.Thread, run string, a *thread.Amendment,
) (*thread.PatchedState, bool, error) {
	now, err := x.e.read.Head(ctx, t.Key)
	if err != nil {
		return nil, false, thread.ReadError(t.Key, err)
	}
	if a.State == nil && now.State != nil && now.State.Running() && now.State.Run() == run {
		return nil, true, nil
	}
	rec, err := x.e.read.Run(ctx, t.Key, run)
	if err != nil {
		return nil, false, err
	}
	name, value := a.Notice()
	for after := rec.After; ; {
		records, err := x.e.read.Records(ctx, t.Key, rec, after, amendedPage)
		if err != nil {
			return nil, false, thread.ReadError(t.Key, err)
		}
		if len(records) == 0 {
			return nil, false, nil
		}
		for _, r := range records {
			switch agui.TypeOf(r.Data) {
			case agui.TypeRunFinished, agui.TypeRunError:
				return nil, false, nil
			case agui.TypeCustom:
				if said, is := tells(r.Data, name, value, a.State); is {
					return said, true, nil
				}
			}
		}
		after = records[len(records)-1].Cursor
	}
}

// tells reports whether a CUSTOM event says that a change was made, or what came of one of the state.
func tells(event []byte, name string, value json.RawMessage, p *thread.StatePatch) (*thread.PatchedState, bool) {
	ev, err := agui.DecodeEvent(event)
	if err != nil {
		return nil, false
	}
	told, is := ev.(agui.Custom)
	if p == nil {
		return nil, is && told.Name == name && bytes.Equal(told.Value, value)
	}
	said := &thread.PatchedState{}
	return said, is && told.Name == thread.StatePatched && json.Unmarshal(told.Value, said) == nil &&
		said.Request == p.ID
}

// amendedPage is how many records are read at a time.
const amendedPage = 1024
