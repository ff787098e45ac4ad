package http

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// TestLargeObjectsTakeTurns, whichever route they are for.
func TestLargeObjectsTakeTurns(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/threads/t/checkpoints": `{"state":"` + strings.Repeat("x", exchange.LargeBody) + `"}`,
		"/copilotkit":            `{"method":"info","body":"` + strings.Repeat("x", exchange.LargeBody) + `"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			bodies := newReceiver(&Config{
				MaxBody:     4 * exchange.LargeBody,
				MaxBodies:   64 * exchange.LargeBody,
				BodyTimeout: time.Minute,
				Awaiting:    func(*http.Request, bool) {},
			})
			bodies.Turns = exchange.TurnsOf(1)
			end := takeTurn(t, bodies.Turns)
			ended := make(chan error, 1)
			h := (&exchange.Monitor{Observer: exchange.NoObserver{}, Log: slog.New(slog.DiscardHandler),
				Bodies: bodies}).Observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if path == routeCopilotKit {
					ended <- (&copilotKit{agents: &agentAPI{}, runs: &runAPI{bodies: bodies}}).postCall(w, r,
						holdfast.Principal{})
					return
				}
				ended <- bodies.ReadObject(w, r, &struct{}{}, "state")
			}))
			w, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			request.Header.Set("Content-Type", typeJSON)
			go h.ServeHTTP(w, request)
			synctest.Wait()
			if len(ended) != 0 {
				t.Errorf("%s did not wait: %v", path, <-ended)
			}
			end()
			synctest.Wait()
			if len(ended) != 1 {
				t.Errorf("%s still waits", path)
			}
			began := time.Now()
			takeTurn(t, bodies.Turns)()
			if waited := time.Since(began); waited != 0 {
				t.Errorf("%s kept its turn: the next waited %s", path, waited)
			}
		})
	}
}

// takeTurn takes a turn for a large body, and returns what ends it.
func takeTurn(t *testing.T, turns *exchange.Turns) (end func()) {
	t.Helper()
	_, end, err := turns.Take(t.Context(), holdfast.Principal{Tenant: "first", User: "u"}, exchange.LargeBody)
	if err != nil {
		t.Fatal(err)
	}
	return end
}
