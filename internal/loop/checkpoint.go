package loop

import (
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The checkpoints of a run.

// checkpoint lists the state between two iterations. It does not wait: what follows is
// committed with it or after it.
func (r *run) checkpoint() error {
	return r.w.Add(nil, journal.Soon, func(c *store.Commit, last store.Cursor) {
		r.st.Boundary, r.st.Steps = last, r.w.OpenSteps()
		r.listCheckpoint(c, r.labels.take(false), r.host.Config.Frequency == PerIteration)
		r.marks.clear(c)
		r.countBytes()
		r.saveState(c)
	})
}

// listCheckpoint adds a checkpoint of the state to a commit, if the frequency asks for one here, or
// a label does.
func (r *run) listCheckpoint(c *store.Commit, label string, frequent bool) {
	if r.st.Marked = label; frequent || label != "" {
		thread.AddCheckpoint(c, r.st, thread.SourceLoop, r.st.Iteration, r.host.Config.Now().Time(),
			r.host.Config.KeepCheckpoints)
	}
}

// countBytes adds what the run has written since the last time to the size of its thread,
// for the commit that stores it.
func (r *run) countBytes() {
	r.st.Bytes += r.w.Written()
	r.host.Config.Limits.Wrote(r.principal(), r.st.Bytes-r.counted)
	r.counted = r.st.Bytes
}
