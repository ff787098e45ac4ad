package loop

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// inboxItem is what another process or a request leaves for the owner.
type inboxItem struct {
	Type string `json:"type"` // cancel
	Run  string `json:"run"`
}

// readInbox cancels the run if somebody has asked for it.
func (r *run) readInbox() {
	items, err := r.host.cfg.Store.Inbox(r.ctx, r.key)
	if err == nil && r.wantsCancel(items) {
		r.cancel(errCancelled)
	}
}

func (r *run) wantsCancel(items []holdfast.InboxItem) bool {
	for _, it := range items {
		r.inboxSeen.Store(it.Number)
		var in inboxItem
		if json.Unmarshal(it.Data, &in) == nil && in.Type == "cancel" && in.Run == r.rec.ID {
			return true
		}
	}
	return false
}
