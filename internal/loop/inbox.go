package loop

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/panics"
	"github.com/holdfast-agents/holdfast/store"
)

// inboxItem is what a request, possibly in another process, leaves for a run's owner.
type inboxItem struct {
	Type string `json:"type"` // always cancel
	Run  string `json:"run"`  // the run that it is for
}

// readInbox cancels the run if somebody asked for it.
func (r *run) readInbox() {
	err := panics.Caught(func() error {
		items, err := r.host.cfg.Store.Inbox(r.ctx, r.key)
		if err == nil && r.wantsCancel(items) {
			r.cancel(errCancelled)
		}
		return err
	})
	if err != nil && r.ctx.Err() == nil {
		r.host.cfg.Log.Warn("the inbox could not be read", "thread", r.key.Thread, "run", r.rec.ID, "error", err)
	}
}

// wantsCancel reports whether one of the items cancels this run, and notes what was read.
func (r *run) wantsCancel(items []store.InboxItem) bool {
	for _, it := range items {
		r.inboxSeen.Store(it.Number)
		var in inboxItem
		if json.Unmarshal(it.Data, &in) == nil && in.Type == "cancel" && in.Run == r.rec.ID {
			return true
		}
	}
	return false
}
