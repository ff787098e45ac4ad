package upkeep

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// States is the part of a Keeper that changes shared states.
type States struct{ Keeper *Keeper }

// Patch changes the shared state of a thread. While a run is under way, its owner does. If p.ETag is not empty
// the thread must have it, or the state that version. A patch that leaves the state as it is stores nothing.
func (k States) Patch(ctx context.Context, who holdfast.Principal, id string, p threads.StatePatch) (
	*threads.PatchedState, error,
) {
	stored, err := k.Keeper.cfg.Limits.Admit(ctx, who, false)
	if err != nil {
		return nil, err
	}
	defer stored(false) // no thread is made
	for range maxTries {
		made, err := k.still(ctx, who, id, p)
		if !running(err) {
			return made, err
		}
		if made, err = k.whileItRuns(ctx, who, id, p); made != nil || err != nil {
			return made, err
		}
	}
	return nil, thread.KeptChanging()
}

// still changes the state of a thread that does not run.
func (k States) still(ctx context.Context, who holdfast.Principal, id string, p threads.StatePatch) (
	made *threads.PatchedState, err error,
) {
	_, err = k.Keeper.onStill(ctx, who, id, "", func(t *thread.Thread) (*store.Commit, error) {
		was, err := k.Keeper.read.SharedVersion(ctx, t.Key, t.State.Shared)
		if err != nil {
			return nil, err
		}
		next, err := k.patched(ctx, t, &was, p)
		if err != nil {
			return nil, err
		}
		c, st := k.Keeper.cfg.amend(t), t.State.Clone()
		c.UpdatedAt = k.Keeper.cfg.Now().Time()
		change := was.Change(next, k.Keeper.cfg.NewID("s"), st.Format, "", c.UpdatedAt)
		if change == nil {
			made = &threads.PatchedState{Info: t.Info(), Version: was.ID}
			return nil, nil
		}
		thread.Reshare(&st.Work, change.ID)
		c.Put = append(c.Put, change.Put)
		wrote(st, c)
		thread.Save(c, st)
		after := &thread.Thread{Key: t.Key, Head: thread.HeadAfter(c), State: st}
		made = &threads.PatchedState{Info: after.Info(), Version: change.ID}
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// patched returns the state after a patch, if it may be changed so.
func (k States) patched(
	ctx context.Context, t *thread.Thread, was *thread.Shared, p threads.StatePatch,
) (json.RawMessage, error) {
	if p.ETag != was.ID && seen(p.ETag, t.Head.ETag) {
		return nil, errETag(p.ETag, t.Head.ETag)
	}
	next, err := (&thread.StatePatch{Patch: p.Patch, Merge: p.Merge}).Apply(was)
	if err == nil {
		err = k.Keeper.cfg.CheckState(ctx, t.State.Agent, next)
	}
	return next, err
}

// whileItRuns has the owner of the thread's run change the state. It returns nil if the run has ended before
// that.
func (k States) whileItRuns(ctx context.Context, who holdfast.Principal, id string, p threads.StatePatch) (
	*threads.PatchedState, error,
) {
	t, err := k.Keeper.engine.Current(ctx, who, id)
	if err != nil || !t.State.Running() {
		return nil, err
	}
	was, err := k.Keeper.read.SharedVersion(ctx, t.Key, t.State.Shared)
	if err != nil {
		if k.Keeper.read.Moved(ctx, t, err) {
			return nil, nil
		}
		return nil, err
	}
	// Most mistakes are seen here, and are nothing for the log.
	if _, err := k.patched(ctx, t, &was, p); err != nil {
		return nil, err
	}
	asked := thread.StatePatch{Patch: p.Patch, Merge: p.Merge}
	if p.ETag != "" {
		asked.Version = was.Name()
	}
	version, done, err := k.Keeper.engine.PatchState(ctx, t, asked)
	if err != nil || !done {
		return nil, err
	}
	if version == thread.NoState {
		version = ""
	}
	info, err := k.Keeper.info(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return &threads.PatchedState{Info: info, Version: version}, nil
}
