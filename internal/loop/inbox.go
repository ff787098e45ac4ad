package loop

import (
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Only the owner of a run writes to its thread. Requests of others wait in the thread's inbox,
// which is durable: an owner that dies is followed by one that reads the same items.

// mail is a run as it reads its inbox.
type mail struct{ r *run }

// read takes what has come since it was last read.
func (r mail) read() {
	r.r.inbox.mu.Lock()
	defer r.r.inbox.mu.Unlock()
	err := routine.Caught(func() error {
		items, err := r.r.host.Config.Store.Inbox(r.r.ctx, r.r.key)
		for i := 0; err == nil && i < len(items); i++ {
			if items[i].Number > r.r.inbox.seen {
				err = r.take(&items[i])
			}
		}
		return err
	})
	if err != nil && r.r.ctx.Err() == nil && !errors.Is(err, journal.ErrClosed) {
		r.r.log.Warn("the inbox could not be read", "thread", r.r.key.Thread, "run", r.r.rec.ID, "error", err)
	}
}

// take does what an item says, if it is for this run.
func (r mail) take(it *store.InboxItem) error {
	var in Item
	mine := json.Unmarshal(it.Data, &in) == nil && in.Run == r.r.rec.ID
	var events []agui.Event
	if name, value := in.Notice(); mine && name != "" {
		ev := agui.Custom{Name: name, Value: value}
		ev.Timestamp = r.r.now()
		events = append(events, ev)
	}
	if mine && in.Type == ItemCancel {
		r.r.inbox.owed = true
		r.r.cancel(errCancelled)
	}
	if mine && in.Type == ItemResult && in.Result != nil {
		r.r.inbox.owed = true
		r.r.arrivals.add(OutsideResult{in.Call, *in.Result})
	}
	return r.r.w.Add(events, journal.Soon, func(c *store.Commit, _ store.Cursor) {
		r.r.inbox.seen = it.Number
		if len(events) > 0 {
			r.amend(c, &in.Amendment)
		}
	})
}

// amend changes the thread in a commit that leaves everything else as it was stored last. The
// run's goroutine may have changed its state since.
func (r mail) amend(c *store.Commit, a *thread.Amendment) {
	st, err := thread.DecodeState(r.r.stored)
	if err != nil {
		return // this process wrote it
	}
	a.Amend(c, st, r.r.host.Config.Now().Time(), r.r.host.Config.KeepCheckpoints)
	r.r.st.Described, r.r.st.Checkpoints, r.r.st.LastCheckpoint = st.Described, st.Checkpoints, st.LastCheckpoint
	c.Key, c.User = r.r.key, r.r.rec.User
	thread.Save(c, st)
	r.r.stored = c.State
	if !r.r.inbox.owed {
		c.InboxSeen = r.r.inbox.seen
	}
}
