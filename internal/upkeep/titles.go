package upkeep

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Titles is the part of a Keeper that changes how threads are listed.
type Titles struct{ Keeper *Keeper }

// Describe gives a thread another title, hides it or shows it again. That is no activity: a
// thread that does not run keeps its place in the list. If etag is not empty, the thread
// must have it, and must not run.
func (k Titles) Describe(
	ctx context.Context, who holdfast.Principal, id, etag string, d threads.Description,
) (*threads.Info, error) {
	for range maxTries {
		info, err := k.still(ctx, who, id, etag, d)
		if etag != "" || !running(err) {
			return info, err
		}
		if info, err = k.whileItRuns(ctx, who, id, d); info != nil || err != nil {
			return info, err
		}
	}
	return nil, thread.KeptChanging()
}

// running reports whether the error says that the thread runs.
func running(err error) bool {
	var pub *holdfast.Error
	return errors.As(err, &pub) && pub.Code == codes.RunInProgress
}

// still describes a thread that does not run.
func (k Titles) still(
	ctx context.Context, who holdfast.Principal, id, etag string, d threads.Description,
) (*threads.Info, error) {
	var info *threads.Info
	_, err := k.Keeper.onStill(ctx, who, id, etag, func(t *thread.Thread) (*store.Commit, error) {
		st := t.State.Clone()
		st.Describe(d, t.History.Path)
		if st.Described == t.State.Described {
			info = t.Info()
			return nil, nil
		}
		c := k.Keeper.cfg.amend(t)
		thread.Save(c, st)
		info = (&thread.Thread{Key: t.Key, Head: thread.HeadAfter(c), State: st}).Info()
		return c, nil
	})
	return info, err
}

// whileItRuns has the owner of the thread's run describe it. It returns nil if the run has
// ended before that.
func (k Titles) whileItRuns(
	ctx context.Context, who holdfast.Principal, id string, d threads.Description,
) (*threads.Info, error) {
	t, err := k.Keeper.engine.Current(ctx, who, id)
	if err != nil || !t.State.Running() {
		return nil, err
	}
	want := t.State.Described
	want.Describe(d, nil)
	if d.Title != nil {
		if want.Title == "" { // it is made from the first message, as that is known here
			h, err := k.Keeper.read.History(ctx, t.Key, t.State.Leaf)
			if err != nil {
				return nil, err
			}
			want.MakeTitle(h.Path)
		}
		d.Title = &want.Title
	}
	if want == t.State.Described {
		return t.Info(), nil // nothing that the run's stream would say
	}
	done, err := k.Keeper.engine.Amend(ctx, t, thread.Amendment{Description: &d})
	if err != nil || !done {
		return nil, err
	}
	if t, err = k.Keeper.read.Existing(ctx, who, id); err != nil {
		return nil, err
	}
	return t.Info(), nil
}
