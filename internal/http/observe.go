package http

// The steps around every request: it is logged and counted, and each write to a client has a
// deadline.

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/headers"
)

// Observer observes the HTTP surface. Its methods are called by many goroutines at a
// time and must not block.
type Observer interface {
	// RequestDone: a request has been answered. route is the pattern that it matched,
	// such as "/threads/{thread}", or "other"; method is a standard one, or "OTHER";
	// code is the status, 499 if the client went away before there was one. This bounds
	// the number of values, whatever clients send.
	RequestDone(route, method string, code int, took time.Duration)
	// StreamOpened and StreamClosed: a Server-Sent Events stream starts, and ends.
	StreamOpened()
	StreamClosed()
}

// nobody is the Observer of a server without one.
type nobody struct{}

func (nobody) RequestDone(string, string, int, time.Duration) {}
func (nobody) StreamOpened()                                  {}
func (nobody) StreamClosed()                                  {}

const (
	otherRoute  = "other"
	otherMethod = "OTHER"
)

// monitor looks after every request: it logs and counts it, and bounds how slowly a client may
// take the response.
type monitor struct {
	observer Observer
	log      *slog.Logger
	timeout  time.Duration // of one write
	rate     int64         // bytes per second that a client must take; 0: any
	bodies   *receiver
}

// observe reports each request to the observer and to the log when it is done. Query
// strings and bodies are never logged, since they may contain what people wrote.
func (m *monitor) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, r := m.record(w, r)
		// Deferred, because a handler may end its connection with a panic.
		defer func() {
			if !rec.detached { // otherwise the response is not done
				m.done(context.WithoutCancel(r.Context()), rec, lineOf(rec, r))
				m.bodies.linger(rec, r)
			}
		}()
		defer m.recoverPanic(rec, r)
		next.ServeHTTP(rec, r)
	})
}

func (m *monitor) record(w http.ResponseWriter, r *http.Request) (*recorder, *http.Request) {
	rec := &recorder{
		ResponseWriter: w,
		rc:             http.NewResponseController(w),
		timeout:        m.timeout,
		rate:           m.rate,
		began:          clock.Now(),
	}
	return rec, r.WithContext(context.WithValue(r.Context(), recorderKey{}, rec))
}

// recoverPanic is deferred around every handler, so that a panic in one does not just
// drop the connection without a response.
func (m *monitor) recoverPanic(rec *recorder, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	panicked(m.log, r.URL.Path, p)
	if rec.code != 0 {
		// The response has started. Cutting the connection is the only way left to
		// show that it is incomplete.
		panic(http.ErrAbortHandler)
	}
	fail(m.log, rec, r, errors.New("panic"))
}

// line is what the log says about a request, without what only its end shows.
type line struct {
	route, method string
	run           bool   // it is for a run
	trace         string // the id of the caller's trace; usually empty
	code          int
}

func lineOf(rec *recorder, r *http.Request) line {
	l := line{route: routeOf(r), method: methodOf(r), code: rec.status(r)}
	if l.run = l.method == http.MethodPost && slices.Contains(runRoutes, l.route); l.run {
		l.trace = headers.TraceID(headers.ParseTraceparent(r.Header.Values(headers.Traceparent)))
	}
	return l
}

// done counts and logs a request whose response has ended.
func (m *monitor) done(ctx context.Context, rec *recorder, l line) {
	rec.deadline(lastFlush)
	m.bodies.letGo(rec)
	took := rec.began.Ran()
	m.observer.RequestDone(l.route, l.method, l.code, took)
	attrs := []slog.Attr{
		slog.String(
			"method",
			l.method,
		),
		slog.String("route", l.route),
		slog.Int("status", l.code),
		slog.Duration("took", took),
	}
	if rec.errCode != "" && !rec.gone {
		attrs = append(attrs, slog.String("code", rec.errCode))
	}
	if rec.who.Tenant != "" || rec.who.User != "" { // as lines of the audit do
		attrs = append(attrs, slog.String("who", rec.who.Tenant+"/"+rec.who.User))
	}
	level := slog.LevelDebug
	if l.run {
		level = slog.LevelInfo
		attrs = append(attrs, slog.String("thread", rec.thread), slog.String("run", rec.run))
		if l.trace != "" {
			attrs = append(attrs, slog.String("traceId", l.trace))
		}
	}
	m.log.LogAttrs(ctx, level, "request", attrs...)
}

// routeOf returns the pattern of the matched route.
func routeOf(r *http.Request) string {
	if pattern := chi.RouteContext(r.Context()).RoutePattern(); pattern != "" {
		return pattern
	}
	return otherRoute
}

func methodOf(r *http.Request) string {
	if slices.Contains(standardMethods, r.Method) {
		return r.Method
	}
	return otherMethod
}

var standardMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}
