package loop

import (
	"encoding/json"
	"errors"
	"slices"

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
	if mine && in.Type == ItemState && in.State != nil {
		return r.change(it.Number, in.State)
	}
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
			r.amend(c, func(st *thread.State) {
				in.Amend(c, st, r.r.host.Config.Now().Time(), r.r.host.Config.KeepCheckpoints)
				r.r.st.Described, r.r.st.Checkpoints, r.r.st.LastCheckpoint = st.Described, st.Checkpoints,
					st.LastCheckpoint
			})
		}
	})
}

// change changes the shared state as an item says, and has the log say what came of it, in one commit with
// which the item is taken. An owner that follows finds the item, or its change.
func (r mail) change(item uint64, p *thread.StatePatch) error {
	r.r.shared.mu.Lock()
	defer r.r.shared.mu.Unlock()
	if item <= r.r.st.StateItem || slices.Contains(r.r.st.StatePatches, p.ID) {
		// It is made, and the item could not be removed, or has come twice.
		return r.r.w.Add(nil, journal.Soon, func(*store.Commit, store.Cursor) { r.r.inbox.seen = item })
	}
	said := thread.PatchedState{Request: p.ID}
	c, err := r.patched(p)
	if err != nil {
		said.Refuse(err)
	} else {
		said.Version = r.r.shared.version.Name()
	}
	ev := agui.Custom{Name: thread.StatePatched, Value: thread.MustJSON(said)}
	ev.Timestamp = r.r.now()
	return r.r.w.Add(append(shown(r.r.w, c), ev), journal.AtOnce, func(to *store.Commit, _ store.Cursor) {
		r.r.inbox.seen = item
		into(r.r.st, c)(to)
		thread.NotePatch(&r.r.st.StateWork, p.ID)
		if r.r.inbox.owed {
			r.r.st.StateItem = item
		}
		r.amend(to, func(st *thread.State) { st.Shared, st.StateWork = r.r.st.Shared, r.r.st.StateWork })
	})
}

// patched makes the version of the shared state after a patch; nil if it leaves it as it was.
func (r mail) patched(p *thread.StatePatch) (*thread.SharedChange, error) {
	next, err := p.Apply(&r.r.shared.version)
	if err != nil {
		return nil, err
	}
	return r.r.shared.change(r.r.ctx, r.r.agent.Shared, next, func(next json.RawMessage) *thread.SharedChange {
		cfg := &r.r.host.Config
		return r.r.shared.version.Change(next, cfg.NewID("s"), r.r.st.Format, "", cfg.Now().Time())
	})
}

// amend changes the thread in a commit that leaves everything else as it was stored last. The
// run's goroutine may have changed its state since.
func (r mail) amend(c *store.Commit, change func(st *thread.State)) {
	st, err := thread.DecodeState(r.r.stored)
	if err != nil {
		return // this process wrote it
	}
	change(st)
	c.Key, c.User = r.r.key, r.r.rec.User
	thread.Save(c, st)
	r.r.stored = c.State
	if !r.r.inbox.owed {
		c.InboxSeen = r.r.inbox.seen
	}
}
