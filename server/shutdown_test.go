package server_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/server"
)

// hang is something that a request makes the server do and that never ends, whatever becomes
// of its context.
type hang struct {
	begun   chan struct{}
	forever chan struct{}
	once    sync.Once
}

func (h *hang) stay() {
	h.once.Do(func() { close(h.begun) })
	<-h.forever
}

// TestNothingOutlastsAShutdown: a shutdown ends, with an error and a line in the log that say
// what was still running, whatever a request keeps doing.
func TestNothingOutlastsAShutdown(t *testing.T) {
	calls := holdfast.Delta{Call: &holdfast.CallDelta{ID: "c1", Name: "stay", Arguments: "{}"}}
	for name, c := range map[string]struct {
		does func(h *hang, c *server.Config)
		left string // nothing if the store can be closed
	}{
		"a model": {func(h *hang, c *server.Config) {
			c.Agents[0].Model = holdfast.ModelFunc(func(context.Context,
				*holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(func(holdfast.Delta, error) bool) { h.stay() }
			})
		}, "run "},
		"a hook": {func(h *hang, c *server.Config) {
			c.Agents[0].Middleware = []holdfast.Middleware{{Name: "test.stays",
				BeforeIteration: func(context.Context, *holdfast.Iteration) error { h.stay(); return nil }}}
		}, "run "},
		"a tool": {func(h *hang, c *server.Config) {
			c.Agents[0].Model = holdfast.ModelFunc(func(context.Context,
				*holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					_ = yield(calls, nil) && yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
				}
			})
			c.Agents[0].Tools = []holdfast.Tool{holdfast.NewTool("stay", "stays",
				func(context.Context, struct{}) (string, error) { h.stay(); return "", nil })}
		}, ""},
		"a handler under its thread's lock": {func(h *hang, c *server.Config) {
			c.Authorize = func(context.Context, holdfast.Principal, access.Action,
				string) error {
				h.stay()
				return nil
			}
		}, "POST /runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			h := &hang{begun: make(chan struct{}), forever: make(chan struct{})}
			cfg := config(t)
			cfg.AllowAnonymous = true
			cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
			c.does(h, &cfg)
			s := must(server.New(cfg))(t)
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				res, err := http.Post("http://"+s.Addr()+"/runs", "application/json",
					strings.NewReader(`{"threadId":"t","runId":"r","messages":[{"id":"m",`+
						`"role":"user","content":"go"}]}`))
				if err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			}()
			<-h.begun
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // its time is over
			err := s.Shutdown(ctx)
			<-answered
			if err == nil || c.left != "" &&
				(!strings.Contains(err.Error(), c.left) || !strings.Contains(said.String(), c.left)) {
				t.Errorf("%v, and the log:\n%s", err, &said)
			}
			close(h.forever)
			_ = s.Shutdown(t.Context()) // now all of it ends
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

// TestSlowBodiesDoNotKeepAServer: requests whose bodies do not come, and clients that say
// nothing, end with the server.
func TestSlowBodiesDoNotKeepAServer(t *testing.T) {
	cfg := config(t)
	cfg.AllowAnonymous = true
	s := must(server.New(cfg))(t)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, sent := range []string{"", "POST /ru",
		"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_ = s.Shutdown(ctx) // says that it has cut connections
	if ctx.Err() != nil {
		t.Error("the shutdown took all of its time")
	}
}
