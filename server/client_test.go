package server_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/server"
)

// TestWhoInstructs: with keys, what clients say as system or as context has no more
// authority than a user's words, unless the agent says otherwise; without keys everybody is
// the operator.
func TestWhoInstructs(t *testing.T) {
	const input = `{"threadId":"t","runId":"r","messages":[{"id":"s","role":"system","content":"OBEY"},{"id":"m",` +
		`"role":"user","content":"hi"}],` +
		`"context":[{"description":"place","value":"HERE"}]}`
	user := func(*http.Request) (holdfast.Principal, error) {
		return holdfast.Principal{Tenant: "acme", User: "alice"}, nil
	}
	for _, c := range []struct {
		name         string
		authenticate func(*http.Request) (holdfast.Principal, error)
		policy       holdfast.ClientPolicy
		want         []string
	}{
		{"without keys", nil, holdfast.ClientPolicy{},
			[]string{"system OPERATOR", "system OBEY", "context HERE", "user hi"}},
		{"with keys", user, holdfast.ClientPolicy{}, []string{"system OPERATOR", "user OBEY", "user HERE", "user hi"}},
		{"with keys, as AG-UI means it", user, holdfast.ClientPolicy{Instructions: "system", Context: "system"},
			[]string{"system OPERATOR", "system OBEY", "context HERE", "user hi"}},
		{"without keys, dropped", nil, holdfast.ClientPolicy{Instructions: "drop", Context: "drop"},
			[]string{"system OPERATOR", "user hi"}},
	} {
		var seen []string
		shorten := func(text string) string {
			for _, word := range []string{"OPERATOR", "OBEY", "HERE"} {
				if strings.Contains(text, word) {
					return word
				}
			}
			return text
		}
		cfg := config(t)
		cfg.Authenticate = c.authenticate
		cfg.Agents[0].Instructions, cfg.Agents[0].Client = "OPERATOR", c.policy
		cfg.Agents[0].Model = holdfast.ModelFunc(func(_ context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			for _, text := range req.Instructions {
				seen = append(seen, "system "+shorten(text))
			}
			for _, item := range req.Context {
				seen = append(seen, "context "+item.Value)
			}
			for _, m := range req.Messages {
				seen = append(seen, string(m.Role)+" "+shorten(m.PlainText()))
			}
			return func(yield func(holdfast.Delta, error) bool) {
				yield(holdfast.Delta{Text: "ok", Finish: holdfast.FinishStop}, nil)
			}
		})
		s := must(server.New(cfg))(t)
		if err := s.StartEngine(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := answered(s, "POST", "/runs", input)
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if w.Code != http.StatusOK || !slices.Equal(seen, c.want) {
			t.Errorf("%s: %d, the model saw %q, want %q", c.name, w.Code, seen, c.want)
		}
	}
}

// TestMediaOverHTTP: what an agent does not take is a 400 that says what to send.
func TestMediaOverHTTP(t *testing.T) {
	s := running(t, hello)
	for source, want := range map[string]int{
		`{"type":"url","value":"http://169.254.169.254/latest/meta-data"}`: 400,
		`{"type":"url","value":"file:///etc/passwd"}`:                      400,
		`{"type":"file","value":"file-1","provider":"openai"}`:             400,
		`{"type":"url","value":"https://example.com/a.png"}`:               200,
		`{"type":"data","value":"aGk=","mimeType":"image/png"}`:            200,
	} {
		thread := strings.Map(func(r rune) rune { return max(r, 'A') }, source)
		body := fmt.Sprintf(
			`{"threadId":%q,"runId":"r","messages":[{"id":"m","role":"user",`+
				`"content":[{"type":"image","source":%s}]}]}`,
			thread,
			source,
		)
		w := answered(s, "POST", "/runs", body)
		if w.Code != want || want == 400 &&
			(!strings.Contains(w.Body.String(), codes.MediaRefused) ||
				!strings.Contains(w.Body.String(), `"hint":"Send`)) {
			t.Errorf("%s: %d %s", source, w.Code, w.Body.String())
		}
	}
}
