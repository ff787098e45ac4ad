package loop

import (
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A message of an answer that has several; see going.go.

// goOn reads the next message of a model that continues, and begins its stream if there is none.
func (a *completion) goOn(ctx context.Context) error {
	r := a.r
	if r.going == nil {
		ctx, cancel := context.WithCancel(ctx)
		answer := r.chain.CallModel(ctx, a.request())
		r.going = newGoing(answer, a.chosen, cancel, func(p any) error { return r.chain.ModelPanicked(ctx, p) })
	}
	g := r.going
	a.chosen = g.chosen
	err := a.readMessage(g)
	if err == nil {
		r.losses = 0
	}
	if err != nil || !a.more {
		listener{r}.endGoing()
	}
	return err
}

// readMessage reads deltas to the end of a message.
func (a *completion) readMessage(g *going) error {
	for {
		d, err := g.read()
		if err != nil && a.r.ctx.Err() != nil {
			return context.Cause(a.r.ctx)
		}
		if over, err := a.receive(&d, err); over || err != nil {
			return err
		}
	}
}

// noteBegun stores what the message would be if its stream ended here.
func (a *completion) noteBegun() error {
	r := a.r
	own := *a
	own.sequence = slices.DeleteFunc(slices.Clone(a.sequence), func(c *callBuilder) bool { return c.own == nil })
	r.st.Begun = &thread.Begun{
		After:    r.st.Leaf,
		Messages: thread.RawMessages(own.messages(true)),
		Calls:    thread.MustJSON(own.openCalls()),
	}
	return r.w.Add(nil, journal.AtOnce, func(c *store.Commit, _ store.Cursor) { r.saveState(c) })
}
