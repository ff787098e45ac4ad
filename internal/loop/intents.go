package loop

import (
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The intents of a run's calls.

// intents are what the store is told of a run's calls before they start.
type intents struct{ r *run }

// put adds to a commit the intents of the calls that are about to start.
func (r intents) put(c *store.Commit) {
	for i := range r.r.st.Calls {
		if call := &r.r.st.Calls[i]; r.r.hasEffects(*call) && call.Given == nil && call.Own == nil && !call.Waits() &&
			!call.WaitsOutside() {
			r.r.marks.note(c)
			r.r.tools.Load().
				Intend(c, r.r.keyOf(call), call, r.r.hist,
					thread.Intent{Fence: r.r.w.Fence, At: r.r.host.Config.Now().Time()})
		}
	}
}

// unstarted reports whether the call has an intent, and nobody has started it: neither an owner
// before, nor this one, which does not start it any more.
func (r intents) unstarted(call *thread.Call) bool {
	stored := !call.Frontend && call.Own == nil && call.Given == nil && call.Outside == nil && !call.Waits()
	begun := call.InDoubt || call.Unknown || call.Kept != nil || r.r.doubted[call.ID] || r.r.starts.has(call.ID)
	return stored && !begun
}

// takeBack adds to a commit which calls were never started. fence is the owner's.
func (r intents) takeBack(c *store.Commit, fence store.Fence) {
	r.r.starts.end()
	for i := range r.r.st.Calls {
		call := &r.r.st.Calls[i]
		if !r.unstarted(call) || !r.r.hasEffects(*call) {
			continue
		}
		c.Put = slices.DeleteFunc(c.Put, func(v store.Value) bool {
			return v.Kind == store.KindIntent && v.ID == call.ID
		})
		r.r.marks.note(c)
		intent := thread.Intent{
			Fence:      fence,
			At:         r.r.host.Config.Now().Time(),
			Effect:     holdfast.EffectOnce,
			NotStarted: true,
		}
		if _, there := r.r.tools.Find(call.Name); !there { // what it declares is not known here
			thread.PutIntent(c, r.r.keyOf(call), call, r.r.hist, intent)
			continue
		}
		r.r.tools.Load().Intend(c, r.r.keyOf(call), call, r.r.hist, intent)
	}
}

// passOn hands over a run that does not start here any more, and says first that none of its calls
// was started.
func (r *run) passOn(head *store.Head) {
	h := r.host
	c := &store.Commit{
		Key:       r.key,
		ID:        h.Config.NewID("c"),
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		Process:   head.Process,
		UpdatedAt: h.Config.Now().Time(),
	}
	if (intents{r}).takeBack(c, head.Fence); len(c.Put) > 0 {
		if _, err := h.CommitAlone(context.Background(), r.place(), c); err != nil {
			h.Config.Log.Warn("calls that were not started are in doubt",
				"thread", r.key.Thread, "run", r.rec.ID, "error", err)
		}
	}
	h.HandOver(r.key)
}
