package loop

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Only the owner of a run writes to its thread. Requests of others wait in the thread's inbox,
// which is durable: an owner that dies is followed by one that reads the same items.

// inboxItem is what a request, possibly in another process, leaves for a run's owner.
type inboxItem struct {
	Type string `json:"type"` // cancel, describe, mark or result
	Run  string `json:"run"`  // the run that it is for
	thread.Amendment
	// Call and Result are a call that is finished from outside, and what has come for it.
	Call   string                `json:"call,omitempty"`
	Result *thread.OutsideResult `json:"result,omitempty"`
}

const (
	itemCancel   = "cancel"
	itemDescribe = "describe"
	itemMark     = "mark"
	itemResult   = "result"
)

// inbox is what a run does with the items of its inbox.
type inbox struct {
	// readers are the goroutines that read; they start only while the run is listed in the
	// engine.
	readers sync.WaitGroup

	mu sync.Mutex // one reads at a time, so items are taken in their order
	// seen is the number of the newest item that was taken. It changes under mu and in the
	// writer's turn, so the commit that ends the run knows what it includes.
	seen uint64
	// owed means that an item has cancelled the run, or is a result that the run may not have
	// stored yet. Until its end no item is removed, so that the next owner would find that one.
	owed bool
}

// mail is a run as it reads its inbox.
type mail struct{ *run }

// read takes what has come since it was last read.
func (r mail) read() {
	r.inbox.mu.Lock()
	defer r.inbox.mu.Unlock()
	err := routine.Caught(func() error {
		items, err := r.host.cfg.Store.Inbox(r.ctx, r.key)
		for i := 0; err == nil && i < len(items); i++ {
			if items[i].Number > r.inbox.seen {
				err = r.take(&items[i])
			}
		}
		return err
	})
	if err != nil && r.ctx.Err() == nil && !errors.Is(err, journal.ErrClosed) {
		r.log.Warn("the inbox could not be read", "thread", r.key.Thread, "run", r.rec.ID, "error", err)
	}
}

// take does what an item says, if it is for this run.
func (r mail) take(it *store.InboxItem) error {
	var in inboxItem
	mine := json.Unmarshal(it.Data, &in) == nil && in.Run == r.rec.ID
	var events []agui.Event
	if name, value := in.Notice(); mine && name != "" {
		ev := agui.Custom{Name: name, Value: value}
		ev.Timestamp = r.now()
		events = append(events, ev)
	}
	if mine && in.Type == itemCancel {
		r.inbox.owed = true
		r.cancel(errCancelled)
	}
	if mine && in.Type == itemResult && in.Result != nil {
		r.inbox.owed = true
		r.arrivals.add(arrival{in.Call, *in.Result})
	}
	return r.w.Add(events, journal.Soon, func(c *store.Commit, _ store.Cursor) {
		r.inbox.seen = it.Number
		if len(events) > 0 {
			r.amend(c, &in.Amendment)
		}
	})
}

// amend changes the thread in a commit that leaves everything else as it was stored last. The
// run's goroutine may have changed its state since.
func (r mail) amend(c *store.Commit, a *thread.Amendment) {
	st, err := thread.DecodeState(r.stored)
	if err != nil {
		return // this process wrote it
	}
	a.Amend(c, st, r.host.cfg.Now().Time(), r.host.cfg.KeepCheckpoints)
	r.st.Described, r.st.Checkpoints, r.st.LastCheckpoint = st.Described, st.Checkpoints, st.LastCheckpoint
	r.stored = st.Encode()
	c.State = r.stored
	if !r.inbox.owed {
		c.InboxSeen = r.inbox.seen
	}
}

// saveState puts the run's state into a commit; the writer calls it.
func (r *run) saveState(c *store.Commit) {
	r.st.Marked = r.labels.joined()
	r.stored = r.st.Encode()
	c.State = r.stored
}
