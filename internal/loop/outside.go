package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// Calls that are finished from outside, while their run lives here. Such a call goes through
// the Tool hooks twice, like one that asks a person: first it is handed out, with the token
// of its URL committed before anybody gets it, and waits; then it is made again with what
// has come, and returns that. A process that dies while it hands a call out is followed by
// one that does so again. finish.go takes what comes.

// saveHandedOut makes a call of the run wait for its result.
func saveHandedOut(r *run, call thread.Call) error {
	o := outsideOf(&r.tools, call.Name)
	r.st.Call(call.ID).HandedOut(expiry(&r.host.Config, o), o.Abandonable)
	r.host.Config.Observer.OutsideCalled(r.place(), call.Name, observe.OutsideHandedOut)
	return r.w.Step(nil, func(c *store.Commit, _ store.Cursor) {
		// It is not in doubt: it is made again with its result.
		c.Delete = append(c.Delete, store.ValueID{Kind: store.KindIntent, ID: call.ID})
		r.saveState(c)
	})
}

// OutsideEnded tells the observer how an outside call ended; nothing of other calls.
func (h *Host) OutsideEnded(at holdfast.Iteration, call *thread.Call) {
	if call.Outside != nil {
		h.Config.Observer.OutsideCalled(
			at,
			call.Name,
			observe.OutsideResult(call.OutsideEnd(h.Config.Now().Time()).End),
		)
	}
}
