package loop

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// A run from its beginning in this process to its end: it ends here, or is left to another
// process. However its goroutine ends, the thread has an end or a wait that the log shows, or no
// living owner, so that the process that finds it takes it over.

// Run is a run in this process, until it ends here or is left to another one.
type Run struct {
	run  *run
	head *store.Head // after its first commit in this process
}

// New returns a run, which begins with Begin. head is the head after its first commit in
// this process, and first are the records of that.
func New(h *Host, s *Start, head *store.Head, first []store.Record) *Run {
	r := s.run(h)
	r.prepare(head, first)
	return &Run{run: r, head: head}
}

// Begin gives the run its journal: from now on it can be watched and written to. asked is when
// the commit was sent that made this process the owner, and seq is the stream after it.
func (x *Run) Begin(asked clock.Moment, seq agui.Sequencer) {
	r := x.run
	r.w = journal.New(r.writerConfig(asked), x.head, seq)
	r.owner = owner{
		ctx:   r.ctx,
		cfg:   &r.host.Config,
		lease: r.host.lease,
		w:     r.w,
		key:   r.key,
		leave: r.cancel,
		sole:  r.side,
	}
	r.host.Config.Observer.RunStarted(r.place(), r.resumed, r.results)
}

// Main runs it to its end in this process.
func (x *Run) Main() { x.main() }

// ReadInbox takes what has come for it since the inbox was last read.
func (x *Run) ReadInbox() { mail{x.run}.read() }

// Cancel ends the run with a cause.
func (x *Run) Cancel(cause error) { x.run.cancel(cause) }

// Spec returns the specification of one of its tools; the zero one of a tool that it does not
// have.
func (x *Run) Spec(tool string) holdfast.ToolSpec { return x.run.tools.Spec(tool) }

// Feed returns what its watchers read.
func (x *Run) Feed() *journal.Feed { return x.run.feed }

// PassOn hands the run over instead of beginning it here.
func (x *Run) PassOn() { x.run.passOn(x.head) }

// main is the run's goroutine.
func (x *Run) main() {
	routine.WarmStack()
	err := x.guard()
	(listener{x.run}).endGoing()
	if err != nil {
		x.conclude(err)
	}
	x.run.cancel(nil)
	close(x.run.over)
}

// conclude brings a run to its end after an error, or leaves it to another process.
func (x *Run) conclude(err error) {
	if err = x.end(err); err != nil {
		// The run stops here without an end in the log, because the server stops, or the
		// fence or the store is lost. It continues from the thread's head elsewhere.
		x.leave(err)
		x.run.host.Config.Observer.RunEnded(x.run.place(), observe.OutcomeLeft, "", x.run.started.Ran())
		x.run.log.Info("run left to be recovered", "thread", x.run.key.Thread, "run", x.run.rec.ID, "reason", err)
	}
}

// LastCommit is how long a run that was cut off may try to commit what it has finished: a
// store that does not answer must not keep the process.
const LastCommit = 3 * time.Second / 4

// leave stops the journal. At a shutdown it first commits what is finished, with this
// process still named as the owner, and then hands the thread over, unless calls still go on
// here that the next owner would make again.
func (x *Run) leave(cause error) {
	if errors.Is(cause, ErrStopped) {
		// If this cannot be committed, the calls stay in doubt.
		_ = x.run.w.Add(nil, journal.WithNext, func(c *store.Commit, _ store.Cursor) {
			intents{x.run}.takeBack(c, x.run.w.Fence)
		})
		ctx, cancel := context.WithTimeout(context.WithoutCancel(x.run.ctx), LastCommit)
		defer cancel()
		if err := x.run.w.Close(ctx, x.run.host.Process); err == nil {
			if !x.run.busy {
				x.run.host.HandOver(x.run.key)
			}
			return
		}
	}
	x.run.w.Abandon(cause)
}

// guard runs the run through the Run hooks to its end, and turns a panic of this package
// into an error.
func (x *Run) guard() (err error) {
	defer func() {
		if p := recover(); p != nil {
			x.run.log.Error("panic in a run",
				"thread", x.run.key.Thread, "run", x.run.rec.ID, "panic", p, "stack", string(debug.Stack()))
			err = holdfast.AsError(errors.New("panic"))
		}
	}()
	var end *conclusion
	run := x.run.chain.Around(func(ctx context.Context, _ *holdfast.Iteration) (string, error) {
		if x.run.inner = ctx; x.run.cancelled {
			return "", errCancelled // nothing may start
		}
		var err error
		if end, err = x.run.iterate(); err == nil && x.run.side {
			end, err = end.alone()
		}
		if err != nil {
			return "", err
		}
		return string(end.shown.Type), nil
	})
	if _, err := run(x.run.ctx, x.run.at.Load()); err != nil {
		return err
	}
	if end == nil {
		return holdfast.Errorf(codes.MiddlewareFailed, "A middleware has ended the run without a reason.").
			WithHint("A Run hook calls next, or returns an error that says why it does not.")
	}
	return x.finish(end)
}

// finish ends the run with RUN_FINISHED, as its conclusion says.
func (x *Run) finish(end *conclusion) error {
	ev := agui.RunFinished{
		ThreadID: x.run.key.Thread,
		RunID:    x.run.rec.ID,
		Result:   resultOf(x.run.hist, x.run.st.Output, end),
		Outcome:  end.shown,
		Usage:    x.run.st.Usage,
	}
	ev.Timestamp, ev.Metadata = x.run.now(), thread.OutsideMetadata(x.run.st.OutsideCalls())
	return x.close(ev, end.move(x.run.st), thread.OutsideNotice(x.run.st.OutsideCalls(), x.run.now())...)
}

// close ends the run with its last event, what is to be said before it, its state and the final
// checkpoint in one commit, and waits for it. moved is the error of the state's transition.
func (x *Run) close(ev agui.Event, moved error, before ...agui.Event) error {
	if moved != nil {
		return moved
	}
	x.run.st.Ending = nil
	activities, shown := growth{x.run}.recorded(true)
	failed, err := x.keepFailed()
	if err != nil {
		return err
	}
	stored := growth{x.run}.plant(append(failed, activities...))
	if x.run.failed != nil {
		shown = append(shown, agui.MessagesRef{Leaf: x.run.st.Leaf}) // it shows the mark, and removes what was not kept
	}
	x.run.shared.mu.Lock() // nothing changes it any more
	defer x.run.shared.mu.Unlock()
	if x.run.w.Predicts() {
		shown = append(shown, stateShown(x.run.shared.version))
	}
	etag := ""
	err = x.run.w.Finish(context.WithoutCancel(x.run.ctx), append(append(shown, before...), ev),
		func(c *store.Commit, last store.Cursor) {
			etag = c.ID
			c.Messages = append(c.Messages, stored...)
			x.run.st.Boundary, x.run.st.Steps = last, nil
			x.run.countBytes()
			x.run.listCheckpoint(c, x.run.labels.take(true), x.run.host.Config.Frequency != Manual)
			// A thread that is stopped or waits still needs them.
			if x.run.st.Status() == threads.StatusIdle {
				x.run.marks.clear(c)
			} else {
				intents{x.run}.takeBack(c, x.run.w.Fence)
			}
			c.InboxSeen = x.run.inbox.seen
			thread.PutRunEnd(c, x.run.rec.ID, x.run.st.RunEnd(x.run.host.Config.Now().Time(), last.Number))
			x.run.saveState(c)
		})
	if err != nil {
		return err
	}
	x.run.host.Read.Kept.Put(x.run.key, etag, x.run.st.Leaf, x.run.hist)
	x.run.host.Config.Observer.RunEnded(x.run.place(), x.run.st.Outcome(), x.run.st.Code(), x.run.started.Ran())
	x.run.host.Config.Ended(x.run.key)
	return nil
}

// end brings a run to its end after an error. It returns an error if it cannot: the log
// cannot be written, or another process is to continue the run.
func (x *Run) end(cause error) error {
	failed := cause
	if c := context.Cause(x.run.ctx); c != nil {
		cause = c
	}
	switch {
	case errors.Is(cause, ErrStopped),
		errors.Is(cause, store.ErrFenced),
		errors.Is(cause, store.ErrConflict),
		errors.Is(cause, journal.ErrClosed):
		return cause
	case !x.run.st.Running(): // it had come to its end, which could not be stored
		return failed
	case errors.Is(cause, errCancelled):
		return x.endCancelled()
	}
	pub := publicError(cause)
	attrs := []any{"thread", x.run.key.Thread, "run", x.run.rec.ID, "iteration", x.run.st.Iteration, "code", pub.Code}
	x.run.log.Warn("run failed", append(append(attrs, x.run.modelAttrs(cause)...), "error", cause)...)
	ev := agui.NewRunError(pub)
	ev.Usage, ev.Timestamp = x.run.st.Usage, x.run.now()
	return x.close(ev, x.run.st.Stop(pub))
}

// keepFailed closes what the run has shown of an answer in whose middle it has failed, and
// returns what is kept of that.
func (x *Run) keepFailed() ([]agui.Message, error) {
	if x.run.failed == nil {
		return nil, nil
	}
	return thread.FailedOf(x.run.failed()), x.run.w.CloseOpen()
}

// endCancelled closes what is unfinished and ends the run as cancelled.
func (x *Run) endCancelled() error {
	if err := (listener{x.run}).restore(); err != nil {
		return err
	}
	if err := x.run.closeCalls(thread.TextCancelled); err != nil {
		return err
	}
	return x.finish(cancelled())
}
