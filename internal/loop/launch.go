package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
)

// launch starts the goroutine of a run whose first commit has been made. head
// is the head after that commit and first are its records. The caller holds a
// slot. At a shutdown nothing is started: the run has an owner that is about to
// die, and is taken over.
func (e *Engine) launch(r *run, head *holdfast.Head, seq agui.Sequencer, first []holdfast.Record) {
	r.prepare(e, head, first)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping() {
		e.freeSlot()
		return
	}
	r.w = journal.New(r.writerConfig(), head, seq)
	e.runs[r.key] = r
	e.cfg.Observer.RunStarted(r.place(), r.resumed, r.results)
	e.wg.Go(r.main)
	r.inbox.Go(r.readInbox) // something may have been posted before it was listed
}

// unlist implements lister.
func (e *Engine) unlist(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runs[r.key] == r { // the next run of the thread may have begun
		delete(e.runs, r.key)
	}
}

// takeSlot takes a place among the runs of this process; false if none is free.
func (e *Engine) takeSlot() bool {
	select {
	case e.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// freeSlot gives the place back.
func (e *Engine) freeSlot() { <-e.slots }
