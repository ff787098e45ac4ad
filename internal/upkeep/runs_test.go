package upkeep_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/threads"
)

// asker asks a person once, and then answers after the gate has opened.
func asker(gate <-chan struct{}) holdfast.Agent {
	ask := looptest.Tool("ask", holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
		if holdfast.CallFrom(ctx).Answer == nil {
			return "", &holdfast.Interrupt{Reason: "input_required", Message: "Sure?"}
		}
		<-gate
		return "yes", nil
	})
	return holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("ask", "{}"), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{ask},
	}
}

func briefly(runs []threads.Run) []string {
	var out []string
	for _, r := range runs {
		out = append(out, fmt.Sprintf("%s %q %q>%q ended %v", r.ID, r.Outcome, r.Continues, r.ContinuedBy,
			!r.EndedAt.IsZero()))
	}
	return out
}

// TestRuns: a thread lists what ran on it, the newest first, and which run continued which.
func TestRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		e := looptest.Start(t, memstore.New(), nil, asker(gate))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Collect(t, reply, err)
		question := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t).Interrupts[0].ID
		in := looptest.RunInput("t", "r2")
		in.ParentRunID, in.Resume = "r1", []agui.ResumeEntry{{InterruptID: question, Status: agui.ResumeResolved}}
		time.Sleep(time.Minute) // of a clock that does not take any
		reply, err = e.Owner.Post(t.Context(), looptest.Alice, "", in)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{`r2 "" "r1">"" ended false`, `r1 "interrupt" "">"r2" ended true`}
		runs := looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "", 0))(t)
		if got := briefly(runs); !slices.Equal(got, want) {
			t.Errorf("while it runs: %q, want %q", got, want)
		}
		if runs[0].Agent != "a" || runs[0].ParentRunID != "r1" ||
			runs[0].StartedAt.Sub(runs[1].StartedAt) != time.Minute || runs[1].EndedAt.Before(runs[1].StartedAt) {
			t.Errorf("%+v", runs)
		}
		close(gate)
		looptest.Succeeded(t, looptest.Collect(t, reply, nil))
		want[0] = `r2 "success" "r1">"" ended true`
		if got := briefly(looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "", 0))(t)); !slices.Equal(got,
			want) {
			t.Errorf("afterwards: %q, want %q", got, want)
		}
		for _, page := range []struct {
			before string
			limit  int
			want   []string
		}{{"", 1, want[:1]}, {"r2", 1, want[1:]}, {"r2", 0, want[1:]}, {"r1", 5, nil}} {
			if got := briefly(looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", page.before,
				page.limit))(t)); !slices.Equal(got, page.want) {
				t.Errorf("%d before %q: %q, want %q", page.limit, page.before, got, page.want)
			}
		}
		if _, err := e.Keeper.Runs(t.Context(), looptest.Alice, "t", "r3", 1); looptest.Code(err) != codes.NotFound {
			t.Errorf("the runs before one that is not there: %v", err)
		}
		for _, who := range []holdfast.Principal{{Tenant: "acme", User: "bob"}, {Tenant: "other", User: "alice"}} {
			if _, err := e.Keeper.Runs(t.Context(), who, "t", "", 0); looptest.Code(err) != codes.NotFound {
				t.Errorf("%v lists alice's runs: %v", who, err)
			}
		}
	})
}

// TestRunsOfAFork: the run that a fork continues is older than the fork's own.
func TestRunsOfAFork(t *testing.T) {
	e, _ := looptest.Travelled(t)
	all := looptest.Checkpoints(t, e, "t")
	looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: all[1].ID, Thread: "t2"}))(t)
	looptest.Succeeded(t, looptest.Resumed(t, e, "t2", "f1"))
	want := []string{`f1 "success" "r1">"" ended true`, `r1 "" "">"f1" ended true`}
	if got := briefly(looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t2", "", 0))(t)); !slices.Equal(got,
		want) {
		t.Errorf("the fork's runs are %q, want %q", got, want)
	}
	want = []string{`r1 "success" "">"" ended true`}
	if got := briefly(looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "", 0))(t)); !slices.Equal(got,
		want) {
		t.Errorf("the parent's runs are %q, want %q", got, want)
	}
}
