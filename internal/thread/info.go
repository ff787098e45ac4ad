package thread

import (
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Info returns what the thread's owner may see of it.
func (t *Thread) Info() *threads.Info {
	info := &threads.Info{
		ID:               t.Key.Thread,
		Title:            t.State.Title,
		Hidden:           t.State.Hidden,
		CreatedAt:        t.State.CreatedAt,
		Agent:            t.State.Agent,
		Status:           t.State.Status(),
		Run:              t.State.Run(),
		Iteration:        t.State.Iteration,
		Cursor:           t.Last().String(),
		Interrupts:       t.State.Questions(),
		PendingToolCalls: t.State.PendingFrontend(),
		OutsideCalls:     t.State.OutsideCalls(),
		UpdatedAt:        t.Head.UpdatedAt,
		ETag:             PublicETag(t.Head.ETag),
		Waiting:          t.State.Waiting,
		Owner:            t.Head.Process,
	}
	if o := t.State.Origin; o != nil {
		info.Parent, info.ParentCheckpoint = o.Thread, o.Checkpoint
	}
	info.Outcome, info.Code, info.Text = t.State.Ended()
	return info
}

// Questions returns the open questions as the thread's owner may see them.
func (s *State) Questions() []threads.Interrupt {
	var list []threads.Interrupt
	for _, i := range s.Interrupts() {
		list = append(list, threads.Interrupt{
			ID:             i.ID,
			Reason:         i.Reason,
			Message:        i.Message,
			ToolCallID:     i.ToolCallID,
			ResponseSchema: i.ResponseSchema,
			ExpiresAt:      i.ExpiresAt,
			Metadata:       i.Metadata,
		})
	}
	return list
}

// PendingWrites returns the finished results that no checkpoint holds yet, in the order
// in which they finished.
func (rd Reader) PendingWrites(ctx context.Context, t *Thread) ([]threads.PendingWrite, error) {
	values, err := rd.Store.Values(ctx, t.Key, store.KindPending, "", 0)
	if err != nil {
		return nil, ReadError(t.Key, err)
	}
	if len(values) == 0 {
		return nil, nil
	}
	hist, err := rd.History(ctx, t.Key, t.State.Leaf)
	if err != nil {
		return nil, err
	}
	var list []threads.PendingWrite
	for _, v := range values {
		var p PendingWrite
		if err := Decode(v.Data, &p); err != nil {
			return nil, ReadError(t.Key, err)
		}
		w := threads.PendingWrite{
			CallID:      p.CallID,
			Tool:        p.Tool,
			Message:     p.Message,
			Failed:      p.Failed,
			Iteration:   p.Iteration,
			ThreadID:    t.Key.Thread,
			CompletedAt: p.CompletedAt,
		}
		if i, ok := hist.Index[p.Message]; ok {
			w.Result = hist.Path[i].Content
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b threads.PendingWrite) int { return hist.Index[a.Message] - hist.Index[b.Message] })
	return list, nil
}

// StateSnapshot returns a STATE_SNAPSHOT of the shared state in the blob id. A thread
// without shared state has an empty object.
func (rd Reader) StateSnapshot(ctx context.Context, key store.ThreadKey, id string) ([]byte, error) {
	state, err := rd.Shared(ctx, key, id)
	if err != nil {
		return nil, err
	}
	if state == nil {
		state = []byte("{}")
	}
	return agui.AppendStateSnapshot(nil, id, state), nil
}
