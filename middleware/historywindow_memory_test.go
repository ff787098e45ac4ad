package middleware_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// The memory of a window: between two steps each request continues the one before it.

// continues reports whether a request is another one and more.
func continues(before, after *holdfast.ModelRequest) bool {
	return slices.Equal(before.Instructions, after.Instructions) &&
		strings.HasPrefix(ids(after.Messages)+" ", ids(before.Messages)+" ")
}

// TestTheWindowMovesInSteps: whatever the conversation is made of, requests only grow
// between two steps, whichever server makes the call, and a step halves what is shown.
func TestTheWindowMovesInSteps(t *testing.T) {
	t.Parallel()
	form := strings.Repeat("uaurcturauCtturcta", 12)
	for name, o := range map[string]middleware.HistoryWindowOptions{
		"messages":  {MaxMessages: 40},
		"bytes":     {MaxBytes: 400},
		"both":      {MaxMessages: 40, MaxBytes: 300},
		"no first":  {MaxMessages: 40, KeepFirst: new(0)},
		"summaries": {MaxMessages: 40, Then: middleware.WindowSummarise},
	} {
		t.Run(name, func(t *testing.T) {
			run := hooktest.New(t)
			var before *holdfast.ModelRequest
			cuts, history := 0, shape(form)
			for n := range history {
				if calls := history[n].Calls; len(calls) > 0 || history[n].Role == holdfast.RoleReasoning ||
					strings.HasPrefix(form[n:], "Ct") || strings.HasPrefix(form[n:], "tt") {
					continue // the model is not asked here
				}
				run.History.Set(history[:n+1])
				got := asked(t, run.Context(), middleware.HistoryWindow(o), history[:n+1])
				if before != nil && !continues(before, got) {
					cuts++
					if got.Cut != map[bool]string{false: "window", true: "summary"}[o.Then != ""] {
						t.Errorf("at %d: a cut is %q:\n%s\n%s", n, got.Cut, ids(before.Messages), ids(got.Messages))
					}
					if 3*len(got.Messages) > 2*len(before.Messages) {
						t.Errorf("at %d: %d of %d messages are left", n, len(got.Messages), len(before.Messages))
					}
				} else if got.Cut != "" {
					t.Errorf("at %d: nothing is cut, but %q is said", n, got.Cut)
				}
				before = got
			}
			if cuts < 3 || cuts > 20 || len(run.History.Activities) != cuts || len(run.Notices) != cuts {
				t.Errorf("%d cuts, %d activities, notices %q", cuts, len(run.History.Activities), run.Notices)
			}
		})
	}
}

// TestACutIsRecorded: with the range, and what of it is shown.
func TestACutIsRecorded(t *testing.T) {
	t.Parallel()
	run := hooktest.New(t)
	history := shape("uauauaCtt")
	run.History.Set(history)
	window := middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 8, KeepFirst: new(0)})
	asked(t, run.Context(), window, history)
	want := `holdfast.cut {"from":"u0","to":"a5","messages":6,"shown":["u4"],"reason":"window"}`
	if got := run.History.Activities; len(got) != 1 || got[0] != want {
		t.Errorf("recorded is %q", got)
	}
	run.WantNotices(`holdfast.history_cut {"messages":5,"reason":"window"}`)
	// Activities that are not a window's own are not read, and of two the newer one counts.
	run.History.Put("test.other", `{"to":"u2"}`)
	run.History.Put("holdfast.cut", `{"to":3}`)
	run.History.Put("holdfast.cut", `{"to":"gone"}`)
	run.History.Put("holdfast.cut", `{"to":"a1","messages":2,"shown":["u0","never"]}`)
	got := asked(t, run.Context(), window, history)
	if ids(got.Messages) != "u0 u2 a3 u4 a5 C6 t7 t8" || got.Cut != "" {
		t.Errorf("shown is %s", ids(got.Messages))
	}
}

// TestTheTailIsNoHistory: what stands behind the history is shown wherever it is cut, and is
// neither counted nor summarised.
func TestTheTailIsNoHistory(t *testing.T) {
	t.Parallel()
	for _, o := range []middleware.HistoryWindowOptions{{MaxMessages: 4},
		{MaxMessages: 4, Then: middleware.WindowSummarise, SummaryEvery: 1}} {
		run := hooktest.New(t)
		history := shape("uauauau")
		run.History.Set(history)
		tail := holdfast.Message{ID: "tail", Role: holdfast.RoleUser, Text: "now"}
		var requests []*holdfast.ModelRequest
		model := middleware.HistoryWindow(o).
			Model(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				requests = append(requests, req)
				return hooktest.Says(holdfast.Delta{Text: "They talked.", Finish: holdfast.FinishStop})(ctx, req)
			})
		for _, err := range model(run.Context(), &holdfast.ModelRequest{Messages: append(history, tail), Tail: 1}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if last := requests[len(requests)-1]; ids(last.Messages) != "u0 u6 tail" || last.Tail != 1 {
			t.Errorf("%s: shown is %s, the last %d of it not of the history", o.Then, ids(last.Messages), last.Tail)
		}
		if len(requests) > 1 && (requests[0].Tail != 0 || strings.Contains(requests[0].Messages[0].Text, "now")) {
			t.Errorf("summarised is %+v", requests[0])
		}
	}
}

// TestWhatCoversEverythingIsNotUsed: where nothing follows what is left out, as in a history
// of which the agent is not shown the end, everything is shown that fits.
func TestWhatCoversEverythingIsNotUsed(t *testing.T) {
	t.Parallel()
	s := newSummarising(t, middleware.HistoryWindowOptions{KeepFirst: new(0), SummaryEvery: 10})
	s.history.Set(shape("uauaua"))
	s.history.Put(middleware.ActivitySummary, `{"to":"a5","messages":6,"text":"They met."}`)
	s.shows("uauaua", "u0 a1 u2 a3 u4 a5")
}
