package http

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// The routes of the server itself: whether it lives and is ready, its metrics, its description
// and its page.

// serverAPI has them.
type serverAPI struct {
	ready    func(context.Context) error
	known    readyState
	metrics  http.Handler  // nil without metrics
	ui       http.Handler  // nil without a page
	document func() []byte // makes the response of GET /openapi.json, once
}

// routes are those of the server itself.
func (a *serverAPI) routes() []route {
	return slices.Concat(a.stateRoutes(), a.pageRoutes())
}

// stateRoutes say how the server is, and what it can be asked.
func (a *serverAPI) stateRoutes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/healthz",
			do:      a.health,
			open:    true,
			id:      "health",
			summary: "Whether the process is alive.",
			answers: []answer{{http.StatusOK, "It is.", typeJSON, "Health"}},
		},
		{
			method:  "GET",
			path:    "/readyz",
			do:      a.readiness,
			open:    true,
			id:      "ready",
			summary: "Whether a run could be started.",
			answers: []answer{{http.StatusOK, "It could.", typeJSON, "Health"}},
			errors:  []string{codes.ShuttingDown, codes.Starting, codes.StoreUnavailable},
		},
		{
			method:  "GET",
			path:    "/metrics",
			do:      a.getMetrics,
			open:    true,
			id:      "metrics",
			summary: "Prometheus metrics, if they are on.",
			answers: []answer{{http.StatusOK, "The metrics.", "text/plain", ""}},
			errors:  []string{codes.NotFound},
		},
		{
			method:  "GET",
			path:    "/openapi.json",
			do:      a.openAPI,
			open:    true,
			id:      "openapi",
			summary: "This document.",
			answers: []answer{{http.StatusOK, "The document.", typeJSON, "Document"}},
		},
	}
}

// pageRoutes are those of the web UI.
func (a *serverAPI) pageRoutes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/",
			do:      a.getPage,
			open:    true,
			id:      "home",
			summary: "The web UI, if there is one.",
			answers: pageAnswers,
			errors:  []string{codes.NotFound},
		},
		{
			method:  "HEAD",
			path:    "/",
			do:      a.getPage,
			open:    true,
			id:      "headHome",
			summary: "The web UI's headers.",
			answers: headAnswers,
			errors:  []string{codes.NotFound},
		},
		{
			method:  "GET",
			path:    "/ui/*",
			do:      a.getPage,
			open:    true,
			id:      "page",
			summary: "A file of the web UI, if there is one.",
			answers: pageAnswers,
			errors:  []string{codes.NotFound},
		},
		{
			method:  "HEAD",
			path:    "/ui/*",
			do:      a.getPage,
			open:    true,
			id:      "headPage",
			summary: "The headers of a file of the web UI.",
			answers: headAnswers,
			errors:  []string{codes.NotFound},
		},
	}
}

// getPage is GET / and GET /ui/*: the web UI, if there is one.
func (a *serverAPI) getPage(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	if a.ui == nil {
		return holdfast.Errorf(codes.NotFound, "This server has no web page.").
			WithHint("POST /runs starts a run; GET /openapi.json describes every route.")
	}
	a.ui.ServeHTTP(w, r)
	return nil
}

// getMetrics is GET /metrics, if metrics are on.
func (a *serverAPI) getMetrics(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	if a.metrics == nil {
		return holdfast.Errorf(codes.NotFound, "This server has no metrics here.").
			WithHint("They may be on an address of their own, --metrics-addr.")
	}
	a.metrics.ServeHTTP(w, r)
	return nil
}

// openAPI is GET /openapi.json.
func (a *serverAPI) openAPI(w http.ResponseWriter, _ *http.Request, _ holdfast.Principal) error {
	exchange.JSONHeader(w, http.StatusOK)
	// An error means that the client went away, and nobody can be told.
	_, _ = w.Write(a.document())
	return nil
}

// health reports that the process is alive, whatever the state of the store.
func (a *serverAPI) health(w http.ResponseWriter, _ *http.Request, _ holdfast.Principal) error {
	exchange.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
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
func (a *serverAPI) readiness(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	if err := a.readyNow(r.Context()); err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	return nil
}

// readyNow returns why the server cannot serve. One caller asks; the others wait for its
// answer, which does not depend on whether the caller stays.
func (a *serverAPI) readyNow(ctx context.Context) error {
	a.known.mu.Lock()
	defer a.known.mu.Unlock()
	if a.known.asked.Elapsed() < readyFor {
		return a.known.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	a.known.err = a.ready(ctx)
	a.known.asked = clock.Now() // when it was answered: the store may have taken long
	return a.known.err
}
