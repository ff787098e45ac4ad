package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/server"
)

// tenanted starts a server that takes the caller's tenant from a header, with a model that
// answers when the test says so.
func tenanted(t *testing.T, change func(*server.Config)) (url string, s *server.Server, answer chan struct{}) {
	t.Helper()
	answer = make(chan struct{})
	c := config(t)
	c.Agents[0].Model = holdfast.ModelFunc(func(ctx context.Context,
		_ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			select {
			case <-answer:
				yield(holdfast.Delta{Text: "yes", Finish: holdfast.FinishStop}, nil)
			case <-ctx.Done():
				yield(holdfast.Delta{}, ctx.Err())
			}
		}
	})
	c.Authenticate = func(r *http.Request) (holdfast.Principal, error) {
		return holdfast.Principal{Tenant: r.Header.Get("Tenant"), User: "user"}, nil
	}
	c.MultiTenant = func() bool { return true }
	change(&c)
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		web.CloseClientConnections()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		web.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return web.URL, s, answer
}

// begins posts a run and returns the response once it has begun.
func begins(t *testing.T, method, url, tenant, body string) *http.Response {
	t.Helper()
	if method == "GET" {
		body = ""
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Tenant", tenant)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func runOf(thread string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":"r","messages":[{"id":"u","role":"user","content":"wait"}]}`, thread)
}

// refusal is what a client is told.
type refusal struct {
	Error struct {
		Code, Message, Hint string
		Details             struct {
			Resource, Scope string
			Used, Limit     int
		}
	}
}

// TestOneTenantLeavesRoom: one tenant begins all the runs that it can and disconnects;
// another one still begins its own. The refusal says which limit it is and when to come
// back.
func TestOneTenantLeavesRoom(t *testing.T) {
	url, s, _ := tenanted(t, func(c *server.Config) { c.MaxRuns = 5 })
	refused := 0
	for n := range 5 {
		res := begins(t, "POST", url+"/runs", "evil", runOf(fmt.Sprint("m", n)))
		if res.StatusCode == http.StatusOK {
			res.Body.Close() // its run goes on
			continue
		}
		refused++
		var said refusal
		err := json.NewDecoder(res.Body).Decode(&said)
		res.Body.Close()
		d := said.Error.Details
		if err != nil || res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" ||
			said.Error.Code != "limit_exceeded" || d.Resource != "runs" || d.Scope != "tenant" || d.Used != 1 ||
			d.Limit != 1 || said.Error.Hint == "" {
			t.Errorf("%d, %v: %+v", res.StatusCode, err, said)
		}
	}
	if refused != 4 {
		t.Errorf("%d of 5 runs were refused, want all but a quarter of the places", refused)
	}
	res := begins(t, "POST", url+"/runs", "acme", runOf("a"))
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("another tenant gets %d", res.StatusCode)
	}
	if text := scrape(s); !strings.Contains(text, `holdfast_limit_rejections_total{limit="runs",scope="tenant"} 4`) {
		t.Error("the refusals are not counted")
	}
}

// TestStreamLimit: the responses of POST and of the routes that read a run count as streams, and
// each counts until it has ended, however it ends.
func TestStreamLimit(t *testing.T) {
	url, _, answer := tenanted(t, func(c *server.Config) { c.Quotas.PerUser.Streams = 2 })
	first := begins(t, "POST", url+"/runs", "acme", runOf("t"))
	defer first.Body.Close()
	routes := map[string]string{"/threads/t/stream": "GET", "/threads/t/runs/r/events": "GET", "/runs": "POST"}
	for round := range 2 {
		for path, method := range routes {
			second := begins(t, method, url+path, "acme", runOf("t"))
			if second.StatusCode != http.StatusOK {
				t.Fatalf("round %d, %s: %d", round, path, second.StatusCode)
			}
			for other, method := range routes {
				res := begins(t, method, url+other, "acme", runOf("t"))
				res.Body.Close()
				if res.StatusCode != http.StatusTooManyRequests {
					t.Errorf("%s beside %s: %d", other, path, res.StatusCode)
				}
			}
			res := begins(t, "GET", url+"/threads/t", "acme", "")
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("reading is refused: %d", res.StatusCode)
			}
			second.Body.Close() // the client goes away
			wait.Until(t, "the streams to be counted", func() bool {
				res := begins(t, "GET", url+"/threads/t/stream", "acme", "")
				res.Body.Close()
				return res.StatusCode == http.StatusOK
			})
			wait.Until(t, "one open stream", func() bool { return openStreams(t, url) == 1 })
		}
	}
	// A request that fails, and one whose run ends, give their places back.
	for range 5 {
		res := begins(t, "GET", url+"/threads/none/stream", "acme", "")
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("a stream of a thread that is not there: %d", res.StatusCode)
		}
	}
	close(answer)
	if _, err := io.Copy(io.Discard, first.Body); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		res := begins(t, "POST", url+"/runs", "acme", runOf(fmt.Sprint("after", n)))
		_, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || err != nil {
			t.Errorf("after the streams have ended: %d, %v", res.StatusCode, err)
		}
	}
}

// openStreams returns how many streams the server has open.
func openStreams(t *testing.T, url string) int {
	t.Helper()
	for line := range strings.Lines(get(t, url+"/metrics")) {
		var n int
		if _, err := fmt.Sscanf(line, "holdfast_open_streams %d", &n); err == nil {
			return n
		}
	}
	t.Fatal("there is no holdfast_open_streams")
	return 0
}

// TestLoadQuotas: the limits are read from the file of agents.
func TestLoadQuotas(t *testing.T) {
	path := written(t, `
agents: [{name: a, model: demo}]
limits:
  perTenant: {runs: 100, streams: 500, threads: 100000, bytes: 2TiB}
  perUser: {runs: 10}
  tenants:
    acme: {perUser: {bytes: 10GiB}}
`)
	loaded, err := server.Load(path, server.Parts{Getenv: noEnv})
	want := server.Quotas{
		PerTenant: server.Quota{
			Runs:    100,
			Streams: 500,
			Threads: 100_000,
			Bytes:   2 << 40,
		},
		PerUser: server.Quota{Runs: 10},
		Tenants: map[string]server.TenantQuota{"acme": {PerUser: server.Quota{Bytes: 10 << 30}}},
	}
	if err != nil || !reflect.DeepEqual(loaded.Quotas, want) {
		t.Errorf("got %+v, %v", loaded, err)
	}
	if none, err := server.Load("", server.Parts{Getenv: noEnv}); err != nil ||
		!reflect.DeepEqual(none.Quotas, server.Quotas{}) {
		t.Errorf("without a file: %+v, %v", none, err)
	}
}

// TestNegativeQuotas are found before anything runs.
func TestNegativeQuotas(t *testing.T) {
	for _, q := range []server.Quotas{
		{PerTenant: server.Quota{Runs: -1}}, {PerUser: server.Quota{Bytes: -1}},
		{Tenants: map[string]server.TenantQuota{"a": {PerUser: server.Quota{Streams: -1}}}},
	} {
		c := config(t)
		c.Quotas = q
		if _, err := server.New(c); err == nil || !strings.Contains(err.Error(), "negative limit") {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
