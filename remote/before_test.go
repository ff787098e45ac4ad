package remote_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/remote"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// inProcess sends requests to a handler. The first response breaks off after so many bytes.
type inProcess struct {
	handler http.Handler
	left    atomic.Int64
	posts   atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (p *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	reader, writer := io.Pipe()
	w := &pipeWriter{header: http.Header{}, to: writer, began: make(chan struct{})}
	go func() {
		defer writer.Close()
		p.handler.ServeHTTP(w, r.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
	}()
	<-w.began
	body := io.Reader(reader)
	if p.posts.Add(1) == 1 {
		body = io.LimitReader(reader, p.left.Load())
	}
	return &http.Response{StatusCode: w.status, Header: w.header, Request: r, Body: &closing{body, reader, cancel}}, nil
}

// closing ends a request when its body is closed.
type closing struct {
	io.Reader
	pipe   *io.PipeReader
	cancel func()
}

func (c *closing) Close() error {
	c.cancel()
	return c.pipe.Close()
}

// pipeWriter is the response of a request in this process.
type pipeWriter struct {
	header http.Header
	status int
	to     *io.PipeWriter
	began  chan struct{}
	once   sync.Once
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() { w.status = status; close(w.began) })
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.to.Write(b)
}

func (w *pipeWriter) Flush() {}

// counting is a model that calls the tool count once, and says what it was told.
func counting(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role != holdfast.RoleTool {
			_ = yield(holdfast.Delta{Text: "I count. "}, nil) &&
				yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "count", ID: "c1", Arguments: "{}"}}, nil) &&
				yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
			return
		}
		_ = yield(holdfast.Delta{Text: "It is "}, nil) && yield(holdfast.Delta{Text: last.Text + "."}, nil) &&
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
	}
}

// TestHoldfastBeforeHoldfast cuts the connection between two servers anywhere. The run ends as if nothing
// had happened, and the tool of the one behind is called once.
func TestHoldfastBeforeHoldfast(t *testing.T) {
	for cut := 0; cut < 2000; cut += 250 {
		t.Run(fmt.Sprint("after ", cut), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var count atomic.Int64
				tool := holdfast.NewTool("count", "counts", func(context.Context, struct{}) (string, error) {
					return fmt.Sprint(count.Add(1)), nil
				}, holdfast.WithEffect(holdfast.EffectOnce))
				far, err := server.New(server.Config{
					Agents: []holdfast.Agent{{Name: "far", Model: holdfast.ModelFunc(counting),
						Tools: []holdfast.Tool{tool}}},
					Log:       slog.New(slog.DiscardHandler),
					OpenStore: func() (store.Store, error) { return memstore.New(), nil },
				})
				if err == nil {
					err = far.StartEngine(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := far.Shutdown(context.Background()); err != nil {
						t.Error(err)
					}
				}()
				way := &inProcess{handler: far.Handler()}
				way.left.Store(int64(cut))
				model, err := remote.New(remote.Options{
					URL: "http://localhost/runs", HTTP: &http.Client{Transport: way}, OnCut: "retry",
				})
				if err != nil {
					t.Fatal(err)
				}
				r := agenttest.New(t, agenttest.Config{Model: model}).Run("count")
				got := history(r.Messages)
				if r.Outcome != agenttest.Success || !strings.HasPrefix(got, "u:count | a:I count.  count{}") ||
					!strings.HasSuffix(got, "a:It is 1.") || count.Load() != 1 {
					t.Errorf("%s %s: %s; the tool was called %d times", r.Outcome, r.Hint, got, count.Load())
				}
			})
		})
	}
}
