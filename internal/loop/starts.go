package loop

import (
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// An intent is stored before its call starts, so whoever finds one cannot tell a call that was
// cut off from one that never began. The owner can. When it leaves the run, or ends it, it says
// in its last commit which calls it has not started; from then on they cannot start here. The
// next owner starts them like any other call, and stores their intents again first.

// starts are the calls of a run that were started in this process.
type starts struct {
	mu   sync.Mutex
	ids  map[string]bool
	over bool // nothing starts any more
}

// begin notes that a call starts now. It returns false if it must not.
func (s *starts) begin(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[call] = true
	return true
}

// forget is called when all calls have their results.
func (s *starts) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = nil
}

// end has nothing start any more.
func (s *starts) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func (s *starts) has(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[call]
}

// unstarted reports whether the call has an intent, and nobody has started it: neither an owner
// before, nor this one, which does not start it any more.
func (r *run) unstarted(call *thread.Call) bool {
	stored := !call.Frontend && call.Given == nil && call.Outside == nil && !call.Waits()
	begun := call.InDoubt || call.Unknown || call.Kept != nil || r.doubted[call.ID] || r.starts.has(call.ID)
	return stored && !begun
}

// takeBackIntents adds to a commit which calls were never started. fence is the owner's.
func (r *run) takeBackIntents(c *store.Commit, fence store.Fence) {
	r.starts.end()
	for i := range r.st.Calls {
		call := &r.st.Calls[i]
		if !r.unstarted(call) || !r.hasEffects(*call) {
			continue
		}
		c.Put = slices.DeleteFunc(c.Put, func(v store.Value) bool { return v.Kind == store.KindIntent && v.ID == call.ID })
		r.marks.note(c)
		intent := thread.Intent{Fence: fence, At: r.host.cfg.Now(), NotStarted: true}
		r.tools.Load().intend(c, r.keyOf(call), call, r.hist, intent)
	}
}
