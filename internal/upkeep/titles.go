package upkeep

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Titles is the part of a Keeper that changes how threads are listed.
type Titles struct{ *Keeper }

// Describe gives a thread that does not run another title, hides it or shows it again. That
// is no activity: the thread keeps its place in the list. If etag is not empty, the thread
// must have it.
func (k Titles) Describe(ctx context.Context, who holdfast.Principal, id, etag string, d threads.Description) (*threads.Info, error) {
	var info *threads.Info
	_, err := k.onStill(ctx, who, id, etag, func(t *thread.Thread) (*store.Commit, error) {
		st := t.State.Clone()
		st.Describe(d, t.History)
		if st.Described == t.State.Described {
			info = t.Info()
			return nil, nil
		}
		c := k.amend(t)
		c.State = st.Encode()
		info = (&thread.Thread{Key: t.Key, Head: thread.HeadAfter(c), State: st}).Info()
		return c, nil
	})
	return info, err
}
