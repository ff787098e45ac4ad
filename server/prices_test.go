package server_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/server"
)

// TestCosts: runs and threads are shown with what they cost by the prices of the moment, and
// without a sum if a model has none.
func TestCosts(t *testing.T) {
	loaded := must(server.Load(written(t,
		"prices: {acme/*: {input: 2, output: 10}}\nagents:\n  - name: a\n    model: demo\n"),
		server.Parts{Getenv: noEnv}))(t)
	defer loaded.Close()
	in, out := int64(1000), int64(200)
	s := running(t, func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(
				holdfast.Delta{
					Text:   "hello",
					Finish: holdfast.FinishStop,
					Usage:  &holdfast.Usage{Provider: "acme", Model: "large", InputTokens: &in, OutputTokens: &out},
				},
				nil,
			)
		}
	})
	front := httptest.NewServer(s.Handler())
	defer front.Close()
	ask := func(method, path, body string) string {
		t.Helper()
		req := must(http.NewRequestWithContext(t.Context(), method, front.URL+path, strings.NewReader(body)))(t)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json")
		}
		res := must(http.DefaultClient.Do(req))(t)
		defer res.Body.Close()
		return string(must(io.ReadAll(res.Body))(t))
	}
	ask("POST", "/runs", `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"hi"}]}`)
	for _, step := range []struct {
		prices map[string]budget.Price
		cost   string
	}{{nil, ""}, {loaded.Prices, `"cost":0.004`}, {map[string]budget.Price{"other/*": {}}, ""}} {
		s.SetPrices(step.prices)
		for _, path := range []string{"/threads/t/runs", "/threads/t/usage"} {
			got := ask("GET", path, "")
			if !strings.Contains(got, `"inputTokens":1000`) ||
				strings.Count(got, `"cost"`) != 2*strings.Count(step.cost, `"cost"`) ||
				step.cost != "" && strings.Count(got, step.cost) < 2 {
				t.Errorf("with %v, %s is %s", step.prices, path, got)
			}
		}
	}
}
