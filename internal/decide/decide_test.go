package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// The dimensions of a POST. Every combination is walked; the expectation comes
// from the table of design §3, written down once more as data.

type threadKind string

const (
	noHistory    threadKind = "no history"
	running      threadKind = "running"
	interrupted  threadKind = "interrupted"
	stopped      threadKind = "stopped"
	pendingCalls threadKind = "idle, frontend calls pending"
	unanswered   threadKind = "idle, unanswered"
	cancelled    threadKind = "idle, cancelled"
	answered     threadKind = "idle, answered"

	outsideWaits       threadKind = "idle, an outside call waits"
	outsideAbandonable threadKind = "idle, an outside call waits and may be given up"
	outsideFinished    threadKind = "idle, an outside call has its result"
	outsideAndPending  threadKind = "idle, an outside call and frontend calls wait"
	outsideAsked       threadKind = "interrupted, an outside call waits"
	outsideStopped     threadKind = "stopped, an outside call waits"
)

var threadKinds = []threadKind{
	noHistory, running, interrupted, stopped, pendingCalls, unanswered, cancelled, answered,
	outsideWaits, outsideAbandonable, outsideFinished, outsideAndPending, outsideAsked, outsideStopped,
}

// keptOpen are the threads with an outside call that a new message does not close.
var keptOpen = []threadKind{outsideWaits, outsideAndPending, outsideAsked, outsideStopped}

type newKind string

const (
	nothing     newKind = "nothing"
	users       newKind = "user messages"
	someResults newKind = "some results"
	allResults  newKind = "all results"
	lastAgain   newKind = "the last answer again"
	goesBack    newKind = "an earlier answer again"
)

var newKinds = []newKind{nothing, users, someResults, allResults, lastAgain, goesBack}

type resumeKind string

const (
	noResume resumeKind = "none"
	covers   resumeKind = "covers all"
	partial  resumeKind = "partial"
	repeats  resumeKind = "as answered before"
	differs  resumeKind = "answered differently"
	unknown  resumeKind = "unknown interrupt"
	tooLate  resumeKind = "resolves an expired one"
	giveUp   resumeKind = "cancels an expired one"
	namesOut resumeKind = "an outside call"
)

var resumeKinds = []resumeKind{noResume, covers, partial, repeats, differs, unknown, tooLate, giveUp, namesOut}

var (
	testNow     = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	given       = agui.ResumeEntry{InterruptID: "old", Status: agui.ResumeResolved, Payload: []byte(`"yes"`)}
	otherAnswer = agui.ResumeEntry{InterruptID: "old", Status: agui.ResumeResolved, Payload: []byte(`"no"`)}
)

func situationOf(k threadKind, r resumeKind) Situation {
	s := Situation{
		Exists:    k != noHistory,
		Run:       "run-1",
		Agent:     "a",
		Iteration: 3,
		Answers:   map[string]string{"old": AnswerHash(given)},
	}
	switch k {
	case noHistory:
		return Situation{}
	case running:
		s.Status = threads.StatusRunning
	case interrupted, outsideAsked:
		s.Status = threads.StatusInterrupted
		s.Interrupts = []agui.Interrupt{{ID: "i1"}, {ID: "i2"}}
		if r == tooLate || r == giveUp {
			s.Interrupts[0].ExpiresAt = testNow.Add(-time.Minute).Format(time.RFC3339)
		}
	case stopped, outsideStopped:
		s.Status, s.Outcome = threads.StatusStopped, holdfast.OutcomeError
	case outsideWaits, outsideAbandonable, outsideFinished:
		s.Status, s.Outcome = threads.StatusIdle, holdfast.OutcomeSuccess
	case pendingCalls, outsideAndPending:
		s.Status, s.Outcome, s.Pending = threads.StatusIdle, holdfast.OutcomeSuccess, []string{"c1", "c2"}
	case unanswered:
		s.Status, s.Incomplete = threads.StatusIdle, true
	case cancelled:
		s.Status, s.Outcome = threads.StatusIdle, holdfast.OutcomeCancelled
	case answered:
		s.Status, s.Outcome = threads.StatusIdle, holdfast.OutcomeSuccess
	}
	switch k {
	case outsideWaits, outsideAndPending, outsideAsked, outsideStopped:
		s.Outside = []OutsideCall{{ID: "o1", Finished: true}, {ID: "o2"}}
	case outsideAbandonable:
		s.Outside = []OutsideCall{{ID: "o2", Abandonable: true}}
	case outsideFinished:
		s.Outside = []OutsideCall{{ID: "o2", Finished: true}}
	}
	return s
}

func cleanedOf(n newKind) Compared {
	m := agui.Message{ID: "x"}
	switch n {
	case users:
		return Compared{Users: []agui.Message{m}}
	case someResults:
		return Compared{Results: []agui.Message{m}}
	case allResults:
		return Compared{Results: []agui.Message{m, m}}
	case lastAgain:
		return Compared{Regenerate: true, Retry: true}
	case goesBack:
		return Compared{Regenerate: true}
	}
	return Compared{}
}

func resumeOf(r resumeKind) []agui.ResumeEntry {
	entry := func(id, status string) agui.ResumeEntry { return agui.ResumeEntry{InterruptID: id, Status: status} }
	switch r {
	case covers, tooLate:
		return []agui.ResumeEntry{entry("i1", agui.ResumeResolved), entry("i2", agui.ResumeResolved)}
	case giveUp:
		return []agui.ResumeEntry{entry("i1", agui.ResumeCancelled), entry("i2", agui.ResumeResolved)}
	case partial:
		return []agui.ResumeEntry{entry("i2", agui.ResumeResolved)}
	case repeats:
		return []agui.ResumeEntry{given}
	case differs:
		return []agui.ResumeEntry{otherAnswer}
	case unknown:
		return []agui.ResumeEntry{entry("nobody", agui.ResumeResolved)}
	case namesOut:
		return []agui.ResumeEntry{entry("o2", agui.ResumeResolved)}
	}
	return nil
}

// want is the table of design §3, row by row: what to do, or the code of the
// error.
func want(k threadKind, n newKind, r resumeKind, p holdfast.Policy) string {
	got := wantWithout(k, n, r, p)
	switch {
	case r == namesOut && (slices.Contains(keptOpen, k) || k == outsideAbandonable || k == outsideFinished):
		return codes.CallPending
	case slices.Contains(keptOpen, k) && strings.HasPrefix(got, "fresh/"):
		return codes.CallPending
	}
	return got
}

// wantWithout is want without what an outside call forbids.
func wantWithout(k threadKind, n newKind, r resumeKind, p holdfast.Policy) string {
	isNew := n == users || n == someResults || n == allResults
	back := n == goesBack
	switch k {
	case noHistory:
		if !isNew {
			return codes.NothingToRun
		}
		return "fresh"
	case running:
		switch {
		case (isNew || back) && p.OnBusy == policyCancelAndRun:
			return "cancel"
		case isNew:
			return codes.RunInProgress
		case r == noResume || r == repeats:
			return "attach"
		}
		return codes.InterruptAlreadyAnswered
	case interrupted, outsideAsked:
		if back && r == noResume && p.OnInterrupted == policyDecline {
			return "fresh/declined"
		}
		return wantInterrupted(isNew, r, p)
	case stopped, outsideStopped:
		switch {
		case r != noResume && r != repeats:
			return codes.InterruptAlreadyAnswered
		case (isNew || back) && p.OnUnfinished == policyAbandon:
			return "fresh/abandoned"
		case !isNew:
			return "resume"
		}
		return codes.MidExecution
	case pendingCalls:
		return map[newKind]string{
			nothing: "hydrate", users: "fresh/not_answered", someResults: "store", allResults: "fresh",
			lastAgain: "hydrate", goesBack: "fresh/not_answered",
		}[n]
	case outsideWaits, outsideAbandonable, outsideFinished, outsideAndPending:
		return wantOutside(k, n)
	case unanswered:
		return "fresh"
	case answered:
		if r == differs {
			return codes.InterruptAlreadyAnswered
		}
	}
	if n != nothing {
		return "fresh"
	}
	return "hydrate"
}

// wantOutside is the row of the table for calls that are finished from outside. Results can
// only be those of frontend calls beside them.
func wantOutside(k threadKind, n newKind) string {
	switch n {
	case users, goesBack:
		return "fresh/not_answered"
	case someResults, allResults:
		if k == outsideFinished {
			return "fresh"
		}
		return "store"
	}
	if k == outsideFinished {
		return "resume"
	}
	return "hydrate"
}

func wantInterrupted(isNew bool, r resumeKind, p holdfast.Policy) string {
	switch r {
	case covers, giveUp:
		return "resume"
	case tooLate:
		return codes.InterruptExpired
	case noResume:
		switch {
		case !isNew:
			return "hydrate"
		case p.OnInterrupted == policyDecline:
			return "fresh/declined"
		}
		return codes.Interrupted
	}
	switch {
	case isNew:
		return codes.Interrupted
	case r == partial || r == unknown || r == namesOut:
		return codes.AnswersMissing
	}
	return "hydrate"
}

func said(d Decision) string {
	if d.Do == Reject {
		return d.Err.Code
	}
	if d.Close != CloseNothing {
		return string(d.Do) + "/" + string(d.Close)
	}
	return string(d.Do)
}

func policies() []holdfast.Policy {
	var all []holdfast.Policy
	for _, busy := range []string{"", policyCancelAndRun} {
		for _, waiting := range []string{"", policyDecline} {
			for _, unfinished := range []string{"", policyAbandon} {
				all = append(all, holdfast.Policy{OnBusy: busy, OnInterrupted: waiting, OnUnfinished: unfinished})
			}
		}
	}
	return all
}

// chatPolicy is what the policy chat means, as a request chooses it.
func chatPolicy(t *testing.T) holdfast.Policy {
	t.Helper()
	p, err := PolicyOf(&holdfast.Agent{}, false, []byte(`{"holdfast":{"chat":true}}`))
	if err != nil || !p.Branch {
		t.Fatalf("%+v, %v", p, err)
	}
	return p.Policy
}

// TestChat: an agent, a route or a request chooses the policy chat; what it says of the
// parts is what agent or request say themselves.
func TestChat(t *testing.T) {
	chat := Policy{Branch: true, Policy: holdfast.Policy{
		Chat: true, OnBusy: policyCancelAndRun, OnInterrupted: policyDecline, OnUnfinished: policyAbandon,
	}}
	rejects := chat
	rejects.OnBusy = policyReject
	for name, c := range map[string]struct {
		agent holdfast.Policy
		route bool
		props string
		want  Policy
	}{
		"nobody":      {},
		"the agent":   {agent: holdfast.Policy{Chat: true}, want: chat},
		"the route":   {route: true, want: chat},
		"the request": {props: `{"holdfast":{"chat":true}}`, want: chat},
		"not the request": {agent: holdfast.Policy{Chat: true}, route: true,
			props: `{"holdfast":{"chat":false}}`},
		"all but one part":      {route: true, props: `{"holdfast":{"onBusy":"reject"}}`, want: rejects},
		"but the agent rejects": {agent: holdfast.Policy{OnBusy: policyReject}, route: true, want: rejects},
	} {
		got, err := PolicyOf(&holdfast.Agent{Policy: c.agent}, c.route, []byte(c.props))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestNamesTheWayOut: a page that is refused while a run is in progress, or whose person has changed
// the history, is told of the policy by which it would not be, in each of the places where that can
// be chosen.
func TestNamesTheWayOut(t *testing.T) {
	for own, e := range map[string]*holdfast.Error{
		"cancel_and_run":                 errRunInProgress(Situation{Run: "r", Thread: "t"}),
		"forwardedProps.holdfast.branch": errHistoryDiverged("m", nil),
	} {
		if e.Code != codes.RunInProgress && e.Code != codes.HistoryDiverged {
			t.Errorf("the code is %s", e.Code)
		}
		for _, want := range []string{own, "--chat", "policy: { chat: true }", "forwardedProps.holdfast.chat"} {
			if !strings.Contains(e.Hint, want) {
				t.Errorf("%s: the hint lacks %q: %s", e.Code, want, e.Hint)
			}
		}
	}
}

func TestDecideWalksEveryCombination(t *testing.T) {
	walked := 0
	for _, k := range threadKinds {
		for _, n := range newKinds {
			for _, r := range resumeKinds {
				for _, p := range append(policies(), chatPolicy(t)) {
					s := situationOf(k, r)
					req := Request{
						Agent:    "a",
						RunID:    "run-2",
						Hash:     "h",
						Policy:   Policy{Policy: p},
						Compared: cleanedOf(n),
						Resume:   resumeOf(r),
					}
					name := fmt.Sprintf("thread %s, new %s, resume %s, policy %+v", k, n, r, p)
					got := Decide(s, req, testNow)
					if want := want(k, n, r, p); said(got) != want {
						t.Errorf("%s:\n got %s\nwant %s", name, said(got), want)
					}
					checkFirstRules(t, name, s, req)
					checkError(t, name, got)
					walked++
				}
			}
		}
	}
	t.Logf("%d combinations", walked)
}

// checkFirstRules: rules 0, 1 and 3 win over the table.
func checkFirstRules(t *testing.T, name string, s Situation, req Request) {
	t.Helper()
	other := req
	other.Agent = "b"
	if got := said(Decide(s, other, testNow)); unfinished(s) != (got == codes.WrongAgent) {
		t.Errorf("%s, other agent: %s", name, got)
	}
	diverged := req
	diverged.Compared.Diverged = errHistoryDiverged("m", nil)
	if got := said(Decide(s, diverged, testNow)); s.Exists && got != codes.HistoryDiverged &&
		answersOutside(s, req.Resume) == "" {
		t.Errorf("%s, diverged: %s", name, got)
	}
	diverged.Policy.Branch = true
	resumes := s.Status == threads.StatusInterrupted && len(req.Resume) > 0 && answersOutside(s, req.Resume) == ""
	if got := said(Decide(s, diverged, testNow)); resumes != (got == codes.HistoryDiverged) {
		t.Errorf("%s, branch flag: %s", name, got)
	}
	if !s.Exists {
		return
	}
	for _, hash := range []string{"h", "another"} {
		known := s
		known.Known = &KnownRun{ID: "run-2", Hash: hash}
		want := string(FromStart)
		if hash != req.Hash && (req.Compared.hasNew() || len(req.Resume) > 0) {
			want = codes.RunIDReused
		}
		if hash != req.Hash && answersOpen(s, req.Resume) {
			want = said(Decide(s, req, testNow)) // as under any other id
		}
		got := Decide(known, req, testNow)
		if said(got) != want {
			t.Errorf("%s, known run, hash %s: got %s, want %s", name, hash, said(got), want)
		}
		if got.Do == Resume && (got.Run == "" || got.Run == req.RunID) {
			t.Errorf("%s: a run with the used id %q begins", name, got.Run)
		}
	}
}

// checkError: a person who gets an error knows what to do next.
func checkError(t *testing.T, name string, d Decision) {
	t.Helper()
	if d.Do != Reject {
		return
	}
	if d.Err.Code == "" || d.Err.Message == "" || d.Err.Hint == "" {
		t.Errorf("%s: the error %+v lacks code, message or hint", name, d.Err)
	}
}

// TestDecideShowsAnswer: a client that has seen a part of its own run gets a
// snapshot; from the first record it would show that part twice.
func TestDecideShowsAnswer(t *testing.T) {
	for status, want := range map[threads.Status]Action{threads.StatusRunning: Attach, threads.StatusIdle: Hydrate} {
		s := Situation{
			Exists:  true,
			Status:  status,
			Run:     "run-1",
			Agent:   "a",
			Outcome: holdfast.OutcomeSuccess,
			Known:   &KnownRun{ID: "run-1", Hash: "h"},
		}
		req := Request{RunID: "run-1", Hash: "other", Compared: Compared{ShowsCompletion: true}}
		if got := Decide(s, req, testNow); got.Do != want {
			t.Errorf("%s: %s, want %s", status, got.Do, want)
		}
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint8(0), uint8(0), false, false)
	f.Fuzz(func(t *testing.T, k, n, r, p uint8, known, branch bool) {
		rk := resumeKinds[int(r)%len(resumeKinds)]
		s := situationOf(threadKinds[int(k)%len(threadKinds)], rk)
		if known && s.Exists {
			s.Known = &KnownRun{ID: "run-2", Hash: fmt.Sprint(p % 2)}
		}
		req := Request{RunID: "x", Hash: "0", Compared: cleanedOf(newKinds[int(n)%len(newKinds)]), Resume: resumeOf(rk)}
		req.Policy = Policy{Policy: policies()[int(p)%8], Branch: branch}
		d := Decide(s, req, testNow)
		if (d.Do == Reject) != (d.Err != nil) {
			t.Fatalf("%+v", d)
		}
		if again := Decide(s, req, testNow); said(again) != said(d) {
			t.Fatalf("not a pure function: %s, then %s", said(d), said(again))
		}
		started := d.Do == Fresh || d.Do == Resume || d.Do == Keep
		if started && s.Exists && s.Status == threads.StatusRunning {
			t.Fatalf("a second run is started on a running thread: %s", said(d))
		}
	})
}

// TestDecideRetriedAnswer: a client whose stream was cut sends its answer again, with
// the messages that it has seen since. It gets its run, and no error; another answer
// under that id is one.
func TestDecideRetriedAnswer(t *testing.T) {
	given := agui.ResumeEntry{InterruptID: "i1", Status: agui.ResumeResolved, Payload: []byte(`{"allow":true}`)}
	other := given
	other.Payload = []byte(`{"allow":false}`)
	for status, want := range map[threads.Status]Action{threads.StatusRunning: Attach, threads.StatusIdle: Hydrate} {
		s := Situation{
			Exists:  true,
			Status:  status,
			Run:     "run-2",
			Agent:   "a",
			Outcome: holdfast.OutcomeSuccess,
			Known:   &KnownRun{ID: "run-2", Hash: "h"},
			Answers: map[string]string{"i1": AnswerHash(given)},
		}
		req := Request{
			RunID:    "run-2",
			Hash:     "other",
			Compared: Compared{ShowsCompletion: true},
			Resume:   []agui.ResumeEntry{given},
		}
		if got := Decide(s, req, testNow); got.Do != want {
			t.Errorf("%s: %s %v, want %s", status, got.Do, got.Err, want)
		}
		req.Resume = []agui.ResumeEntry{other}
		if got := said(Decide(s, req, testNow)); got != codes.RunIDReused {
			t.Errorf("%s, another answer: %s", status, got)
		}
	}
}
