package upkeep

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Reloads finds what pages ask for that were loaded again.
type Reloads struct{ Keeper *Keeper }

// Conversation returns what a page shows of a thread: what it does, and its messages, also those that wait
// for the results of calls. They are read as those of Messages.
func (r Reloads) Conversation(
	ctx context.Context, who holdfast.Principal, id string,
) (*threads.Info, iter.Seq2[[]byte, error], error) {
	t, path, err := r.Keeper.read.LoadPath(ctx, who, id)
	if err != nil {
		return nil, nil, err
	}
	return t.Info(), func(yield func([]byte, error) bool) {
		for m, err := range r.Keeper.read.Along(ctx, t.Key, path) {
			if !yield(m, err) || err != nil {
				return
			}
		}
		for _, m := range t.State.Queued {
			if !yield(m, nil) {
				return
			}
		}
	}, nil
}

// ThreadOf returns the caller's thread whose run has that id: one that runs it or, of those that were last
// active, one whose last run it was. Of several, it is the newest.
func (r Reloads) ThreadOf(ctx context.Context, who holdfast.Principal, run string) (string, error) {
	q := store.Query{List: thread.RunList(who.Tenant, who.User, run), Newest: true, Limit: sameRuns}
	found, err := r.Keeper.cfg.Store.Find(ctx, q)
	if err != nil {
		return "", thread.ReadError(store.ThreadKey{}, err)
	}
	for _, f := range found {
		t, err := r.Keeper.read.Head(ctx, f.Key)
		switch {
		case err != nil && (thread.Unreadable(err) || errors.Is(err, store.ErrNotFound)):
		case err != nil:
			return "", thread.ReadError(f.Key, err)
		case t.Head.User == who.User && t.State.Run() == run:
			return f.Key.Thread, nil
		}
	}
	return r.threadThatRan(ctx, who, run)
}

const (
	// sameRuns is how many threads are looked at that may run the run. There is more than one only if their
	// user gives different runs the same id.
	sameRuns = 8
	// latestRuns is how many of a user's threads are looked at for a run that has ended.
	latestRuns = 100
)

// threadThatRan looks at the user's threads that were last active.
func (r Reloads) threadThatRan(ctx context.Context, who holdfast.Principal, run string) (string, error) {
	list, err := r.Keeper.Threads(ctx, who, time.Time{}, latestRuns)
	if err != nil {
		return "", err
	}
	for i := range list {
		if list[i].Run == run {
			return list[i].ID, nil
		}
	}
	return "", holdfast.Errorf(codes.NotFound, "No thread of yours runs the run %q, or has just run it.", run).
		WithHint("An earlier run is found by its thread: GET /threads/{thread}/runs/{run}/events.").With("runId", run)
}
