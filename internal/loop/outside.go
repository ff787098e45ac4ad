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

// arrived gives open calls the results that have come, the first one to each, and makes
// those calls again; it returns how many more calls will finish. A call that is being handed
// out is made again when that has ended; see again.
func (b *batch) arrived() (running int) {
	for _, a := range b.r.arrivals.take() {
		call := b.r.st.Call(a.Call)
		if call == nil || call.Outside == nil || call.Finished() != nil || call.Given != nil {
			continue
		}
		a.Result.Run = b.r.rec.ID
		call.Finish(a.Result)
		if cut := b.inFlight[call.ID]; cut != nil {
			cut(errResultCame)
			continue
		}
		b.start(*call)
		running++
	}
	return running
}

// again makes a call again whose result has come while it was handed out. It reports false
// for any other.
func (b *batch) again(f *finished) bool {
	call := b.r.st.Call(f.call.ID)
	if call == nil || call.Finished() == nil || f.call.Finished() != nil {
		return false
	}
	b.start(*call)
	return true
}
