package upkeep

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// States is the part of a Keeper that changes shared states.
type States struct{ Keeper *Keeper }

// Patch changes the shared state of a thread that does not run. If p.ETag is not empty the thread must
// have it. A patch that leaves the state as it is stores nothing.
func (k States) Patch(ctx context.Context, who holdfast.Principal, id string, p threads.StatePatch) (
	*threads.Info, error,
) {
	var info *threads.Info
	_, err := k.Keeper.onStill(ctx, who, id, p.ETag, func(t *thread.Thread) (*store.Commit, error) {
		was, err := k.Keeper.read.SharedVersion(ctx, t.Key, t.State.Shared)
		if err != nil {
			return nil, err
		}
		next, err := patched(was.State, p)
		if err != nil {
			return nil, err
		}
		if err := k.Keeper.cfg.CheckState(ctx, t.State.Agent, next); err != nil {
			return nil, err
		}
		c, st := k.Keeper.cfg.amend(t), t.State.Clone()
		c.UpdatedAt = k.Keeper.cfg.Now().Time()
		change := was.Change(next, k.Keeper.cfg.NewID("s"), st.Format, "", c.UpdatedAt)
		if change == nil {
			info = t.Info()
			return nil, nil
		}
		st.Shared, c.Put = change.ID, append(c.Put, change.Put)
		wrote(st, c)
		thread.Save(c, st)
		info = (&thread.Thread{Key: t.Key, Head: thread.HeadAfter(c), State: st}).Info()
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// patched returns a state after a patch. A thread without one has an empty object.
func patched(state json.RawMessage, p threads.StatePatch) (json.RawMessage, error) {
	if text := bytes.TrimSpace(state); len(text) == 0 || string(text) == "null" {
		state = json.RawMessage("{}")
	}
	apply := jsonpatch.Change
	if p.Merge {
		apply = jsonpatch.Merge
	}
	next, err := apply(state, p.Patch)
	if err != nil {
		return nil, holdfast.Errorf(codes.StateConflict, "The patch cannot be applied to the shared state: %v.", err).
			WithHint("Nothing was changed. GET /threads/{thread}/state shows the state as it is.").Wrap(err)
	}
	return next, nil
}
