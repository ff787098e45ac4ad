package thread

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// The thread's status, and how its last run ended, are moved by the transitions in this file
// and by nothing else, so whatever a crash leaves behind is a status that a thread can have.

// standing is where a thread stands: what it does, and how its last run ended. Its
// fields are set in this file only. All other code moves a thread by one of these
// transitions, and any other transition is an error:
//
//	idle, interrupted, stopped  --Begin-->  running
//	running                     --End-->    idle
//	running                     --Wait-->   interrupted
//	running                     --Stop-->   stopped
//
// Going back to an earlier state is not a step of a run: Rewind and Rest turn a state
// that was taken in mid-run into one that a thread can stand in. Whether the owner of a
// running thread is alive is never stored: it follows from the owner's lease.
type standing struct {
	status  threads.Status
	run     string
	outcome holdfast.Outcome
	code    string
	text    string // for developers
	person  string // for the person in front of the page
}

// ErrTransition is a mistake of the caller: the thread cannot make this transition from
// where it stands.
var ErrTransition = errors.New("no such transition")

// New returns the state of a thread without history.
func New() *State {
	return &State{Format: FormatBefore, standing: standing{status: threads.StatusIdle}}
}

// Status returns what the thread does.
func (s *standing) Status() threads.Status { return s.status }

// Running reports whether a run is under way.
func (s *standing) Running() bool { return s.status == threads.StatusRunning }

// Run returns the id of the running or last run.
func (s *standing) Run() string { return s.run }

// Outcome returns how the last run ended; empty while it runs.
func (s *standing) Outcome() holdfast.Outcome { return s.outcome }

// Code returns the error code of a run that ended in an error.
func (s *standing) Code() string { return s.code }

// Failure returns the event with which that run ended. An end that was stored by an earlier
// version has one text for everybody.
func (s *standing) Failure() agui.RunError { return agui.StoredRunError(s.code, s.person, s.text) }

// wentBack reports whether the thread stands in the middle of a run that it was taken back
// into, or that it was forked from: the run has not failed, but has not ended either.
func (s *standing) wentBack() bool {
	return s.status == threads.StatusStopped && s.code == codes.MidExecution
}

// Ended returns how the last run ended, as its reader is told: the outcome is empty for one
// that has not.
func (s *standing) Ended() (outcome holdfast.Outcome, code, text string) {
	if s.wentBack() {
		return "", "", s.text
	}
	return s.outcome, s.code, s.text
}

// allow returns an error unless ok, which says whether the thread may make the
// transition.
func (s *standing) allow(ok bool, transition string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s a thread that is %s: %w", transition, s.status, ErrTransition)
}

// Begin starts a run of the agent on a thread that does not run. The run counts its
// takeovers and its usage from zero. It returns ErrTransition if a run is under way.
func (s *State) Begin(run, agent string) error {
	if err := s.allow(!s.Running(), "begin a run on"); err != nil {
		return err
	}
	s.standing = standing{status: threads.StatusRunning, run: run}
	s.Agent, s.GrantedAt, s.Usage = agent, s.Iteration, nil
	s.Misfit, s.Output = nil, ""
	s.Advanced()
	return nil
}

// Advanced notes that the run has finished a step, so it counts its takeovers from zero.
func (s *State) Advanced() { s.Takeovers, s.Retaken = 0, 0 }

// End ends the run with nothing left to do. The outcome must be success or cancelled; for
// any other, and for a thread that does not run, it returns ErrTransition.
func (s *State) End(outcome holdfast.Outcome) error {
	ends := outcome == holdfast.OutcomeSuccess || outcome == holdfast.OutcomeCancelled
	if err := s.allow(s.Running() && ends, "end with "+string(outcome)); err != nil {
		return err
	}
	s.to(threads.StatusIdle, outcome, nil)
	return nil
}

// Wait ends the run with its open questions. It returns ErrTransition if there is none,
// because nobody could answer it, or if no run is under way.
func (s *State) Wait() error {
	if err := s.allow(s.Running() && len(s.Interrupts()) > 0, "wait on"); err != nil {
		return err
	}
	s.to(threads.StatusInterrupted, holdfast.OutcomeInterrupt, nil)
	return nil
}

// Stop ends the run with an error; an empty-messages POST continues from here. It returns
// ErrTransition if no run is under way.
func (s *State) Stop(cause *holdfast.Error) error {
	if err := s.allow(s.Running(), "stop"); err != nil {
		return err
	}
	s.to(threads.StatusStopped, holdfast.OutcomeError, cause)
	return nil
}

// Rewind takes the state back to a message after which nothing is open.
func (s *State) Rewind(leaf string) {
	s.to(threads.StatusIdle, holdfast.OutcomeSuccess, nil)
	s.Leaf, s.Iteration, s.Model, s.Prompt = leaf, 0, "", s.Prompt.Branched()
	s.Calls, s.Queued, s.Open, s.Question = nil, nil, false, nil
	s.Misfit, s.Output, s.More, s.Begun = nil, "", false, nil
}

// Rest turns a state that was taken in mid-run into one that a thread can stand in: it
// waits if a question is open, and is stopped for the given reason if not. So is one whose
// outside calls were taken in. Any other state stays as it is.
func (s *State) Rest(reason *holdfast.Error) {
	switch {
	case len(s.Interrupts()) > 0:
		s.to(threads.StatusInterrupted, holdfast.OutcomeInterrupt, nil)
	case s.Running(), s.status == threads.StatusIdle && s.unfinished():
		s.to(threads.StatusStopped, holdfast.OutcomeError, reason)
	}
}

// unfinished reports whether a call is open that only a run can bring further.
func (s *State) unfinished() bool {
	return slices.ContainsFunc(s.Calls, func(c Call) bool { return !c.Frontend && !c.WaitsOutside() })
}

// to sets where the thread stands. The run stays the thread's last one.
func (s *State) to(status threads.Status, outcome holdfast.Outcome, cause *holdfast.Error) {
	s.standing = standing{status: status, run: s.run, outcome: outcome}
	s.Waiting = nil
	if cause != nil {
		s.code, s.text, s.person = cause.Code, agui.FullText(cause), agui.PersonText(cause)
	}
}

// GoesOn reports whether a thread that rests has outside calls, and waits for nothing any
// more: each has its result, or has expired. A run can then go on, and nobody else starts it.
func (s *State) GoesOn(now time.Time) bool {
	outside := false
	for i := range s.Calls {
		c := &s.Calls[i]
		outside = outside || c.Outside != nil
		if c.Frontend || c.Waits() || c.WaitsOutside() && !c.Expired(now) {
			return false
		}
	}
	return outside && s.status == threads.StatusIdle && !s.Question.Waits()
}

// RunEnd returns how the thread's last run ended, at that time and with the number of
// its last record.
func (s *State) RunEnd(at time.Time, last uint64) RunEnd {
	outcome, code, text := s.Ended()
	return RunEnd{
		Outcome: outcome,
		Code:    code,
		Text:    text,
		EndedAt: at,
		Last:    last,
		Usage:   s.Usage,
	}
}
