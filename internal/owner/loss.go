package owner

import (
	"time"

	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// loss is how a run has lost its owner.
type loss struct {
	why cause
	// cancelled means that the run waited for its revision, and is continued only to be
	// ended, because its user has cancelled it.
	cancelled bool
}

// cause is why a thread that claims to run has no owner, in the words of the log.
type cause string

const (
	notLost    cause = ""            // it has one
	dead       cause = "dead"        // the store knows that the owner's process is gone
	fellSilent cause = "silent"      // the owner's lease has ended; it may live
	handedOver cause = "handed over" // the owner has handed the thread over, and does not die with it
	gaveUp     cause = "given up"    // the owner is this process, and has left the run
)

// String returns the reason for the log.
func (l loss) String() string {
	if l.cancelled {
		return "cancelled"
	}
	return string(l.why)
}

// announceLoss has the log say, once the takeover is committed, from whom the run was taken
// over, why, and how long nothing had been committed to its thread.
func (h *house) announceLoss(next *begun, t *thread.Thread, how loss) {
	accepted := next.accepted
	next.accepted = func() {
		headers.LogTrace(h.cfg.Log, next.start.Rec.Traceparent).Warn("run taken over",
			"thread", t.Key.Thread, "run", t.State.Run(), "iteration", t.State.Iteration, "from", t.Head.Process,
			"why", how.String(), "after", h.cfg.Now().Age(t.Head.UpdatedAt).Round(time.Millisecond))
		accepted()
	}
}
