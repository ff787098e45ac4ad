package hooktest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/stores"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// Helpers of the built-in middleware's tests beyond agenttest's harness.

// Serve starts a harness for an agent, whose name is "a" if it has none, on a store, or on one
// in memory if that is nil. The frontend has the tool "confirm".
func Serve(t *testing.T, agent holdfast.Agent, db store.Store) *agenttest.Harness {
	t.Helper()
	agent.Name = cmp.Or(agent.Name, "a")
	return agenttest.New(t, agenttest.Config{
		Agent:         agent,
		Store:         db,
		Server:        server.Config{MaxIterations: 10_000},
		FrontendTools: []holdfast.ToolSpec{{Name: "confirm", Parameters: json.RawMessage("{}")}},
	})
}

// Open opens the store of a URL for the time of the test.
func Open(t *testing.T, url string) store.Store {
	t.Helper()
	db, err := stores.Open(url, stores.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Ask asks the server for something, which has to be a success, and returns what it says.
func Ask(t *testing.T, h *agenttest.Harness, method, path string, body any) string {
	t.Helper()
	res := h.Request(method, path, body)
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusMultipleChoices {
		t.Errorf("%s %s: %s %v %s", method, path, res.Status, err, text)
	}
	return string(text)
}

// Post makes a run whose ids the test chooses, and returns the stream. Without a body the run
// begins with a message of the user.
func Post(t *testing.T, h *agenttest.Harness, thread, run string, body map[string]any) string {
	t.Helper()
	if body == nil {
		body = map[string]any{"messages": []any{map[string]any{"id": "m" + run, "role": "user", "content": "go"}}}
	}
	body["threadId"], body["runId"], body["protocolVersion"] = thread, run, "1.0"
	if body["messages"] == nil {
		body["messages"] = []any{}
	}
	return Ask(t, h, http.MethodPost, "/runs", body)
}

// Checkpoint returns the id of a thread's newest checkpoint.
func Checkpoint(t *testing.T, h *agenttest.Harness, thread string) string {
	t.Helper()
	var list struct{ Checkpoints []struct{ ID string } }
	text := Ask(t, h, http.MethodGet, "/threads/"+thread+"/checkpoints", nil)
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Checkpoints) == 0 {
		t.Fatalf("%s, %v", text, err)
	}
	return list.Checkpoints[0].ID
}

// Fork branches a thread off another one, from its newest checkpoint.
func Fork(t *testing.T, h *agenttest.Harness, from, to string) {
	t.Helper()
	at := map[string]string{"threadId": to, "checkpointId": Checkpoint(t, h, from)}
	Ask(t, h, http.MethodPost, "/threads/"+from+"/fork", at)
}

// Rewind takes a thread back to a checkpoint.
func Rewind(t *testing.T, h *agenttest.Harness, thread, checkpoint string) {
	t.Helper()
	Ask(t, h, http.MethodPost, "/threads/"+thread+"/rewind", map[string]string{"checkpointId": checkpoint})
}

// Text is all that a run has shown, an event a line.
func Text(r *agenttest.Result) string {
	var all strings.Builder
	for _, e := range r.Events {
		fmt.Fprintf(&all, "%s\n", e.Raw)
	}
	return all.String()
}

// Notices returns the values of a run's notices of that name.
func Notices(r *agenttest.Result, name string) (values []string) {
	for _, n := range r.Notices() {
		if n.Name == name {
			values = append(values, string(n.Value))
		}
	}
	return values
}

// Results returns the texts of the tool results that a run has shown.
func Results(r *agenttest.Result) (texts []string) {
	for _, e := range r.Events {
		if e.Type == "TOOL_CALL_RESULT" {
			content := e.Map()["content"]
			text, ok := content.(string)
			if !ok {
				text = fmt.Sprint(content)
			}
			texts = append(texts, text)
		}
	}
	return texts
}

// Question returns the id of the one question with which the run has to have ended.
func Question(t *testing.T, r *agenttest.Result) string {
	t.Helper()
	if len(r.Questions) != 1 {
		t.Fatalf("the run did not end with one question: %+v", r)
	}
	return r.Questions[0].ID
}

// RunAgent runs an agent on a server of its own and returns the stream, or the error. It
// is for examples, which have no test.
func RunAgent(agent holdfast.Agent, text string) string {
	s, err := server.New(server.Config{Store: "memory:", Agents: []holdfast.Agent{agent},
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err.Error()
	}
	ctx := context.Background()
	if err := s.StartEngine(ctx); err != nil {
		return err.Error()
	}
	defer func() { _ = s.Shutdown(ctx) }()
	body := fmt.Sprintf(`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":%q}]}`, text)
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/runs", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	return w.Body.String()
}
