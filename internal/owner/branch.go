package owner

import (
	"context"
	"maps"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A history branches when a message is edited or gets a new answer. The old branch stays in
// the tree, and the stream says how to get back to it. With the policy chat this happens by
// itself, while the effects of what is left stay: so the results of its calls to once and
// query tools are recorded for the new branch (abandoned_branch.go, reuse.go), and a different call of
// such a tool asks a person first. That holds until the next message that does not branch.

// branches reports whether the run leaves a part of the history behind.
func (b *beginning) branches() bool {
	c := &b.p.req.Compared
	return b.p.d.Do == decide.Fresh && (c.Switch != "" || (c.Regenerate || c.Diverged != nil) && c.Parent != b.st.Leaf)
}

// branch goes back to where the new branch begins, and says so in the stream.
func (b *beginning) branch(ctx context.Context) error {
	old, leaf, checkpoint := b.r.History, b.st.Leaf, b.st.LastCheckpoint
	if to := b.p.req.Compared.Switch; to == "" {
		b.leaveTo(b.p.req.Compared.Parent)
	} else if switched, err := b.switchTo(ctx, to); err != nil || !switched {
		return err
	}
	ev := agui.Custom{Name: "holdfast.branched", Value: thread.MustJSON(map[string]string{
		"parentMessageId": b.st.Leaf, "leftMessageId": leaf, "leftCheckpointId": checkpoint,
	})}
	ev.Timestamp = b.cfg.Now().UnixMilli()
	if err := b.record(ev); err != nil || !b.p.req.Policy.Chat {
		return err
	}
	return b.recordLeft(ctx, old)
}

// switchTo goes to a message of another branch, unless calls have no result by then: the
// client shows less of that branch than the thread has, so the thread stays where it is.
func (b *beginning) switchTo(ctx context.Context, leaf string) (switched bool, err error) {
	h, err := b.read.History(ctx, b.p.Key, leaf)
	if err != nil || len(h.Path) == 0 {
		return false, err
	}
	if _, whole := h.WholeFrom(len(h.Path) - 1); !whole {
		return false, nil
	}
	for i := range b.r.History.Path {
		if m := &b.r.History.Path[i]; !has(h, m.ID) {
			h.Elsewhere[m.ID] = m.Role
		}
	}
	maps.Copy(h.Calls, b.r.History.Calls)
	h.Branched = true
	b.r.History, b.st.Leaf, b.st.Count = h, leaf, len(h.Path)
	b.st.Prompt = b.st.Prompt.Branched()
	return true, nil
}

// has reports whether a message is on the path.
func has(h *thread.History, id string) bool {
	_, on := h.Index[id]
	return on
}

// forget drops what was recorded when the history branched by itself: the next message asks
// for calls of its own.
func (b *beginning) forget() {
	if len(b.st.Happened) == 0 {
		return
	}
	for _, values := range b.r.Recorded {
		for _, v := range values {
			b.c.Delete = append(b.c.Delete, store.ValueID{Kind: store.KindReuse, ID: v.ID})
		}
	}
	b.r.Recorded, b.st.Happened, b.st.Reuse = nil, nil, false
}
