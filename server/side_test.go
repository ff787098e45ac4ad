package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
	"github.com/holdfast-agents/holdfast/server"
)

// journal is what the demo's model and tools have done.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// demo serves the demo agent, with a journal.
func demo(t *testing.T, add ...holdfast.Middleware) (url string, j *journal) {
	t.Helper()
	j = &journal{}
	agents, _, err := loadAgents("", server.Parts{Getenv: noEnv, DemoJournal: j})
	if err != nil {
		t.Fatal(err)
	}
	agents[0].Middleware = append(add, agents[0].Middleware...)
	s, err := server.New(server.Config{Store: "memory:", Agents: agents,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		h.Close()
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return h.URL, j
}

// suggestion is what CopilotKit's page sends to know what its user could say next, which ends
// in the words of the user.
func suggestion(thread, words string) string {
	return `{"threadId":"` + thread + `","runId":"r","state":{},"messages":[{"id":"u1","role":"user","content":"hello"},
		{"id":"a1","role":"assistant","content":"hi"},{"id":"` + thread + `","role":"user","content":"` + words + `"}],
		"context":[{"description":"page","value":"cart"}],
		"tools":[{"name":"copilotkitSuggest","description":"Suggest what the user could say next",
			"parameters":{"type":"object","properties":{"suggestions":{"type":"array","items":{"type":"object",
				"properties":{"title":{"type":"string"},"message":{"type":"string"}},
				"required":["title","message"]}}},"required":["suggestions"]}}],
		"forwardedProps":{"toolChoice":{"type":"function","function":{"name":"copilotkitSuggest"}}}}`
}

func asks(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSuggestionsChargeNothing: what a page asks beside its conversation runs no tool of the
// server and leaves no thread, on every route by which it can ask.
func TestSuggestionsChargeNothing(t *testing.T) {
	t.Parallel()
	url, j := demo(t)
	for path, body := range map[string]string{
		"/runs":                          suggestion("s1", "charge 1"),
		"/agents/demo/runs":              suggestion("s2", "charge 1"),
		"/copilotkit/agent/demo/run":     suggestion("s3", "charge 1"),
		"/copilotkit/agent/default/run":  suggestion("s4", "charge 1"),
		"/copilotkit/agent/demo/suggest": suggestion("s5", "charge 1"),
		"/copilotkit": `{"method":"agent/run","params":{"agentId":"demo"},"body":` +
			suggestion("s6", "charge 1") + `}`,
		"/copilotkit/agent/demo/suggest?": suggestion("s1", "charge 1"),
	} {
		got := asks(t, "POST", url+path, body)
		// The model's words may come in one part or in several.
		got = regexp.MustCompile(`"\}\s+data: \{"type":"TOOL_CALL_ARGS","toolCallId":"call_0","delta":"`).
			ReplaceAllString(got, "")
		if !strings.Contains(got, `"toolCallName":"copilotkitSuggest"`) || !strings.Contains(got, "calculate 6 * 7") ||
			!strings.Contains(got, "RUN_FINISHED") || strings.Contains(got, "\nid:") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := asks(t, "GET", url+"/threads", ""); strings.Contains(got, `"s1"`) || strings.Contains(got, "charge") {
		t.Errorf("the threads are %s", got)
	}
	if got := j.String(); strings.Contains(got, "charge") || strings.Count(got, "model start") != 7 {
		t.Errorf("the demo did\n%s", got)
	}
}

// TestSuggestionsCount: they count for the budget of the tenant, and go through the same
// redaction as everything else.
func TestSuggestionsCount(t *testing.T) {
	t.Parallel()
	const key = "AKIAIOSFODNN7EXAMPLQ"
	limits := budget.Options{Tenant: budget.Limit{Tokens: 1000}, ReserveTokens: budget.ReserveTokens{Output: 100}}
	url, _ := demo(t, budget.New(limits), redaction.New(redaction.Options{}))
	first := asks(t, "POST", url+"/runs", suggestion("s1", "my key is "+key))
	if !strings.Contains(first, "RUN_FINISHED") || strings.Contains(first, key) {
		t.Fatalf("the first one: %s", first)
	}
	for range 200 {
		if got := asks(t, "POST", url+"/runs", suggestion("s1", "hello")); strings.Contains(got, "budget_exceeded") {
			return
		}
	}
	t.Error("the budget never ended")
}
