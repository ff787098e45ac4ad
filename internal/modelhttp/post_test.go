package modelhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/model"
)

// TestSentOnce: a request that a provider has read is never sent again by the transport,
// whatever headers it has. Another attempt is the engine's to make, who counts and shows
// it.
func TestSentOnce(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"X-Other", "Idempotency-Key", "X-Idempotency-Key"} {
		var asked atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			if asked.Add(1) == 1 {
				fmt.Fprint(w, "data: x\n\n")
				return
			}
			// The connection is used again, and dies before the answer.
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		}))
		t.Cleanup(s.Close)
		client, err := New(Provider{}, model.Options{
			Model:   "m",
			BaseURL: s.URL,
			Headers: map[string]string{header: "one and the same"},
			HTTP:    s.Client(),
		})
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for range 2 {
			client.Stream(t.Context(), "/", text("body"), func(_ holdfast.Delta, err error) bool {
				last = err
				return true
			}, parseLines)
		}
		var e *holdfast.ModelError
		if asked.Load() != 2 || !errors.As(last, &e) || e.Kind != failure.Overloaded || !e.Retryable {
			t.Errorf("%s: asked %d times, %v", header, asked.Load(), last)
		}
	}
}

// TestTraceparent: a provider gets the trace context of the run.
func TestTraceparent(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := ""
	client, err := New(Provider{}, model.Options{
		Model:   "m",
		BaseURL: "https://host",
		HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("traceparent")
			return nil, errors.New("no")
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := holdfast.ContextWithRun(t.Context(),
		&holdfast.RunContext{Iteration: func() holdfast.Iteration { return holdfast.Iteration{Traceparent: parent} }})
	client.Stream(ctx, "/", text("body"), func(holdfast.Delta, error) bool { return true }, parseLines)
	if got != parent {
		t.Errorf("sent %q", got)
	}
}
