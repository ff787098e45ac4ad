package main

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/secret"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/webhook"
)

// TestRequestApproval: the ticket system gets the call, and its decision goes on with the
// thread.
func TestRequestApproval(t *testing.T) {
	var asked webhook.Delivery
	tickets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.Header.Get(webhook.HeaderSignature) == "" {
			http.Error(w, "no", http.StatusBadRequest)
		}
	}))
	t.Cleanup(tickets.Close)
	tool, err := RequestApproval(tickets.URL, secret.New("shared"))
	if err != nil {
		t.Fatal(err)
	}
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if last := req.Messages[len(req.Messages)-1]; last.Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "It said " + last.Text, Finish: holdfast.FinishStop}, nil)
				return
			}
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{Name: "request_approval", Arguments: `{"cents":990,"reason":"rope"}`},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	s, err := server.New(server.Config{
		Addr:   "localhost:0",
		Store:  "memory:",
		Agents: []holdfast.Agent{{Name: "a", Model: model, Tools: []holdfast.Tool{tool}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	post := func(to, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", to, res.StatusCode)
		}
	}
	post("http://"+s.Addr()+"/runs", `{"threadId":"t","messages":[{"id":"m","role":"user","content":"a rope"}]}`)
	if asked.Tool != "request_approval" || string(asked.Arguments) != `{"cents":990,"reason":"rope"}` {
		t.Fatalf("the ticket system was asked %+v", asked)
	}
	post(asked.URL, `{"result": {"approved": true}}`)
	await(t, "the thread to go on", func() bool {
		messages, err := s.Messages(t.Context(), server.LocalPrincipal(), "t")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(messages[len(messages)-1]), "It said")
	})
}
