// Package exchange looks after each request and its response, whatever they are about: the body
// must arrive in time and fits into memory, the client must take the response in time, errors
// are answered as JSON, and the log and the metrics have each request once. It knows no route.
package exchange

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

// NoObserver is the Observer of a server without one.
type NoObserver struct{}

// RequestDone does nothing.
func (NoObserver) RequestDone(string, string, int, time.Duration) {}

// StreamOpened does nothing.
func (NoObserver) StreamOpened() {}

// StreamClosed does nothing.
func (NoObserver) StreamClosed() {}

const (
	otherRoute  = "other"
	otherMethod = "OTHER"
)

// Monitor looks after every request: it logs and counts it, and bounds how slowly a client may
// take the response.
type Monitor struct {
	Observer Observer
	Log      *slog.Logger
	// Timeout bounds one write.
	Timeout time.Duration
	// Rate is how many bytes per second a client must take; 0: any.
	Rate int64
	// Bodies receives the bodies.
	Bodies *Receiver
	// RunRoutes are the routes by which runs are started. The log has each request to them.
	RunRoutes []string
}

// Observe reports each request to the observer and to the log when it is done. Query
// strings and bodies are never logged, since they may contain what people wrote.
func (m *Monitor) Observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, r := m.record(w, r)
		// Deferred, because a handler may end its connection with a panic.
		defer func() {
			if !rec.detached { // otherwise the response is not done
				m.Done(context.WithoutCancel(r.Context()), rec, m.LineOf(rec, r))
				m.Bodies.linger(rec, r)
			}
		}()
		defer m.recoverPanic(rec, r)
		next.ServeHTTP(rec, r)
	})
}

func (m *Monitor) record(w http.ResponseWriter, r *http.Request) (*Recorder, *http.Request) {
	rec := &Recorder{
		ResponseWriter: w,
		Controller:     http.NewResponseController(w),
		timeout:        m.Timeout,
		rate:           m.Rate,
		began:          clock.Now(),
	}
	return rec, r.WithContext(context.WithValue(r.Context(), recorderKey{}, rec))
}

// recoverPanic is deferred around every handler, so that a panic in one does not just
// drop the connection without a response.
func (m *Monitor) recoverPanic(rec *Recorder, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	LogPanic(m.Log, r.URL.Path, p)
	if rec.code != 0 {
		// The response has started. Cutting the connection is the only way left to
		// show that it is incomplete.
		panic(http.ErrAbortHandler)
	}
	Fail(m.Log, rec, r, errors.New("panic"))
}

// Line is what the log says about a request, without what only its end shows.
type Line struct {
	route, method string
	run           bool   // it is for a run
	trace         string // the id of the caller's trace; usually empty
	code          int
}

// LineOf returns what the log says about a request so far.
func (m *Monitor) LineOf(rec *Recorder, r *http.Request) Line {
	l := Line{route: routeOf(r), method: methodOf(r), code: rec.status(r)}
	if l.run = l.method == http.MethodPost && slices.Contains(m.RunRoutes, l.route); l.run {
		l.trace = headers.TraceID(headers.ParseTraceparent(r.Header.Values(headers.Traceparent)))
	}
	return l
}

// Done counts and logs a request whose response has ended.
func (m *Monitor) Done(ctx context.Context, rec *Recorder, l Line) {
	rec.deadline(lastFlush)
	m.Bodies.LetGo(rec)
	took := rec.began.Ran()
	m.Observer.RequestDone(l.route, l.method, l.code, took)
	attrs := []slog.Attr{
		slog.String("method", l.method),
		slog.String("route", l.route),
		slog.Int("status", l.code),
		slog.Duration("took", took),
	}
	if rec.errCode != "" && !rec.gone {
		attrs = append(attrs, slog.String("code", rec.errCode))
	}
	if rec.Caller.Tenant != "" || rec.Caller.User != "" { // as lines of the audit do
		attrs = append(attrs, slog.String("who", rec.Caller.Tenant+"/"+rec.Caller.User))
	}
	level := slog.LevelDebug
	if l.run {
		level = slog.LevelInfo
		attrs = append(attrs, slog.String("thread", rec.thread), slog.String("run", rec.run))
		if l.trace != "" {
			attrs = append(attrs, slog.String("traceId", l.trace))
		}
	}
	m.Log.LogAttrs(ctx, level, "request", attrs...)
}

// routeOf returns the pattern of the matched route.
func routeOf(r *http.Request) string {
	if pattern := chi.RouteContext(r.Context()).RoutePattern(); pattern != "" {
		return pattern
	}
	return otherRoute
}

func methodOf(r *http.Request) string {
	if slices.Contains(StandardMethods, r.Method) {
		return r.Method
	}
	return otherMethod
}

// StandardMethods are the methods that the log and the metrics tell apart.
var StandardMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}
