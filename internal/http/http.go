// Package http is the HTTP surface: URLs, status codes, limits, content negotiation
// and Server-Sent Events framing. A handler decodes the request, makes one call and
// encodes the result. It knows neither how a run advances nor what is stored.
package http

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/detached"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The handler of all routes: what it needs from the rest of the server, and what
// happens to every request before and after its route.

// Runs starts, cancels and streams runs.
type Runs interface {
	// Post decides what an input means for its thread and returns the stream to send; nil if
	// the run has ended and its client has all of it.
	Post(ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput) (*agui.Reply, error)
	// Events streams a run after a cursor; nil if it has ended and nothing is missing. If it
	// is given no run, it streams the thread's current one, and shows a client that has all of
	// it the thread as it is.
	Events(
		ctx context.Context,
		who holdfast.Principal,
		thread, run string,
		after store.Cursor,
		d agui.Dialect,
	) (*agui.Reply, error)
	// Attach streams a thread to a client that knows nothing about it.
	Attach(ctx context.Context, who holdfast.Principal, thread string, d agui.Dialect) (*agui.Reply, error)
}

// Streams bounds the streams of each caller.
type Streams interface {
	// OpenStream counts a stream that is about to be opened. closed is called when it has
	// ended. An error says that the caller has too many.
	OpenStream(who holdfast.Principal) (closed func(), err error)
	// HoldBytes counts what an answer holds in memory. taken is called when its client has
	// taken it. An error says that there is no room.
	HoldBytes(who holdfast.Principal, bytes int64) (taken func(), err error)
}

// Threads reads threads.
type Threads interface {
	Threads(ctx context.Context, who holdfast.Principal, before time.Time, limit int) ([]threads.Info, error)
	Thread(ctx context.Context, who holdfast.Principal, thread string) (*threads.Info, error)
	// Messages returns the history, read as it is used; after an error there is no more.
	Messages(ctx context.Context, who holdfast.Principal, thread string) (iter.Seq2[json.RawMessage, error], error)
	// State returns the shared state and the states of the middleware.
	State(ctx context.Context, who holdfast.Principal, thread string) (*threads.State, error)
	// Runs lists up to limit of a thread's runs, newest first: those after the run before
	// in that order (empty: from the newest).
	Runs(ctx context.Context, who holdfast.Principal, thread, before string, limit int) ([]threads.Run, error)
}

// Config is what the handler needs. Every member must be set unless it is marked as
// optional.
type Config struct {
	// Authorize decides whether a caller may do something, to whatever agent or, if it is not
	// empty, to this one; its error refuses.
	Authorize func(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error
	Runs      Runs
	// Cancel asks a run to end.
	Cancel  func(ctx context.Context, who holdfast.Principal, thread, run string) (*threads.Info, error)
	Threads Threads
	History History
	Upkeep  Upkeep
	Titles  Titles
	Calls   Calls
	// Inspect shows what is inside threads.
	Inspect Inspect
	// RunLog returns up to limit records of a run after a cursor (zero: from its first), without
	// waiting for more.
	RunLog func(
		ctx context.Context,
		who holdfast.Principal,
		thread, run string,
		after store.Cursor,
		limit int,
	) (*agui.Page, error)
	// Transfer exports and imports threads.
	Transfer Transfer
	// Agents lists the agents that can be run. Optional: without it the routes below
	// /agents that describe agents answer 404.
	Agents Agents
	// Console is for operators, and Others is how they read other users' threads. Optional:
	// without them nobody operates the server over HTTP.
	Console Console
	Others  Others
	// Demo is a server for trying out. Optional: nil for all others.
	Demo Demo
	// Streams counts the open streams of each caller. Optional: nil if they are not
	// limited.
	Streams Streams
	// Detached takes over the connections of silent streams. Optional: without it every
	// stream stays in its handler.
	Detached *detached.Conns
	// Awaiting is called when the server begins to wait for the body of a request, and when
	// all of it has come. Optional.
	Awaiting func(r *http.Request, waits bool)
	// Unread is called when a request has been answered whose body was not read to its end:
	// its connection ends soon. Optional.
	Unread func(*http.Request)
	// Ready reports why the server cannot serve; nil when it can.
	Ready func(ctx context.Context) error
	// Backup copies the store to a new directory. Optional: nil if it cannot be copied.
	Backup func(ctx context.Context, dir string) error
	// Operator identifies the operator who sent a request, for the log; "" if it was
	// somebody else. Optional: nil if nobody may operate the server over HTTP.
	Operator func(*http.Request) (who string, err error)
	// Audit logs what an operator has done. Optional.
	Audit func(ctx context.Context, who, action string, err error)
	// Authenticate identifies the caller. It never reads the body.
	Authenticate func(*http.Request) (holdfast.Principal, error)
	// LoopbackOnly refuses requests whose Host or Origin is not this machine, so that
	// no web page from elsewhere can use a server without keys. Origins listed in
	// AllowedOrigins are still allowed, but "*" does not count.
	LoopbackOnly bool
	// BehindProxy lets a server with LoopbackOnly serve what a proxy has forwarded.
	BehindProxy bool
	// Anonymous: everyone may call without a key, by one of Hosts. Pages of other sites
	// may not change anything unless AllowedOrigins lists them; "*" does not count.
	Anonymous bool
	// Hosts are the names by which clients may address the server, besides the loopback
	// names if LoopbackOnly is set. Optional: a server that is neither LoopbackOnly nor
	// Anonymous then answers to all names.
	Hosts Hosts
	// AllowedOrigins are the other origins whose pages may use this server; see
	// [ParseOrigins]. Optional: the zero value allows none.
	AllowedOrigins Origins
	// UI serves GET / and GET /ui/*, with the unchanged path. Optional.
	UI http.Handler
	// Metrics serves GET /metrics. Optional.
	Metrics http.Handler
	// Observer observes requests and streams. Optional.
	Observer Observer
	// Version is the server's own version, for /openapi.json. Optional.
	Version string
	// MaxBody bounds a request's body, in bytes.
	MaxBody int64
	// MaxBodies bounds the bytes of all bodies that are being received and decoded; those of
	// one tenant may be half of it. Optional: 16 times MaxBody.
	MaxBodies int64
	// BodyTimeout is how long a request's body may take to arrive. Optional: 30 seconds.
	BodyTimeout time.Duration
	// WriteTimeout bounds one write to a client that does not read.
	WriteTimeout time.Duration
	// MinRate is how many bytes per second a client must take of a response, while there is
	// something to send. Optional: 0 means that WriteTimeout is the only bound.
	MinRate int64
	Log     *slog.Logger
	// Now is the clock for stamps. Optional: [clock.Wall].
	Now clock.Shared
}

type handler struct {
	Config
	// document is the response of GET /openapi.json.
	document []byte
	turns    *turns
	ready    readyState
	bodies   *receiver
	door     door
}

// newRouter returns the handler of the routes. It is given them, because they are served by
// the handler that it makes.
func newRouter(c Config, routes []route) *chi.Mux {
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.Now == nil {
		c.Now = clock.Wall
	}
	if c.Streams == nil {
		c.Streams = unlimited{}
	}
	if c.Awaiting == nil {
		c.Awaiting = func(*http.Request, bool) {}
	}
	if c.Unread == nil {
		c.Unread = func(*http.Request) {}
	}
	if c.MaxBodies == 0 {
		c.MaxBodies = maxBodies * c.MaxBody
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = bodyTimeout
	}
	h := &handler{
		Config:   c,
		document: openAPI(routes, !c.LoopbackOnly && !c.Anonymous, c.Version),
		turns:    newTurns(),
		bodies:   newReceiver(&c),
		door: door{
			loopbackOnly: c.LoopbackOnly,
			anonymous:    c.Anonymous,
			behindProxy:  c.BehindProxy,
			hosts:        c.Hosts,
			origins:      c.AllowedOrigins,
			methods:      methodsOf(routes),
		},
	}
	r := chi.NewRouter()
	r.Use(h.observe, h.admit)
	r.NotFound(h.serve(func(_ *handler, _ http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
		return holdfast.Errorf(codes.NotFound, "There is no %s.", r.URL.Path).
			WithHint("POST /runs starts a run; GET /threads lists the threads; GET " +
				"/openapi.json describes every route.")
	}, true))
	r.MethodNotAllowed(h.serve(func(_ *handler, w http.ResponseWriter, q *http.Request, _ holdfast.Principal) error {
		w.Header().Set("Allow", methodsAt(r, q.URL))
		return holdfast.Errorf(codes.MethodNotAllowed, "%s does not take %s.", q.URL.Path, q.Method).
			WithHint("The Allow header names what it takes.")
	}, true))
	for _, route := range routes {
		r.Method(route.method, route.path, h.serve(asUser(permitted(route)), route.open))
	}
	return r
}

// methodsAt returns the methods that a path takes.
func methodsAt(r chi.Routes, u *url.URL) string {
	taken := slices.DeleteFunc(slices.Clone(standardMethods), func(method string) bool {
		return !r.Match(chi.NewRouteContext(), method, cmp.Or(u.RawPath, u.Path))
	})
	return strings.Join(taken, ", ")
}

// unlimited is the Streams of a server without limits.
type unlimited struct{}

func (unlimited) OpenStream(holdfast.Principal) (func(), error) { return func() {}, nil }

func (unlimited) HoldBytes(holdfast.Principal, int64) (func(), error) { return func() {}, nil }

// admit lets a request through to its route, if its headers allow that (see [door]). One
// handler makes all checks, because a stream keeps the stack frames of its handlers as
// long as it is open.
func (h *handler) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.enters(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// enters makes the checks of admit. If it reports false, the request has been answered.
func (h *handler) enters(w http.ResponseWriter, r *http.Request) bool {
	allowed := h.door.cors(w.Header(), r)
	err := h.bodies.admit(r)
	if err == nil {
		err = h.door.check(r)
	}
	goOn := err == nil
	if goOn {
		goOn, err = h.door.preflight(w, r, allowed)
	}
	if err != nil {
		h.fail(w, r, err)
	}
	return goOn
}

// endpoint is the function of a route: it answers, or returns the error to answer
// with. Callers of open routes are not authenticated, so who is empty there.
type endpoint func(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error

// serve turns an endpoint into a handler.
func (h *handler) serve(do endpoint, open bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var who holdfast.Principal
		var err error
		if !open {
			who, err = h.Authenticate(r)
			recorderOf(r).who = who
		}
		if err == nil {
			err = do(h, w, r, who)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	}
}

// permitted returns the endpoint of a route, which asks whether the caller may do what the route
// is for.
func permitted(rt route) route {
	do := rt.do
	if rt.action != "" {
		rt.do = func(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
			if err := h.Authorize(r.Context(), who, rt.action, ""); err != nil {
				return err
			}
			return do(h, w, r, who)
		}
	}
	return rt
}

// param returns a part of the path. Clients choose ids, which may contain a slash; the
// path then has %2F, and the router sees the path undecoded.
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

// health reports that the process is alive, whatever the state of the store.
func (h *handler) health(w http.ResponseWriter, _ *http.Request, _ holdfast.Principal) error {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// readyState is the last answer about readiness. Anybody may ask, as often as they like,
// so the store is not asked each time.
type readyState struct {
	mu    sync.Mutex
	err   error
	asked clock.Moment
}

const (
	readyTimeout = 2 * time.Second // for the store to answer
	readyFor     = time.Second     // how long an answer holds
)

// readiness reports whether a run could be started.
func (h *handler) readiness(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	if err := h.readyNow(r.Context()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	return nil
}

// readyNow returns why the server cannot serve. One caller asks; the others wait for its
// answer, which does not depend on whether the caller stays.
func (h *handler) readyNow(ctx context.Context) error {
	h.ready.mu.Lock()
	defer h.ready.mu.Unlock()
	if h.ready.asked.Elapsed() < readyFor {
		return h.ready.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	h.ready.err = h.Ready(ctx)
	h.ready.asked = clock.Now() // when it was answered: the store may have taken long
	return h.ready.err
}
