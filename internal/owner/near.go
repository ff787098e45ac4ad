package owner

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/watch"
	"github.com/holdfast-agents/holdfast/store"
)

// near returns a stream of a run that lives in this process, after a record that the run
// still has in memory; nil if the store must be asked. Most clients that come back have lost
// only the connection, and many may come back at once: what they lack costs no command.
func (e *Engine) near(who holdfast.Principal, id, run string, after store.Cursor) *watch.Stream {
	key := store.ThreadKey{Tenant: who.Tenant, Thread: id}
	r := e.local(key)
	if r == nil || r.start.Rec.ID != run || r.start.Rec.User != who.User {
		return nil
	}
	rec, has := r.feed.At(after)
	if !has {
		return nil
	}
	switch agui.TypeOf(rec.Data) {
	case agui.TypeRunFinished, agui.TypeRunError: // nothing follows
		return nil
	}
	return e.streams.Follow(key, r.start.Rec, after, watch.Viewer{})
}
