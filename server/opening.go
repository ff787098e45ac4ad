package server

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// opening holds requests back until the server has started.
type opening struct {
	once sync.Once
	done chan struct{}
}

func newOpening() *opening { return &opening{done: make(chan struct{})} }

// open lets all requests in.
func (o *opening) open() { o.once.Do(func() { close(o.done) }) }

// isOpen reports whether requests are let in.
func (o *opening) isOpen() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// handler returns a handler whose requests wait, but for those that need no engine.
func (o *opening) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/", path == "/healthz", path == "/readyz", path == "/metrics", strings.HasPrefix(path, "/ui/"):
		default:
			select {
			case <-o.done:
			case <-r.Context().Done():
				panic(http.ErrAbortHandler) // the client has left
			}
		}
		next.ServeHTTP(w, r)
	})
}

// ready returns what reports whether a run could be started.
func (o *opening) ready(engine func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if !o.isOpen() {
			return holdfast.Errorf(codes.Starting, "This server is starting.").
				WithHint("It waits for what its agents need, like MCP servers. Try again in a second.")
		}
		return engine(ctx)
	}
}
