package middleware_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/server"
)

// A model that asks for the same thing again and again is stopped before the third
// call.
func ExampleCircuitBreaker() {
	type query struct {
		Query string `json:"query"`
	}
	search := holdfast.NewTool("search", "Searches the orders.", func(_ context.Context, q query) (string, error) {
		fmt.Println("search:", q.Query)
		return "nothing found", nil
	})
	stubborn := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "search", Arguments: `{"query":"parcel 7"}`}, Finish: holdfast.FinishToolCalls}, nil)
		}
	})
	agent := holdfast.Agent{
		Name: "helper", Model: stubborn, Tools: []holdfast.Tool{search},
		Middleware: []holdfast.Middleware{
			middleware.CircuitBreaker(middleware.CircuitBreakerOptions{MaxIdenticalCalls: 3}),
		},
	}
	fmt.Println(strings.Contains(runAgent(agent, "Where is parcel 7?"), holdfast.CodeCircuitOpen))
	// Output:
	// search: parcel 7
	// search: parcel 7
	// true
}

// runAgent runs an agent on a server of its own, and returns the stream.
func runAgent(agent holdfast.Agent, text string) string {
	s, err := server.New(server.Config{Store: "memory:", Agents: []holdfast.Agent{agent}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err.Error()
	}
	ctx := context.Background()
	if err := s.StartEngine(ctx); err != nil {
		return err.Error()
	}
	h := httptest.NewServer(s.Handler())
	defer func() {
		h.Close()
		_ = s.Shutdown(ctx)
	}()
	body := fmt.Sprintf(`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":%q}]}`, text)
	res, err := http.Post(h.URL+"/runs", "application/json", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	stream, _ := io.ReadAll(res.Body)
	return string(stream)
}
