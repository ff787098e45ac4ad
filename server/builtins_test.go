package server_test

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/server"
)

// ownRead is a tool with the name of a built-in one.
var ownRead = holdfast.NewTool(middleware.ReadResult, "reads", func(context.Context, struct{}) (string, error) {
	return "its own", nil
})

// TestEveryAgentGoesOnWithLess: an agent without any middleware answers although its
// conversation was too long, unless it is turned off.
func TestEveryAgentGoesOnWithLess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		middleware []holdfast.Middleware
		want       string
	}{
		"nothing listed": {nil, "RUN_FINISHED"},
		"turned off": {[]holdfast.Middleware{
			middleware.HistoryWindow(middleware.HistoryWindowOptions{OnOverflow: middleware.WindowFail}),
		}, "RUN_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := holdfast.ModelFunc(func(_ context.Context,
				req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					if len(req.Messages) > 2 {
						yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.TooLong})
						return
					}
					yield(holdfast.Delta{Text: "yes", Finish: holdfast.FinishStop}, nil)
				}
			})
			s := engineOf(t, holdfast.Agent{Name: "a", Model: model, Middleware: c.middleware})
			var last string
			for i, text := range []string{"one", "two"} {
				last = said(t, s, string(rune('a'+i)), text)
			}
			if last != c.want {
				t.Errorf("it ended with %s, want %s", last, c.want)
			}
		})
	}
}

// TestAnAgentsOwnReadResult: an agent may have a tool of that name, but not two.
func TestAnAgentsOwnReadResult(t *testing.T) {
	t.Parallel()
	called := false
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if last := req.Messages[len(req.Messages)-1]; last.Role == holdfast.RoleTool {
				called = last.Text == "its own"
				yield(holdfast.Delta{Text: "yes", Finish: holdfast.FinishStop}, nil)
				return
			}
			if !slices.ContainsFunc(req.Tools, func(t holdfast.ToolSpec) bool {
				return t.Name == middleware.ReadResult
			}) {
				t.Error("the tool is not offered")
			}
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{Name: middleware.ReadResult, Arguments: "{}"},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	s := engineOf(t, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{ownRead}})
	if last := said(t, s, "r1", "go"); last != "RUN_FINISHED" || !called {
		t.Errorf("it ended with %s", last)
	}
	twice := holdfast.Agent{
		Name:       "a",
		Model:      model,
		Tools:      []holdfast.Tool{ownRead},
		Middleware: []holdfast.Middleware{middleware.LargeResults(middleware.LargeResultsOptions{})},
	}
	if _, err := server.New(server.Config{Store: "memory:", Agents: []holdfast.Agent{twice}}); err == nil ||
		!strings.Contains(err.Error(), `two tools named "read_result"`) {
		t.Errorf("two tools of one name: %v", err)
	}
	path := written(t, "agents:\n  - name: a\n    tools: [read_result]\n    middleware: [largeResults]\n")
	if _, _, err := server.ValidateAgents(path,
		server.Parts{Getenv: noEnv, Tools: []holdfast.Tool{ownRead}}); err == nil ||
		!strings.Contains(err.Error(), `two tools named "read_result"`) {
		t.Errorf("in a file: %v", err)
	}
}

// engineOf starts a server of one agent, without a listener.
func engineOf(t *testing.T, agent holdfast.Agent) *server.Server {
	t.Helper()
	s, err := server.New(server.Config{Store: "memory:", Agents: []holdfast.Agent{agent},
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// said posts a text to the thread "t" and returns the type of the last event.
func said(t *testing.T, s *server.Server, run, text string) (last string) {
	t.Helper()
	for ev, err := range s.Run(t.Context(), server.LocalPrincipal(), server.Input{Thread: "t", Run: run, Text: text}) {
		if err != nil {
			t.Fatal(err)
		}
		last = ev.Type
	}
	return last
}
