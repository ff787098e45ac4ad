package http

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
)

// observed is an Observer that passes on what it observes.
type observed struct {
	done           chan string
	opened, closed atomic.Int64
	took           atomic.Int64
}

func (o *observed) RequestDone(route, method string, code int, took time.Duration) {
	o.took.Store(int64(took))
	o.done <- fmt.Sprintf("%s %s %d", method, route, code)
}
func (o *observed) StreamOpened() { o.opened.Add(1) }
func (o *observed) StreamClosed() { o.closed.Add(1) }

// TestObserver: each request is counted once, under names that clients cannot invent.
func TestObserver(t *testing.T) {
	seen := &observed{done: make(chan string, 1)}
	f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return &agui.Reply{Frames: func(func([]agui.Frame, error) bool) {
			if seen.opened.Load() != 1 || seen.closed.Load() != 0 {
				t.Errorf("in a stream %d are opened and %d closed", seen.opened.Load(), seen.closed.Load())
			}
		}}, nil
	}}
	// However the clock for stamps goes.
	s := serve(t, f, func(c *Config) {
		c.Observer = seen
		c.Now = func() clock.Stamp { return clock.At(time.Unix(1<<30-time.Now().UnixNano()/1000, 0)) }
	})
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/threads/secret%2Fid/messages", "", "GET /threads/{thread}/messages 200"},
		{"POST", "/runs", minimal, "POST /runs 200"},
		{"POST", "/agents/a/runs", "{", "POST /agents/{agent}/runs 400"},
		{"GET", "/", "", "GET / 404"},
		{"GET", "/ui/app.js", "", "GET /ui/* 404"},
		{"GET", "/no/such/thing", "", "GET other 404"},
		{"DELETE", "/threads", "", "DELETE other 405"},
		{"BREW", "/coffee", "", "OTHER other 405"},
		{"OPTIONS", "/runs", "", "OPTIONS other 405"},
	} {
		do(t, c.method, s.URL+c.path, c.body, "Content-Type", "application/json")
		if got := <-seen.done; got != c.want {
			t.Errorf("%s %s: observed %q, want %q", c.method, c.path, got, c.want)
		}
		if took := time.Duration(seen.took.Load()); took <= 0 || took > time.Minute {
			t.Errorf("%s %s took %s", c.method, c.path, took)
		}
	}
	if seen.opened.Load() != 1 || seen.closed.Load() != 1 {
		t.Errorf("%d streams opened, %d closed", seen.opened.Load(), seen.closed.Load())
	}
	f.post = func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return &agui.Reply{Frames: func(func([]agui.Frame, error) bool) { panic("in a stream") }}, nil
	}
	res, err := http.Post(s.URL+"/runs", "application/json", strings.NewReader(minimal))
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	if err == nil {
		t.Error("a stream that panicked looks like one that has ended")
	}
	<-seen.done
	if seen.closed.Load() != 2 {
		t.Error("a stream that panicked is still open")
	}
}

// TestAccessLog: requests that start runs are logged at the usual level, all others at
// debug level; what people wrote is never logged.
func TestAccessLog(t *testing.T) {
	seen := &observed{done: make(chan string, 1)}
	log := &process.Log{}
	h := New(Config{
		Runs:         posting([]agui.Frame{}),
		Ready:        func(context.Context) error { return nil },
		MaxBody:      1 << 10,
		Observer:     seen,
		Authenticate: func(*http.Request) (holdfast.Principal, error) { return holdfast.Principal{}, nil },
		Log:          slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	request := func(method, target, body string) string {
		req := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), req)
		<-seen.done
		return log.Take()
	}
	line := request("POST", "/runs?key=hunter2", strings.Replace(minimal, "hi", "hunter2", 1))
	for _, want := range []string{"level=INFO", "method=POST", "route=/runs", "status=200", "thread=t", "run=r"} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is not in %s", want, line)
		}
	}
	if strings.Contains(line, "hunter2") || strings.Count(line, "\n") != 1 {
		t.Errorf("%s", line)
	}
	line = request("GET", "/healthz?key=hunter2", "")
	if !strings.Contains(line, "level=DEBUG") || !strings.Contains(line, "route=/healthz") ||
		strings.Contains(line, "hunter2") {
		t.Errorf("%s", line)
	}
}

// TestAccessLogSaysWhy: the line of a request that failed has the code of its error.
func TestAccessLogSaysWhy(t *testing.T) {
	seen := &observed{done: make(chan string, 1)}
	log := &process.Log{}
	f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return nil, holdfast.Errorf(codes.MidExecution, "hunter2")
	}}
	s := serve(t, f, func(c *Config) {
		c.Observer, c.Log = seen, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	do(t, "POST", s.URL+"/runs", minimal, "Content-Type", "application/json")
	<-seen.done
	if line := log.Take(); !strings.Contains(line, "level=INFO") || !strings.Contains(line, "status=409") ||
		!strings.Contains(line, "code=mid_execution") {
		t.Errorf("%s", line)
	}
	do(t, "POST", s.URL+"/runs", "{", "Content-Type", "application/json")
	<-seen.done
	if line := log.Take(); !strings.Contains(line, "status=400") || !strings.Contains(line, "code=invalid_input") {
		t.Errorf("%s", line)
	}
	do(t, "GET", s.URL+"/healthz", "")
	<-seen.done
	if line := log.Take(); strings.Contains(line, "code=") {
		t.Errorf("%s", line)
	}
}

// TestAccessLogSaysWho: the line of a request has its tenant and user, once they are known.
func TestAccessLogSaysWho(t *testing.T) {
	seen := &observed{done: make(chan string, 1)}
	log := &process.Log{}
	s := serve(t, &fake{}, func(c *Config) {
		c.Observer, c.Log = seen, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.Authenticate = func(r *http.Request) (holdfast.Principal, error) {
			if r.Header.Get("Authorization") == "" {
				return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "no key")
			}
			return holdfast.Principal{Tenant: "acme", User: "bob"}, nil
		}
	})
	do(t, "GET", s.URL+"/threads", "", "Authorization", "Bearer key1")
	<-seen.done
	if line := log.Take(); !strings.Contains(line, "who=acme/bob") || strings.Contains(line, "key1") {
		t.Errorf("%s", line)
	}
	do(t, "GET", s.URL+"/threads", "")
	<-seen.done
	if line := log.Take(); !strings.Contains(line, "status=401") || strings.Contains(line, "who=") {
		t.Errorf("%s", line)
	}
}

// TestClientThatLeaves: a request whose client went away is a 499, whatever error that
// leads to, and no trouble of the server's.
func TestClientThatLeaves(t *testing.T) {
	for name, err := range map[string]error{
		"the store's": holdfast.Errorf(codes.StoreUnavailable, "away").Wrap(context.Canceled),
		"unforeseen":  context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			seen := &observed{done: make(chan string, 1)}
			log := &process.Log{}
			ctx, leave := context.WithCancel(t.Context())
			f := &fake{
				post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
					leave()
					return nil, err
				},
			}
			h := New(Config{
				Authorize:    anything,
				Runs:         f,
				Cancel:       f.Cancel,
				Threads:      f,
				History:      f,
				Upkeep:       f,
				MaxBody:      1 << 10,
				Observer:     seen,
				Authenticate: func(*http.Request) (holdfast.Principal, error) { return holdfast.Principal{}, nil },
				Log:          slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			req := httptest.NewRequestWithContext(ctx, "POST", "/runs", strings.NewReader(minimal))
			req.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(httptest.NewRecorder(), req)
			if got := <-seen.done; got != "POST /runs 499" {
				t.Errorf("observed %q", got)
			}
			if got := log.Take(); strings.Contains(got, "WARN") || !strings.Contains(got, "status=499") ||
				strings.Contains(got, "code=") {
				t.Errorf("%s", got)
			}
		})
	}
}
