package upkeep

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Rewind takes a thread that does not run back to a checkpoint or a message. The part after it
// stays in the tree as another branch until it is pruned.
func (k *Keeper) Rewind(
	ctx context.Context, who holdfast.Principal, id string, to threads.Travel,
) (*threads.Traveled, error) {
	if to.Checkpoint == "" && to.Message == "" {
		return nil, holdfast.Errorf(codes.InvalidInput, "A rewind needs checkpointId or messageId.").
			WithHint("GET /threads/{thread}/checkpoints lists the checkpoints.")
	}
	out := &threads.Traveled{}
	_, err := k.onStill(ctx, who, id, to.ETag, func(t *thread.Thread) (*store.Commit, error) {
		d, err := k.depart(ctx, t, to, false)
		if err != nil {
			return nil, err
		}
		c := k.cfg.amend(t)
		c.UpdatedAt = k.cfg.Now().Time()
		d.st.Boundary, d.st.Steps = t.Last(), nil
		d.st.Rewinds, d.st.Rewound = t.State.Rewinds+1, t.Last().Number
		c.Clear = []store.Kind{store.KindIntent, store.KindPending, store.KindReuse}
		for i := range d.st.Calls { // they are handed out again, so how they ended does not count
			c.Delete = append(c.Delete, store.ValueID{Kind: store.KindOutside, ID: d.st.Calls[i].ID})
		}
		k.arrive(c, d, thread.Checkpoint{Source: thread.SourceFork, Step: d.st.Iteration, Parent: d.from}, out)
		out.Thread = *(&thread.Thread{Key: t.Key, Head: thread.HeadAfter(c), State: d.st}).Info()
		out.Checkpoint.RunStartedAt = k.runStart(ctx, t.Key, out.Checkpoint.Run)
		if to.Preview {
			preview(out, t)
			return nil, nil
		}
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	if to.Preview {
		return out, nil
	}
	k.counting.measureSoon(store.ThreadKey{Tenant: who.Tenant, Thread: id})
	k.cfg.Log.Info("thread rewound",
		"thread", id, "checkpoint", to.Checkpoint, "message", to.Message, "effects", len(out.Effects))
	return out, nil
}

// preview turns what has been prepared into what would be, of the thread as it is now.
func preview(out *threads.Traveled, now *thread.Thread) {
	out.Preview, out.Thread.ETag, out.Checkpoint.ETag = true, thread.PublicETag(now.Head.ETag), ""
}
