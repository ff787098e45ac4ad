package http

import (
	"net/http"

	"github.com/holdfast-agents/holdfast"
)

// getQuestions is GET /questions?limit=&before=, the newest first.
func getQuestions(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	page, err := readThreadPage(r)
	if err != nil {
		return err
	}
	list, err := h.Inspect.Questions(r.Context(), who, page.before, page.limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// getWork is GET /threads/{thread}/work.
func getWork(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	work, err := h.Inspect.Work(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, work)
	return nil
}

// getCalls is GET /threads/{thread}/calls?run=&limit=&before=.
func getCalls(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	limit, err := limitParam(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	for _, name := range []string{"run", "before"} {
		if err := checkText(name, q.Get(name)); err != nil {
			return err
		}
	}
	list, err := h.Inspect.Calls(r.Context(), who, param(r, "thread"), q.Get("run"), q.Get("before"), limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// getUsage is GET /threads/{thread}/usage.
func getUsage(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	usage, err := h.Inspect.Usage(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, usage)
	return nil
}
