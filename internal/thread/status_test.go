package thread

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// standings returns a state in each status.
func standings() map[threads.Status]func() *State {
	in := func(status threads.Status) func() *State {
		return func() *State {
			return &State{
				standing: standing{status: status, run: "r1"},
				Work:     Work{Iteration: 3, Takeovers: 1, Usage: []holdfast.Usage{{}}},
			}
		}
	}
	return map[threads.Status]func() *State{
		threads.StatusIdle: in(threads.StatusIdle), threads.StatusRunning: in(threads.StatusRunning),
		threads.StatusInterrupted: in(threads.StatusInterrupted), threads.StatusStopped: in(threads.StatusStopped),
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
		from    []threads.Status
		to      threads.Status
		outcome holdfast.Outcome
	}{
		"begin": {nil, func(s *State) error { return s.Begin("r2", "a") },
			[]threads.Status{threads.StatusIdle, threads.StatusInterrupted, threads.StatusStopped},
			threads.StatusRunning, ""},
		"success": {nil, func(s *State) error { return s.End(holdfast.OutcomeSuccess) },
			[]threads.Status{threads.StatusRunning}, threads.StatusIdle, holdfast.OutcomeSuccess},
		"cancelled": {nil, func(s *State) error { return s.End(holdfast.OutcomeCancelled) },
			[]threads.Status{threads.StatusRunning}, threads.StatusIdle, holdfast.OutcomeCancelled},
		"no end": {nil, func(s *State) error { return s.End(holdfast.OutcomeError) }, nil, "", ""},
		"wait": {open, (*State).Wait, []threads.Status{threads.StatusRunning}, threads.StatusInterrupted,
			holdfast.OutcomeInterrupt},
		"wait for nothing": {nil, (*State).Wait, nil, "", ""},
		"stop": {nil, func(s *State) error { return s.Stop(CutOff(3)) },
			[]threads.Status{threads.StatusRunning}, threads.StatusStopped, holdfast.OutcomeError},
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
	s := standings()[threads.StatusStopped]()
	if err := s.Begin("r2", "a"); err != nil {
		t.Fatal(err)
	}
	if s.Run() != "r2" || s.Agent != "a" || s.GrantedAt != 3 || s.Takeovers != 0 || s.Usage != nil {
		t.Errorf("got %+v", s)
	}
}

func TestStopSaysWhy(t *testing.T) {
	s := standings()[threads.StatusRunning]()
	if err := s.Stop(holdfast.Errorf("broken", "It broke.").WithHint("Mend it.")); err != nil {
		t.Fatal(err)
	}
	end := s.Failure()
	if s.Run() != "r1" || s.Code() != "broken" || end.Code != "broken" || end.Message != "It broke." ||
		end.FullText() != "It broke. Mend it." {
		t.Errorf("got %+v", s.standing)
	}
}

// TestRest: a state taken in mid-run is stopped or waits; any other stays.
func TestRest(t *testing.T) {
	for from, state := range standings() {
		want := from
		if from == threads.StatusRunning {
			want = threads.StatusStopped
		}
		s := state()
		if s.Rest(CutOff(3)); s.Status() != want {
			t.Errorf("from %s: %s", from, s.Status())
		}
		s = state()
		s.Question = &Question{Interrupt: &agui.Interrupt{ID: "i1"}}
		if s.Rest(CutOff(3)); s.Status() != threads.StatusInterrupted {
			t.Errorf("from %s with a question: %s", from, s.Status())
		}
	}
}

func TestRewindLeavesNothingOpen(t *testing.T) {
	for from, state := range standings() {
		s := state()
		s.Calls, s.Open, s.Question = []Call{{ID: "c1"}}, true, &Question{Interrupt: &agui.Interrupt{ID: "i1"}}
		s.Rewind("m1")
		if s.Status() != threads.StatusIdle || s.Leaf != "m1" || s.Iteration != 0 || len(s.Calls) > 0 || s.Open ||
			s.Question != nil {
			t.Errorf("from %s: %+v", from, s)
		}
	}
}
