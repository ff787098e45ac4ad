package simulate

import (
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Upkeep may not take away the messages that lead to where a thread stands or a checkpoint was taken, nor the
// logs of runs.

// neededPromise is what pruning is held to.
const neededPromise = "what a thread needs stays"

// lacks says which of the messages that a commit removes is needed; empty if none is.
func (k *known) lacks(c *store.Commit, base store.Store) string {
	if k.forgotten == nil {
		k.forgotten = map[string]bool{}
	}
	for _, id := range c.Forget {
		k.forgotten[id] = true
	}
	t, err := thread.Reader{Store: base}.Head(context.Background(), c.Key)
	if err != nil {
		return fmt.Sprintf("its head: %v", err)
	}
	if id := k.forgottenBefore(t.State.Leaf); id != "" {
		return "the message " + id
	}
	all, err := base.Values(context.Background(), c.Key, store.KindCheckpoint, "", 0)
	if err != nil {
		return fmt.Sprintf("its checkpoints: %v", err)
	}
	for _, v := range all {
		cp, err := thread.DecodeCheckpoint(v.Data)
		if err != nil {
			return fmt.Sprintf("the checkpoint %s: %v", v.ID, err)
		}
		if id := k.forgottenBefore(cp.State.Leaf); id != "" {
			return fmt.Sprintf("the message %s of the checkpoint %s", id, v.ID)
		}
	}
	return ""
}

// forgottenBefore returns a message that was forgotten and leads to a leaf; empty if none was.
func (k *known) forgottenBefore(leaf string) string {
	for id := leaf; id != ""; id = k.messages[id].parent {
		if k.forgotten[id] {
			return id
		}
	}
	return ""
}

// runs returns the runs that have begun in the thread, in order.
func (k *known) runs() (runs []string) {
	for _, rec := range k.records {
		if agui.TypeOf(rec.Data) != agui.TypeRunStarted {
			continue
		}
		if ev, err := agui.DecodeEvent(rec.Data); err == nil {
			if started, is := ev.(agui.RunStarted); is {
				runs = append(runs, started.RunID)
			}
		}
	}
	return runs
}
