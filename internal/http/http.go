// Package http is the HTTP surface: URLs, status codes, limits, the Server-Sent
// Events framing. A handler decodes, makes one call, and encodes. It knows neither
// how a run advances nor what is stored.
package http

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Runs starts, cancels and streams runs.
type Runs interface {
	// Post decides what an input means for its thread and returns the stream to
	// send.
	Post(ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput) (*agui.Reply, error)
	// Cancel asks for the end of a run.
	Cancel(ctx context.Context, who holdfast.Principal, thread, run string) (*holdfast.ThreadInfo, error)
	// Events streams a run after a cursor; nil if it has ended and nothing is
	// missing.
	Events(ctx context.Context, who holdfast.Principal, thread, run string, after holdfast.Cursor, d agui.Dialect) (*agui.Reply, error)
	// Attach streams a thread to a fresh page.
	Attach(ctx context.Context, who holdfast.Principal, thread string, d agui.Dialect) (*agui.Reply, error)
}

// Threads reads threads.
type Threads interface {
	Threads(ctx context.Context, who holdfast.Principal, before time.Time, limit int) ([]holdfast.ThreadInfo, error)
	Thread(ctx context.Context, who holdfast.Principal, thread string) (*holdfast.ThreadInfo, error)
	Messages(ctx context.Context, who holdfast.Principal, thread string) ([]json.RawMessage, error)
}

// Config is what a Handler needs. Every member must be set.
type Config struct {
	Runs    Runs
	Threads Threads
	// Ready reports why the server cannot serve; nil when it can.
	Ready func(ctx context.Context) error
	// Authenticate says who calls. It never reads the body.
	Authenticate func(*http.Request) (holdfast.Principal, error)
	// LoopbackOnly refuses requests whose Host or Origin is not this machine, so
	// that no web page from elsewhere can use a server without keys.
	LoopbackOnly bool
	// MaxBody bounds a request's body, in bytes.
	MaxBody int64
	// WriteTimeout bounds one write to a client that does not read.
	WriteTimeout time.Duration
	Log          *slog.Logger
}

type handler struct{ Config }

// New returns the handler of all routes.
func New(c Config) http.Handler {
	h := &handler{c}
	r := chi.NewRouter()
	r.Use(h.recoverPanics, h.localOnly, cors)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, holdfast.Errorf(holdfast.CodeNotFound, "There is no %s.", r.URL.Path).
			WithHint("POST /runs starts a run; GET /threads lists the threads."))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, holdfast.Errorf(holdfast.CodeMethodNotAllowed, "%s does not take %s.", r.URL.Path, r.Method).
			WithHint("The Allow header names what it takes."))
	})
	r.Get("/healthz", h.health)
	r.Get("/readyz", h.readiness)
	r.Post("/runs", h.postRun)
	r.Post("/agents/{agent}/runs", h.postRun)
	r.Get("/threads", h.listThreads)
	r.Get("/threads/{thread}", h.getThread)
	r.Get("/threads/{thread}/messages", h.getMessages)
	r.Get("/threads/{thread}/stream", h.getStream)
	r.Get("/threads/{thread}/runs/{run}/events", h.getEvents)
	r.Post("/threads/{thread}/runs/{run}/cancel", h.postCancel)
	return r
}

// param returns a part of the path. Ids are the client's: they may hold a slash,
// which is in the path as %2F, and then the router sees the path undecoded.
func param(r *http.Request, name string) string {
	v := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return v
	}
	decoded, err := url.PathUnescape(v)
	if err != nil {
		return v
	}
	return decoded
}

// health says that the process lives, whatever the store does.
func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readiness says whether a run could be started.
func (h *handler) readiness(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := h.Ready(ctx); err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
