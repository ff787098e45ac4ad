package loop

import (
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// marks tracks whether the store holds intents or pending writes of a run, so that a
// checkpoint does not clear what is not there.
type marks struct {
	// none means that after the run last cleared them there were none, and that none were
	// put into a commit before in.
	none bool
	// in is the newest commit that puts any; nil if none does since they were cleared.
	in *store.Commit
}

// note is called for a commit that puts intents or pending writes.
func (m *marks) note(c *store.Commit) {
	if m.in != nil && m.in != c {
		m.none = false
	}
	m.in = c
}

// clear has the commit remove them, because its checkpoint holds the results.
func (m *marks) clear(c *store.Commit) {
	cleared := c.Clear
	thread.ClearMarks(c)
	if m.none && (m.in == nil || m.in == c) {
		c.Clear = cleared
	}
	m.none, m.in = true, nil
}
