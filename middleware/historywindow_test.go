package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Which messages of a history the window shows.

// shape makes a history from a short form: u is a message of the person, a an answer, r
// reasoning, c an answer with a call and t its result, C an answer with two calls. Ids
// are positions.
func shape(form string) []holdfast.Message {
	var out []holdfast.Message
	var open []string
	for i, f := range form {
		m := holdfast.Message{ID: fmt.Sprintf("%c%d", f, i), Text: fmt.Sprintf("text %03d", i)}
		switch f {
		case 'u':
			m.Role = holdfast.RoleUser
		case 'r':
			m.Role = holdfast.RoleReasoning
		case 't':
			m.Role, m.CallID = holdfast.RoleTool, open[0]
			open = open[1:]
		default:
			m.Role = holdfast.RoleAssistant
			for n := range map[rune]int{'c': 1, 'C': 2}[f] {
				id := fmt.Sprintf("call%d.%d", i, n)
				m.Calls, open = append(m.Calls,
					holdfast.ToolCall{ID: id, Name: "f", Arguments: json.RawMessage(`{}`)}), append(open, id)
			}
		}
		out = append(out, m)
	}
	return out
}

func ids(messages []holdfast.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, m.ID)
	}
	return strings.Join(out, " ")
}

// asked returns the request that the model gets for a history behind the middleware.
func asked(
	t *testing.T, ctx context.Context, m holdfast.Middleware, messages []holdfast.Message,
) *holdfast.ModelRequest {
	t.Helper()
	var got *holdfast.ModelRequest
	model := m.Model(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		got = req
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{Text: "yes", Finish: holdfast.FinishStop}, nil)
		}
	})
	for _, err := range model(ctx, &holdfast.ModelRequest{Instructions: []string{"be kind"}, Messages: messages}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func TestHistoryWindow(t *testing.T) {
	t.Parallel()
	zero, two := 0, 2
	tests := []struct {
		name, form string
		options    middleware.HistoryWindowOptions
		want       string
		hidden     int
	}{
		{"all fits", "uaua", middleware.HistoryWindowOptions{MaxMessages: 4}, "u0 a1 u2 a3", 0},
		{"from a person's message", "uauauau", middleware.HistoryWindowOptions{MaxMessages: 4}, "u0 u6", 5},
		{"nothing of the first", "uauauau", middleware.HistoryWindowOptions{MaxMessages: 4, KeepFirst: &zero}, "u6", 6},
		{
			"two of the first",
			"uauauauau",
			middleware.HistoryWindowOptions{MaxMessages: 5, KeepFirst: &two},
			"u0 u2 u8",
			6,
		},
		{"never between call and result", "uactctct", middleware.HistoryWindowOptions{MaxMessages: 4}, "u0 c6 t7", 5},
		{
			"never between parallel calls and results",
			"uauCtt",
			middleware.HistoryWindowOptions{MaxMessages: 4},
			"u0 u2 C3 t4 t5",
			1,
		},
		{
			"never behind a reasoning",
			"uaurcturct",
			middleware.HistoryWindowOptions{MaxMessages: 1},
			"u0 u6 r7 c8 t9",
			5,
		},
		{
			"the question of a long turn",
			"uauctctctctct",
			middleware.HistoryWindowOptions{MaxMessages: 12},
			"u0 u2 c9 t10 c11 t12",
			7,
		},
		{
			"a person's message only if enough is left",
			"uctctctctctctu",
			middleware.HistoryWindowOptions{MaxMessages: 13},
			"u0 c9 t10 c11 t12 u13",
			8,
		},
		{"bytes", "uauauau", middleware.HistoryWindowOptions{MaxBytes: 40}, "u0 u6", 5},
		{"bytes of calls and results", "uauctct", middleware.HistoryWindowOptions{MaxBytes: 40}, "u0 u2 c5 t6", 3},
		{"both", "uauauau", middleware.HistoryWindowOptions{MaxMessages: 6, MaxBytes: 16}, "u0 u6", 5},
		{"what cannot fit", "uau", middleware.HistoryWindowOptions{MaxBytes: 1}, "u0 u2", 1},
		{"what cannot be cut", "uctt"[:3], middleware.HistoryWindowOptions{MaxMessages: 1}, "u0 c1 t2", 0},
		{"nobody asked", "aaaa", middleware.HistoryWindowOptions{MaxMessages: 2}, "a3", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			history := shape(tt.form)
			before := ids(history)
			m := middleware.HistoryWindow(tt.options)
			got := asked(t, t.Context(), m, history)
			want := []string{"be kind"}
			if tt.hidden > 0 {
				want = append(want, fmt.Sprintf("The conversation before this point is not shown: %d messages.",
					tt.hidden))
			}
			if ids(got.Messages) != tt.want || !slices.Equal(got.Instructions, want) {
				t.Errorf("got %s with %q, want %s with %q", ids(got.Messages), got.Instructions, tt.want, want)
			}
			if ids(history) != before || len(m.States) != 0 {
				t.Error("the history was changed")
			}
		})
	}
}

// TestHistoryWindowIsWellFormed: whatever the history and however small the window, no
// result lacks its call, and no call its result.
func TestHistoryWindowIsWellFormed(t *testing.T) {
	t.Parallel()
	history := shape("urctaurCttrctauctCttctauaurCttctCtta")
	for n := range history {
		for limit := 1; limit < 12; limit++ {
			open := map[string]bool{}
			for _, m := range asked(t, t.Context(),
				middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: limit}), history[:n+1]).
				Messages {
				if m.Role == holdfast.RoleTool && !open[m.CallID] {
					t.Fatalf("%d of %d: the result %s has no call", limit, n, m.ID)
				}
				delete(open, m.CallID)
				for _, c := range m.Calls {
					open[c.ID] = true
				}
			}
			for call := range open {
				if !slices.ContainsFunc(history[:n+1], func(m holdfast.Message) bool { return m.CallID == call }) {
					delete(open, call) // it has none yet
				}
			}
			if len(open) > 0 {
				t.Fatalf("%d of %d: %v have no result", limit, n, open)
			}
		}
	}
}

func TestHistoryWindowMistakes(t *testing.T) {
	t.Parallel()
	minus := -1
	hooktest.WantInvalid(t, "middleware.HistoryWindow", middleware.HistoryWindow,
		map[string]middleware.HistoryWindowOptions{
			"nothing is bounded":         {},
			"is negative; write how muc": {MaxMessages: -1},
			"keepFirst is negative":      {MaxBytes: 1, KeepFirst: &minus},
			`then is "forget"`:           {MaxBytes: 1, Then: "forget"},
			"summaryEvery is negative":   {MaxBytes: 1, Then: middleware.WindowSummarise, SummaryEvery: -1},
			"add then: summarise":        {MaxBytes: 1, SummaryPrompt: "Be short."},
			`onOverflow is "explode"`:    {OnOverflow: "explode"},
		})
}
