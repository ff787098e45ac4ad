package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// provided is a provider in OpenAI's format: it counts its requests, and answers with the
// status or, if that is 200, with its name.
type provided struct {
	*httptest.Server
	asked atomic.Int32
}

func provides(t *testing.T, name string, status int) *provided {
	t.Helper()
	p := &provided{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.asked.Add(1)
		if status != http.StatusOK {
			http.Error(w, `{"error": {"message": "no"}}`, status)
			return
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"I am "+
			"%s.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", name)
	}))
	t.Cleanup(p.Close)
	return p
}

// chainOf returns the agents of a file: a asks both models, and b only the second one.
func chainOf(t *testing.T, first, second *provided) []holdfast.Agent {
	t.Helper()
	agents, _, err := loadAgents(written(t, fmt.Sprintf(`
agents:
  - name: a
    models:
      - {name: openai/first, baseURL: %s}
      - {name: openai/second, baseURL: %s}
  - name: b
    model: openai/second
    baseURL: %s
`, first.URL, second.URL, second.URL)), server.Parts{Getenv: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	return agents
}

// firstIsOpen reports what /metrics says of the circuit of the first model.
func firstIsOpen(t *testing.T, url string) bool {
	t.Helper()
	return strings.Contains(get(t, url+"/metrics"), `holdfast_model_circuit_open{model="first",provider="openai"} 1`)
}

// TestReplicasShareCircuits: what one server finds out about a model keeps another from
// asking it, through Redis.
func TestReplicasShareCircuits(t *testing.T) {
	mini := miniredis.RunT(t)
	first, second := provides(t, "first", http.StatusPaymentRequired), provides(t, "second", http.StatusOK)
	c := config(t)
	c.Store, c.Agents = "redis://"+mini.Addr(), chainOf(t, first, second)
	one, two := started(t, c), started(t, c)
	if got := post(t, one, "t", "hi"); !strings.Contains(got, "I am second.") || !firstIsOpen(t, one) {
		t.Fatalf("after %d requests to the model the circuit is closed; the answer is %s", first.asked.Load(), got)
	}
	asked := first.asked.Load()
	// While the other server asks models, it hears within a second.
	for n, begun := 0, time.Now(); !firstIsOpen(t, two); n++ {
		if time.Since(begun) > time.Minute {
			t.Fatalf("the other server has not heard of it; Redis has %s", mini.Dump())
		}
		post(t, two+"/agents/b", fmt.Sprint("b", n), "hi")
	}
	for n := range 10 {
		if got := post(t, two, fmt.Sprint("u", n), "hi"); !strings.Contains(got, "I am second.") ||
			strings.Contains(got, "I am first.") {
			t.Errorf("the answer is %s", got)
		}
	}
	if n := first.asked.Load() - asked; n != 0 {
		t.Errorf("the model was asked %d times more", n)
	}
	hints, err := mini.HKeys("hf:hints")
	if err != nil || len(hints) != 1 || !strings.HasPrefix(hints[0], "circuit/openai/first ") {
		t.Errorf("the hints are %q, %v", hints, err)
	}
}

// hinting is a store that counts what is done with hints; if it is away, only that fails.
type hinting struct {
	*memstore.Store
	away          bool
	reads, writes atomic.Int32
}

func (s *hinting) Hints(ctx context.Context) ([]store.Hint, error) {
	s.reads.Add(1)
	if s.away {
		return nil, errors.New("connection refused")
	}
	return s.Store.Hints(ctx)
}

func (s *hinting) PutHint(ctx context.Context, name string, data []byte, ttl time.Duration) error {
	s.writes.Add(1)
	if s.away {
		return errors.New("connection refused")
	}
	return s.Store.PutHint(ctx, name, data, ttl)
}

// TestOpenCircuitCostsNothing: a thousand runs of an agent whose first model has an open
// circuit do not ask it, and do not ask the store for each of them; and if the store knows no
// hints at the moment, they still run.
func TestOpenCircuitCostsNothing(t *testing.T) {
	for away, each := range map[bool]int{false: 125, true: 10} {
		t.Run(fmt.Sprintf("away %t", away), func(t *testing.T) {
			first, second := provides(t, "first", http.StatusUnauthorized), provides(t, "second", http.StatusOK)
			db := &hinting{Store: memstore.New(), away: away}
			c := config(t)
			c.OpenStore, c.Agents = func() (store.Store, error) { return db, nil }, chainOf(t, first, second)
			url, begun := started(t, c), time.Now()
			post(t, url, "first", "hi")
			var runs sync.WaitGroup
			for w := range 8 {
				runs.Go(func() {
					for n := range each {
						body := fmt.Sprintf(
							`{"threadId":"t%d-%d","runId":"r","protocolVersion":"1.0","messages":[{"id":"m",`+
								`"role":"user","content":"hi"}]}`,
							w,
							n,
						)
						res, err := http.Post(url+"/runs", "application/json", strings.NewReader(body))
						if err != nil {
							t.Error(err)
							return
						}
						text, err := io.ReadAll(res.Body)
						_ = res.Body.Close()
						if err != nil || !strings.Contains(string(text), "I am second.") {
							t.Errorf("the answer is %s, %v", text, err)
						}
					}
				})
			}
			runs.Wait()
			seconds := int32(time.Since(begun)/time.Second) + 1
			if first.asked.Load() != 1 || second.asked.Load() != int32(8*each+1) {
				t.Errorf("the models were asked %d and %d times", first.asked.Load(), second.asked.Load())
			}
			// A hint that could not be written is tried again with each read.
			if r, w := db.reads.Load(), db.writes.Load(); r > seconds || !away && w != 1 || w > 1+seconds {
				t.Errorf("in %d seconds hints were read %d and written %d times", seconds, r, w)
			}
			if !firstIsOpen(t, url) {
				t.Error("the circuit is not open")
			}
		})
	}
}

// TestNobodyToAsk: servers whose agents have one model each tell each other nothing.
func TestNobodyToAsk(t *testing.T) {
	first := provides(t, "first", http.StatusUnauthorized)
	agents := chainOf(t, first, provides(t, "second", http.StatusOK))
	agents[0].Fallbacks = nil
	db := &hinting{Store: memstore.New()}
	c := config(t)
	c.OpenStore, c.Agents = func() (store.Store, error) { return db, nil }, agents
	url := started(t, c)
	for n := range 3 {
		post(t, url, fmt.Sprint("t", n), "hi")
	}
	if first.asked.Load() != 3 || !firstIsOpen(t, url) {
		t.Errorf("the only model was asked %d times", first.asked.Load())
	}
	if r, w := db.reads.Load(), db.writes.Load(); r+w != 0 {
		t.Errorf("hints were read %d and written %d times", r, w)
	}
}

// tried is a model of a provider that is overloaded until it is told otherwise. An answer
// takes a second.
type tried struct {
	name  string
	well  atomic.Bool
	asked atomic.Int32
}

func (m *tried) ModelName() (provider, model string) { return "acme", m.name }

func (m *tried) Stream(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		m.asked.Add(1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		if !m.well.Load() {
			yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.Overloaded, Retryable: true})
			return
		}
		yield(holdfast.Delta{Text: "I am " + m.name, Finish: holdfast.FinishStop}, nil)
	}
}

// TestOneRequestTries: when the time of an open circuit is over, one of many requests tries
// the model; once it answers, all ask it again.
func TestOneRequestTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &tried{name: "first"}, &tried{name: "second"}
		second.well.Store(true)
		c := config(t)
		c.Agents = []holdfast.Agent{{Name: "a", Model: first, Fallbacks: []holdfast.Model{second}}}
		s := must(server.New(c))(t)
		if err := s.StartEngine(t.Context()); err != nil {
			t.Fatal(err)
		}
		threads := 0
		ask := func(runs int, wantFirst int32) {
			t.Helper()
			before := first.asked.Load()
			var all sync.WaitGroup
			for range runs {
				threads++
				thread := fmt.Sprint("t", threads)
				all.Go(func() {
					for _, err := range s.Run(t.Context(), server.LocalPrincipal(),
						server.Input{Thread: thread, Text: "hi"}) {
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if n := first.asked.Load() - before; n != wantFirst {
				t.Errorf("of %d requests %d asked the first model, want %d", runs, n, wantFirst)
			}
		}
		ask(5, 5) // the fifth failure opens the circuit, and nobody asks again
		ask(50, 0)
		time.Sleep(10 * time.Second)
		ask(50, 1)
		first.well.Store(true)
		time.Sleep(20 * time.Second)
		ask(50, 1)
		ask(50, 50)
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
