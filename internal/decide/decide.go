// Package decide decides what a POST means. It is the step between reading a thread and
// the first commit: Compare finds what is new in the messages that a client sent, and
// Decide chooses an action by the state of the thread, the request and the agent's
// policy. It is pure: no store, no clock, no goroutine. A test walks every combination
// of inputs.
package decide

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// Decide is the table of the design as code. The caller reads the thread, asks Decide,
// and carries the action out with a commit that is conditional on the head it read. If
// the head has moved, it reads and decides again.

// Action is what a POST leads to.
type Action string

// The actions.
const (
	Reject    Action = "reject"  // answer with Decision.Err; nothing is touched
	Attach    Action = "attach"  // watch a run that is under way, from a snapshot
	FromStart Action = "again"   // watch a known run from its first record
	Hydrate   Action = "hydrate" // show where the thread stands; nothing runs
	Fresh     Action = "fresh"   // start a run with what is new
	Keep      Action = "store"   // keep some frontend results; calls are still open
	Resume    Action = "resume"  // continue where the thread stopped or waits
	Cancel    Action = "cancel"  // cancel the running run, then decide again
	Find      Action = "check"   // make Decision.Checks without a lock, then decide again
)

// Closing says why calls without a result are closed before a fresh run.
type Closing string

// The reasons.
const (
	CloseNothing     Closing = ""             // no call is closed
	CloseDeclined    Closing = "declined"     // the user writes on instead of answering
	CloseAbandoned   Closing = "abandoned"    // the unfinished work is given up
	CloseNotAnswered Closing = "not_answered" // the frontend or somebody outside sent no result
)

// Situation is all that Decide knows about the thread.
type Situation struct {
	// Exists is false for a thread that has no history.
	Exists bool
	Thread string         // its id
	Status threads.Status // what the thread does
	Run    string         // id of the running or last run
	Agent  string         // that run's agent
	// Iteration is named in errors.
	Iteration int
	Outcome   holdfast.Outcome // of the last run; empty while it runs
	// Incomplete means that the last message is a user's or a tool's, and that no run
	// ended after it.
	Incomplete bool
	Interrupts []agui.Interrupt // the open questions
	Pending    []string         // ids of the frontend's calls without a result
	// Outside are the open calls that were handed out to be finished from outside.
	Outside []OutsideCall
	// Answers are the hashes of the answers last given, by interrupt id.
	Answers map[string]string
	// Parameters are what the calls take that open questions are about, by interrupt id.
	Parameters map[string]Parameters
	// Known is the run that has the input's run id; nil if there is none.
	Known *KnownRun
}

// Parameters are what a tool takes.
type Parameters struct {
	Tool   string
	Schema json.RawMessage
}

// OutsideCall is an open call that is finished from outside.
type OutsideCall struct {
	ID string // of the call
	// Finished means that its result has come, or that it is too late for one: nothing waits
	// for it any more.
	Finished bool
	// Abandonable means that a new message gives the call up.
	Abandonable bool
}

// KnownRun is a run of the thread that the input names.
type KnownRun struct {
	// ID is the run id of the input, or the one that a run which resumes under a used id
	// has; see [ResumeRun].
	ID   string
	Hash string // of the input that started it
}

// Request is all that Decide knows about the input.
type Request struct {
	// Agent is the one that was asked for; empty means any.
	Agent    string
	RunID    string             // chosen by the client
	Hash     string             // of the input
	Policy   Policy             // see PolicyOf
	Compared Compared           // see Compare
	Resume   []agui.ResumeEntry // a person's answers
	Verdicts Verdicts           // of the checks that an earlier decision asked for
}

// Decision is what to do, and with what.
type Decision struct {
	Do    Action          // what the POST leads to
	Err   *holdfast.Error // set if Do is Reject
	Close Closing         // why open calls are closed first
	// Checks are what the decision depends on, if Do is Find.
	Checks []Check
	// Answers are the entries of resume that answer open interrupts.
	Answers []agui.ResumeEntry
	// Run is the id of the run to begin or to show from its first record; empty means the
	// one that the client chose.
	Run string
	// Warning is for the log: it says what in the input was ignored. It may be empty.
	Warning string
}

// goesBack reports whether the client asks for a new answer to an earlier message, in a
// way that cannot be the last request sent again.
func (r *Request) goesBack() bool { return r.Compared.Regenerate && !r.Compared.Retry }

func reject(err *holdfast.Error) Decision { return Decision{Do: Reject, Err: err} }

// Decide says what a POST means. It applies rules 0, 1, 3 and 4 of the design; the first
// one that fits wins. Rule 2 is Compare, whose result is in req. Decide is a pure
// function of its arguments. The commit that follows is conditional on the head that s
// was made from; after a conflict the caller reads and decides again.
func Decide(s Situation, req Request, now time.Time) Decision {
	if unfinished(s) && req.Agent != "" && req.Agent != s.Agent {
		return reject(errWrongAgent(s, req.Agent))
	}
	if s.Known != nil && (req.Hash == s.Known.Hash || !answersOpen(s, req.Resume)) {
		return decideKnown(s, req)
	}
	if req.Compared.Err != nil {
		return reject(req.Compared.Err)
	}
	if !s.Exists {
		return decideFirst(req)
	}
	if id := answersOutside(s, req.Resume); id != "" {
		return reject(errNotByResume(s, id))
	}
	// An answer belongs to where the thread waits, so it cannot come with a branch.
	resumes := s.Status == threads.StatusInterrupted && len(req.Resume) > 0
	if req.Compared.Diverged != nil && (!req.Policy.Branch || resumes) {
		return reject(req.Compared.Diverged)
	}
	switch s.Status {
	case threads.StatusRunning:
		return decideRunning(s, req)
	case threads.StatusInterrupted:
		return decideInterrupted(s, req, now)
	case threads.StatusStopped:
		return decideStopped(s, req)
	}
	return decideIdle(s, req)
}

// unfinished reports whether the thread has work of its agent left, so that no other
// agent can continue it.
func unfinished(s Situation) bool {
	return s.Exists && (s.Status != threads.StatusIdle || len(s.Pending) > 0 || len(s.Outside) > 0)
}

// decideKnown is rule 1: the run id is one of the thread's.
func decideKnown(s Situation, req Request) Decision {
	same := req.Hash == s.Known.Hash
	// A client that was cut off sends its answer again, with what it has seen since.
	repeated := len(req.Resume) == 0 || s.Run == s.Known.ID && answeredBefore(s, req.Resume)
	if same || !req.Compared.hasNew() && repeated {
		// A client that shows messages of its own run has seen a part of it. If it got
		// the run from its first record, it would show that part twice.
		if !same && req.Compared.ShowsCompletion && s.Run == s.Known.ID {
			if s.Status == threads.StatusRunning {
				return Decision{Do: Attach}
			}
			return Decision{Do: Hydrate}
		}
		return Decision{Do: FromStart, Run: s.Known.ID}
	}
	return reject(errRunIDReused(req.RunID))
}

// decideFirst is for a thread without history: scenarios 1 and 2 of the papers.
func decideFirst(req Request) Decision {
	if !req.Compared.hasNew() {
		return reject(errNothingToRun())
	}
	d := Decision{Do: Fresh}
	if len(req.Resume) > 0 {
		d.Warning = "resume ignored: the thread has no history"
	}
	return d
}

// decideRunning is for a thread with a run under way: watch it, or cancel it first.
func decideRunning(s Situation, req Request) Decision {
	if req.Compared.hasNew() || req.goesBack() && req.Policy.OnBusy == policyCancelAndRun {
		if req.Policy.OnBusy == policyCancelAndRun {
			return Decision{Do: Cancel}
		}
		return reject(errRunInProgress(s))
	}
	if len(req.Resume) > 0 && !answeredBefore(s, req.Resume) {
		return reject(errAlreadyAnswered(s))
	}
	return Decision{Do: Attach}
}

// decideInterrupted is for a thread that waits for answers. All of them must come at
// once.
func decideInterrupted(s Situation, req Request, now time.Time) Decision {
	answers, coversAll := coverage(s, req.Resume)
	if len(req.Resume) == 0 {
		if !req.Compared.hasNew() && !(req.goesBack() && req.Policy.OnInterrupted == policyDecline) {
			return Decision{Do: Hydrate}
		}
		if req.Policy.OnInterrupted == policyDecline {
			return closing(s, CloseDeclined)
		}
		return reject(errInterrupted(s))
	}
	if !coversAll {
		switch {
		case req.Compared.hasNew():
			return reject(errInterrupted(s))
		case len(answers) > 0 || len(unknownIn(s, req.Resume)) > 0:
			return reject(errAnswersMissing(s, req.Resume, answers))
		}
		return Decision{Do: Hydrate, Warning: "resume ignored: what it answers has been answered before"}
	}
	if resolvesExpired(s, answers, now) {
		return reject(errInterruptExpired(s))
	}
	violations, open := violationsOf(s, req.Verdicts, answers)
	switch {
	case len(open) > 0:
		return Decision{Do: Find, Checks: open}
	case len(violations) > 0:
		return reject(errInvalidAnswer(s, violations))
	}
	d := Decision{Do: Resume, Answers: answers}
	if s.Known != nil {
		d.Run = ResumeRun(s.Thread, req.Resume)
	}
	return d
}

// decideStopped is for a thread whose last run ended in an error with work left.
func decideStopped(s Situation, req Request) Decision {
	if len(req.Resume) > 0 && !answeredBefore(s, req.Resume) {
		return reject(errAlreadyAnswered(s))
	}
	if !req.Compared.hasNew() && !(req.goesBack() && req.Policy.OnUnfinished == policyAbandon) {
		return Decision{Do: Resume}
	}
	if req.Policy.OnUnfinished == policyAbandon {
		return closing(s, CloseAbandoned)
	}
	return reject(errMidExecution(s))
}

// closing starts a run that first closes the open calls, if all of those that wait for
// somebody outside may be given up.
func closing(s Situation, why Closing) Decision {
	for _, o := range s.Outside {
		if !o.Finished && !o.Abandonable {
			return reject(errCallPending(s))
		}
	}
	return Decision{Do: Fresh, Close: why}
}

// decideIdle is for a thread that has nothing left to do, except frontend calls.
func decideIdle(s Situation, req Request) Decision {
	if len(s.Pending) > 0 || len(s.Outside) > 0 {
		return decidePending(s, req)
	}
	d := Decision{Do: Hydrate}
	if req.Compared.hasNew() || s.Incomplete || req.Compared.Regenerate {
		d.Do = Fresh
	}
	if len(req.Resume) == 0 {
		return d
	}
	d.Warning = "resume ignored: no interrupt is open"
	if s.Outcome != holdfast.OutcomeCancelled && !s.Incomplete && !unknownOrSame(s, req.Resume) {
		return reject(errAlreadyAnswered(s))
	}
	return d
}

// decidePending is for an idle thread with calls that the frontend, or somebody outside, has
// not finished.
func decidePending(s Situation, req Request) Decision {
	d := Decision{Do: Hydrate}
	waits := len(waiting(s)) > 0
	results := len(req.Compared.Results)
	switch {
	case len(req.Compared.Users) > 0, req.goesBack():
		d = closing(s, CloseNotAnswered)
	case results > 0 && results >= len(s.Pending) && !waits:
		d.Do = Fresh
	case results > 0:
		d.Do = Keep
	case len(s.Pending) == 0 && !waits:
		d.Do = Resume
	}
	if len(req.Resume) > 0 {
		d.Warning = "resume ignored: no interrupt is open"
	}
	return d
}

// waiting returns the ids of the calls that wait for somebody outside.
func waiting(s Situation) []string {
	var ids []string
	for _, o := range s.Outside {
		if !o.Finished {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// answersOutside returns the id of an open outside call that resume names as if it were a
// question; "" if there is none.
func answersOutside(s Situation, resume []agui.ResumeEntry) string {
	for _, r := range resume {
		for _, o := range s.Outside {
			if o.ID == r.InterruptID {
				return o.ID
			}
		}
	}
	return ""
}
