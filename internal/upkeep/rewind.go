package upkeep

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Rewind takes a thread that does not run back to a checkpoint or a message. What came
// after it stays in the tree as another branch until it is pruned.
func (k *Keeper) Rewind(ctx context.Context, who holdfast.Principal, id string, to holdfast.Travel) (*holdfast.Traveled, error) {
	if to.Checkpoint == "" && to.Message == "" {
		return nil, holdfast.Errorf(holdfast.CodeInvalidInput, "A rewind needs checkpointId or messageId.").
			WithHint("GET /threads/{thread}/checkpoints lists the checkpoints.")
	}
	out := &holdfast.Traveled{}
	_, err := k.onStill(ctx, who, id, to.ETag, func(t *thread.Thread) (*holdfast.Commit, error) {
		d, err := k.depart(ctx, t, to)
		if err != nil {
			return nil, err
		}
		c := k.amend(t)
		c.UpdatedAt = k.cfg.Now()
		d.st.Boundary = t.Last()
		c.Clear = []holdfast.Kind{holdfast.KindIntent, holdfast.KindPending, holdfast.KindReuse}
		k.arrive(c, d, thread.Checkpoint{Source: thread.SourceFork, Step: d.st.Iteration, Parent: d.from}, out)
		out.Thread = *(&thread.Thread{Key: t.Key, Head: thread.HeadAfter(c), State: d.st}).Info()
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	k.cfg.Log.Info("thread rewound", "thread", id, "checkpoint", to.Checkpoint, "message", to.Message, "effects", len(out.Effects))
	return out, nil
}
