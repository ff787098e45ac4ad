package http

import (
	"context"
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/threads"
)

// Titles changes how threads are listed.
type Titles interface {
	// Describe gives a thread another title, hides it or shows it again. An etag that is not
	// empty must match the thread's, which then must not run.
	Describe(
		ctx context.Context,
		who holdfast.Principal,
		thread, etag string,
		d threads.Description,
	) (*threads.Info, error)
}

// patchThread is PATCH /threads/{thread}.
func (h *handler) patchThread(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var d threads.Description
	if err := h.readObject(w, r, &d, "title", "hidden"); err != nil {
		return err
	}
	if d.Title == nil && d.Hidden == nil {
		return invalid("", "Nothing is to be changed.", "Send title, hidden or both.")
	}
	info, err := describe(h.Titles, r, who, d)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+info.ETag+`"`)
	writeJSON(w, http.StatusOK, info)
	return nil
}

// describe changes the description of the thread in the path.
func describe(titles Titles, r *http.Request, who holdfast.Principal, d threads.Description) (*threads.Info, error) {
	if d.Title != nil {
		if err := checkText("title", *d.Title); err != nil {
			return nil, err
		}
	}
	etag, err := ifMatch(r)
	if err != nil {
		return nil, err
	}
	return titles.Describe(r.Context(), who, param(r, "thread"), etag, d)
}
