package http

import (
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// page is GET / and GET /ui/*: the web UI, if there is one.
func (h *handler) page(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	if h.UI == nil {
		return holdfast.Errorf(codes.NotFound, "This server has no web page.").
			WithHint("POST /runs starts a run; GET /openapi.json describes every route.")
	}
	h.UI.ServeHTTP(w, r)
	return nil
}

// metrics is GET /metrics, if metrics are on.
func (h *handler) metrics(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	if h.Metrics == nil {
		return holdfast.Errorf(codes.NotFound, "This server has no metrics here.").
			WithHint("They may be on an address of their own, --metrics-addr.")
	}
	h.Metrics.ServeHTTP(w, r)
	return nil
}

// openAPI is GET /openapi.json.
func (h *handler) openAPI(w http.ResponseWriter, _ *http.Request, _ holdfast.Principal) error {
	jsonHeader(w, http.StatusOK)
	// An error means that the client went away, and nobody can be told.
	_, _ = w.Write(h.document)
	return nil
}
