package thread

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// standings returns a state in each status.
func standings() map[holdfast.ThreadStatus]func() *State {
	in := func(status holdfast.ThreadStatus) func() *State {
		return func() *State {
			return &State{standing: standing{status: status, run: "r1"}, Work: Work{Iteration: 3, Takeovers: 1, Usage: []holdfast.Usage{{}}}}
		}
	}
	return map[holdfast.ThreadStatus]func() *State{
		holdfast.StatusIdle: in(holdfast.StatusIdle), holdfast.StatusRunning: in(holdfast.StatusRunning),
		holdfast.StatusInterrupted: in(holdfast.StatusInterrupted), holdfast.StatusStopped: in(holdfast.StatusStopped),
	}
}

// TestTransitions tries every transition from every status. One that no run makes leaves
// the state as it was.
func TestTransitions(t *testing.T) {
	open := func(s *State) {
		s.Calls = []Call{{ID: "c1", Interrupt: &agui.Interrupt{ID: "i1"}}}
	}
	for name, c := range map[string]struct {
		prepare func(*State)
		move    func(*State) error
		from    []holdfast.ThreadStatus
		to      holdfast.ThreadStatus
		outcome holdfast.Outcome
	}{
		"begin": {nil, func(s *State) error { return s.Begin("r2", "a") },
			[]holdfast.ThreadStatus{holdfast.StatusIdle, holdfast.StatusInterrupted, holdfast.StatusStopped}, holdfast.StatusRunning, ""},
		"success":          {nil, func(s *State) error { return s.End(holdfast.OutcomeSuccess) }, []holdfast.ThreadStatus{holdfast.StatusRunning}, holdfast.StatusIdle, holdfast.OutcomeSuccess},
		"cancelled":        {nil, func(s *State) error { return s.End(holdfast.OutcomeCancelled) }, []holdfast.ThreadStatus{holdfast.StatusRunning}, holdfast.StatusIdle, holdfast.OutcomeCancelled},
		"no end":           {nil, func(s *State) error { return s.End(holdfast.OutcomeError) }, nil, "", ""},
		"wait":             {open, (*State).Wait, []holdfast.ThreadStatus{holdfast.StatusRunning}, holdfast.StatusInterrupted, holdfast.OutcomeInterrupt},
		"wait for nothing": {nil, (*State).Wait, nil, "", ""},
		"stop":             {nil, func(s *State) error { return s.Stop(CutOff(3)) }, []holdfast.ThreadStatus{holdfast.StatusRunning}, holdfast.StatusStopped, holdfast.OutcomeError},
	} {
		for from, state := range standings() {
			s := state()
			if c.prepare != nil {
				c.prepare(s)
			}
			before := s.standing
			err := c.move(s)
			switch allowed := slices.Contains(c.from, from); {
			case allowed && (err != nil || s.Status() != c.to || s.Outcome() != c.outcome):
				t.Errorf("%s from %s: %v, %+v", name, from, err, s.standing)
			case !allowed && (!errors.Is(err, ErrTransition) || s.standing != before):
				t.Errorf("%s from %s: got %v and %+v, want ErrTransition and no change", name, from, err, s.standing)
			}
		}
	}
}

func TestBeginCountsFromHere(t *testing.T) {
	s := standings()[holdfast.StatusStopped]()
	if err := s.Begin("r2", "a"); err != nil {
		t.Fatal(err)
	}
	if s.Run() != "r2" || s.Agent != "a" || s.GrantedAt != 3 || s.Takeovers != 0 || s.Usage != nil {
		t.Errorf("got %+v", s)
	}
}

func TestStopSaysWhy(t *testing.T) {
	s := standings()[holdfast.StatusRunning]()
	if err := s.Stop(holdfast.Errorf("broken", "It broke.").WithHint("Mend it.")); err != nil {
		t.Fatal(err)
	}
	if s.Run() != "r1" || s.Code() != "broken" || s.Text() != "It broke. Mend it." {
		t.Errorf("got %+v", s.standing)
	}
}

// TestRest: a state taken in mid-run is stopped or waits; any other stays.
func TestRest(t *testing.T) {
	for from, state := range standings() {
		want := from
		if from == holdfast.StatusRunning {
			want = holdfast.StatusStopped
		}
		s := state()
		if s.Rest(CutOff(3)); s.Status() != want {
			t.Errorf("from %s: %s", from, s.Status())
		}
		s = state()
		s.Question = &Question{Interrupt: &agui.Interrupt{ID: "i1"}}
		if s.Rest(CutOff(3)); s.Status() != holdfast.StatusInterrupted {
			t.Errorf("from %s with a question: %s", from, s.Status())
		}
	}
}

func TestRewindLeavesNothingOpen(t *testing.T) {
	for from, state := range standings() {
		s := state()
		s.Calls, s.Open, s.Question = []Call{{ID: "c1"}}, true, &Question{Interrupt: &agui.Interrupt{ID: "i1"}}
		s.Rewind("m1")
		if s.Status() != holdfast.StatusIdle || s.Leaf != "m1" || s.Iteration != 0 || len(s.Calls) > 0 || s.Open || s.Question != nil {
			t.Errorf("from %s: %+v", from, s)
		}
	}
}
