package http

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// getExport is GET /threads/{thread}/export.
func getExport(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	write, err := h.Transfer.Export(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	out := &download{w: w}
	if err := write(out); err != nil {
		if !out.begun {
			return err
		}
		// The client went away, or cutting the connection is the only way left to show that the
		// document is incomplete.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// download writes the header with the first byte, until which an error can be told.
type download struct {
	w     http.ResponseWriter
	begun bool
}

func (d *download) Write(b []byte) (int, error) {
	if !d.begun {
		d.begun = true
		d.w.Header().Set("Content-Disposition", `attachment; filename="thread.json"`)
		jsonHeader(d.w, http.StatusOK)
	}
	return d.w.Write(b)
}

// postImport is POST /threads/import?threadId=.
func postImport(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if err := noIfMatch(r, importNeedsNoETag); err != nil {
		return err
	}
	id := r.URL.Query().Get("threadId")
	if err := checkText("threadId", id); err != nil {
		return err
	}
	body, err := h.bodies.read(w, r)
	if err != nil {
		return err
	}
	err = h.turns.decode(r, body, func() error {
		if text := bytes.TrimSpace(body); len(text) == 0 || text[0] != '{' {
			return invalid("", "The body is not a JSON object.", "Send what GET /threads/{thread}/export has answered.")
		}
		var refused *strictjson.Error
		if _, err := strictjson.Check(body, &strictjson.Shape{Kind: strictjson.Object}); errors.As(err, &refused) {
			return invalid(refused.Place, refused.Message, "%s", refused.Hint)
		}
		return nil
	})
	if err != nil {
		return err
	}
	info, err := h.Transfer.Import(r.Context(), who, id, body)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, info)
	return nil
}

// importNeedsNoETag is why an import needs no condition.
const importNeedsNoETag = "it makes a new thread"
