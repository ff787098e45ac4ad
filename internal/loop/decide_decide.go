package loop

import (
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// action is what a POST leads to.
type action string

const (
	actReject  action = "reject"
	actAttach  action = "attach"  // watch a run that is under way, from a snapshot
	actReplay  action = "replay"  // watch a known run from its first record
	actHydrate action = "hydrate" // show where the thread stands; nothing runs
	actFresh   action = "fresh"   // start a run with what is new
	actStore   action = "store"   // keep some frontend results; calls are still open
	actResume  action = "resume"  // go on where the thread stopped or waits
	actCancel  action = "cancel"  // cancel the running run, then decide again
)

// closing says why calls without a result are closed before a fresh run.
type closing string

const (
	closeNone        closing = ""
	closeDeclined    closing = "declined"
	closeAbandoned   closing = "abandoned"
	closeNotAnswered closing = "not_answered"
)

// situation is all that decide knows about the thread.
type situation struct {
	// Exists is false for a thread that has no history.
	Exists bool
	Phase  thread.Phase
	Run    string
	Agent  string
	// Iteration is named in errors.
	Iteration int
	Outcome   string
	// Unanswered: the last message is a user's or a tool's, and no run ended
	// after it.
	Unanswered bool
	Interrupts []agui.Interrupt
	Pending    []string
	// Answers are the hashes of the answers last given, by interrupt id.
	Answers map[string]string
	// Known is the run that has the input's run id; nil if there is none.
	Known *knownRun
}

type knownRun struct {
	Hash string
}

// request is all that decide knows about the input.
type request struct {
	// Agent is the one that was asked for; empty is any.
	Agent  string
	RunID  string
	Hash   string
	Policy policy
	Clean  cleaned
	Resume []agui.ResumeEntry
}

// decision is what to do, and with what.
type decision struct {
	Do    action
	Err   *holdfast.Error
	Close closing
	// Answers are the resume's entries that answer open interrupts.
	Answers []agui.ResumeEntry
	// Warning is logged: something in the input was ignored.
	Warning string
}

func reject(err *holdfast.Error) decision { return decision{Do: actReject, Err: err} }

// decide says what a POST means: design rules 0, 1, 3 and 4, the first that fits
// wins. It is a pure function of the thread and the input; the commit that
// follows is conditional on the head it was made from, and on a conflict it is
// made again. Rule 2 has happened in clean, whose result is in req.
func decide(s situation, req request, now time.Time) decision {
	if unfinished(s) && req.Agent != "" && req.Agent != s.Agent {
		return reject(errWrongAgent(s, req.Agent))
	}
	if s.Known != nil {
		return decideKnown(s, req)
	}
	if req.Clean.Err != nil {
		return reject(req.Clean.Err)
	}
	if !s.Exists {
		return decideFirst(req)
	}
	// An answer belongs to where the thread waits, so it cannot come with a branch.
	resumes := s.Phase == thread.Interrupted && len(req.Resume) > 0
	if req.Clean.Diverged != nil && (!req.Policy.Branch || resumes) {
		return reject(req.Clean.Diverged)
	}
	switch s.Phase {
	case thread.Running:
		return decideRunning(s, req)
	case thread.Interrupted:
		return decideInterrupted(s, req, now)
	case thread.Stopped:
		return decideStopped(s, req)
	}
	return decideIdle(s, req)
}

func unfinished(s situation) bool {
	return s.Exists && (s.Phase != thread.Idle || len(s.Pending) > 0)
}

// decideKnown is rule 1.
func decideKnown(s situation, req request) decision {
	same := req.Hash == s.Known.Hash
	// A client that was cut off sends its answer again, with what it has seen since.
	repeated := len(req.Resume) == 0 || s.Run == req.RunID && answeredBefore(s, req.Resume)
	if same || !req.Clean.hasNew() && repeated {
		// A client that shows messages of its own run has seen a part of it: from
		// the first record it would show that part twice.
		if !same && req.Clean.ShowsAnswer && s.Run == req.RunID {
			if s.Phase == thread.Running {
				return decision{Do: actAttach}
			}
			return decision{Do: actHydrate}
		}
		return decision{Do: actReplay}
	}
	return reject(errRunIDReused(req.RunID))
}

// decideFirst is the row "no history": scenarios 1 and 2 of the papers.
func decideFirst(req request) decision {
	if !req.Clean.hasNew() {
		return reject(errNothingToRun())
	}
	d := decision{Do: actFresh}
	if len(req.Resume) > 0 {
		d.Warning = "resume ignored: the thread has no history"
	}
	return d
}

func decideRunning(s situation, req request) decision {
	if req.Clean.hasNew() {
		if req.Policy.OnBusy == holdfast.PolicyCancelAndRun {
			return decision{Do: actCancel}
		}
		return reject(errRunInProgress(s))
	}
	if len(req.Resume) > 0 && !answeredBefore(s, req.Resume) {
		return reject(errAlreadyAnswered(s))
	}
	return decision{Do: actAttach}
}

func decideInterrupted(s situation, req request, now time.Time) decision {
	answers, coversAll := coverage(s, req.Resume)
	if len(req.Resume) == 0 {
		if !req.Clean.hasNew() {
			return decision{Do: actHydrate}
		}
		if req.Policy.OnInterrupted == holdfast.PolicyDecline {
			return decision{Do: actFresh, Close: closeDeclined}
		}
		return reject(errInterrupted(s))
	}
	if !coversAll {
		if req.Clean.hasNew() {
			return reject(errInterrupted(s))
		}
		return decision{Do: actHydrate, Warning: "resume ignored: it does not cover every open interrupt"}
	}
	if resolvesExpired(s, answers, now) {
		return reject(errInterruptExpired(s))
	}
	return decision{Do: actResume, Answers: answers}
}

func decideStopped(s situation, req request) decision {
	if len(req.Resume) > 0 && !answeredBefore(s, req.Resume) {
		return reject(errAlreadyAnswered(s))
	}
	if !req.Clean.hasNew() {
		return decision{Do: actResume}
	}
	if req.Policy.OnUnfinished == holdfast.PolicyAbandon {
		return decision{Do: actFresh, Close: closeAbandoned}
	}
	return reject(errMidExecution(s))
}

func decideIdle(s situation, req request) decision {
	if len(s.Pending) > 0 {
		return decidePending(s, req)
	}
	d := decision{Do: actHydrate}
	if req.Clean.hasNew() || s.Unanswered || req.Clean.Regenerate {
		d.Do = actFresh
	}
	if len(req.Resume) == 0 {
		return d
	}
	d.Warning = "resume ignored: no interrupt is open"
	if s.Outcome != thread.OutcomeCancelled && !s.Unanswered && !unknownOrSame(s, req.Resume) {
		return reject(errAlreadyAnswered(s))
	}
	return d
}

// decidePending is the row "idle, frontend calls pending".
func decidePending(s situation, req request) decision {
	d := decision{Do: actHydrate}
	switch {
	case len(req.Clean.Users) > 0:
		d = decision{Do: actFresh, Close: closeNotAnswered}
	case len(req.Clean.Results) >= len(s.Pending):
		d.Do = actFresh
	case len(req.Clean.Results) > 0:
		d.Do = actStore
	}
	if len(req.Resume) > 0 {
		d.Warning = "resume ignored: no interrupt is open"
	}
	return d
}

// coverage returns the entries that answer open interrupts, and whether every
// open interrupt has one.
func coverage(s situation, resume []agui.ResumeEntry) (answers []agui.ResumeEntry, all bool) {
	all = true
	for _, i := range s.Interrupts {
		found := false
		for _, r := range resume {
			if r.InterruptID == i.ID {
				answers, found = append(answers, r), true
				break
			}
		}
		all = all && found
	}
	return answers, all
}

// answeredBefore reports whether every entry repeats an answer already given.
func answeredBefore(s situation, resume []agui.ResumeEntry) bool {
	for _, r := range resume {
		if s.Answers[r.InterruptID] != answerHash(r) {
			return false
		}
	}
	return true
}

// unknownOrSame reports whether no entry contradicts an answer already given.
func unknownOrSame(s situation, resume []agui.ResumeEntry) bool {
	for _, r := range resume {
		if given, known := s.Answers[r.InterruptID]; known && given != answerHash(r) {
			return false
		}
	}
	return true
}

// resolvesExpired reports whether an interrupt that has expired is given an
// answer other than "cancelled".
func resolvesExpired(s situation, answers []agui.ResumeEntry, now time.Time) bool {
	for _, i := range s.Interrupts {
		if !expired(i, now) {
			continue
		}
		for _, a := range answers {
			if a.InterruptID == i.ID && a.Status != agui.ResumeCancelled {
				return true
			}
		}
	}
	return false
}

func expired(i agui.Interrupt, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, i.ExpiresAt)
	return err == nil && now.After(at)
}
