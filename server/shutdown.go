package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/internal/routine"
)

// The end of a server. It is orderly as long as its time lasts: runs are handed over, streams
// end, requests are answered, the store is closed. Then what is left is cut off, and what
// does not even notice that is left behind: nothing that a request, a tool, a hook or a
// model does can keep the process from ending. The log says what that was.

const (
	// forcedAfter is how long after its time the end is waited for: longer than all of it
	// takes that is bounded by itself.
	forcedAfter = 4 * time.Second
	// requestsEnd is how long requests may take that are under way when the runs have ended.
	requestsEnd = 2 * time.Second
)

// Shutdown starts nothing new, lets running work reach its next boundary, ends the streams and
// closes the store. If ctx is done first, the work still in progress is cut off; it is
// recovered at the next start. Anything that ignores that is left behind a few seconds later;
// the error says so, and the store is not closed then.
func (s *Server) Shutdown(ctx context.Context) error {
	last, cancel := routine.Grace(ctx, forcedAfter)
	defer cancel()
	e := &ending{last: last}
	e.do("the clean-up of the store", func() error { s.keeper.Stop(); return nil })
	e.do("the server's announcement", s.operators.withdraw)
	e.do("the runs", func() error { return s.engine.Shutdown(ctx) })
	e.do("the accounts", func() error { s.limits.Flush(ctx); s.circuits.Close(); return nil })
	s.opening.open() // for what still waits for the start, which is told
	if s.front.listener != nil {
		// The streams have ended; only short requests are left.
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestsEnd)
		defer cancel()
		e.do("the connections", func() error { return errors.Join(s.front.shutdown(short), s.side.stop(short)) })
		e.left = append(e.left, s.front.handling.list()...)
	}
	e.do("the tools", func() error { return s.waitForTools(ctx) })
	if len(e.left) == 0 {
		e.do("the store", s.store.Close)
	}
	if s.cfg.Registerer != nil {
		s.cfg.Registerer.Unregister(s.metrics.Collector())
	}
	if len(e.left) > 0 {
		s.cfg.Log.Error("the shutdown did not wait any longer for what does not end", "left",
			strings.Join(e.left, ", "))
		e.err = errors.Join(e.err, fmt.Errorf("left behind without an end: %s", strings.Join(e.left, ", ")))
	}
	return e.err
}

// ending is a shutdown that is under way.
type ending struct {
	last context.Context // nothing is waited for any more once it is done
	err  error
	left []string // what has not ended
}

// do does a step, and waits for its end as long as there is time.
func (e *ending) do(what string, step func() error) {
	failed := make(chan error, 1)
	if !routine.Ends(e.last, func() { failed <- step() }) {
		e.left = append(e.left, what)
		return
	}
	err := <-failed
	e.err = errors.Join(e.err, err)
	e.left = append(e.left, routine.Left(err)...)
}

// waitForTools waits for tools that have outlived their timeout or their run, but not
// forever: a tool may ignore its context.
func (s *Server) waitForTools(ctx context.Context) error {
	last, cancel := routine.Grace(ctx, cutOffGrace)
	defer cancel()
	if !routine.Ends(last, s.tools.Wait) {
		return errors.New("a tool that ignores its context was left behind")
	}
	return nil
}
