package http

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/threads"
)

// Transfer brings threads out of the server and into it.
type Transfer interface {
	// Export returns a function that writes a thread as a document.
	Export(ctx context.Context, who holdfast.Principal, thread string) (func(io.Writer) error, error)
	// Import makes a thread out of a document. If thread is empty it has the id that the
	// document says or, if that is taken, a new one.
	Import(ctx context.Context, who holdfast.Principal, thread string, document []byte) (*threads.Info, error)
}

// transferAPI has the routes by which threads go out and come in.
type transferAPI struct {
	transfer Transfer
	bodies   *exchange.Receiver
}

// routes are those by which threads go out and come in.
func (a *transferAPI) routes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/threads/{thread}/export",
			do:      a.getExport,
			action:  access.Read,
			id:      "exportThread",
			summary: "All that is stored of a thread, as one document.",
			answers: []answer{{http.StatusOK, "The document.", typeJSON, "ThreadDocument"}},
			errors:  slices.Concat(readErrors, []string{codes.RunInProgress}),
		},
		{
			method:    "POST",
			path:      "/threads/import",
			do:        a.postImport,
			noIfMatch: importNeedsNoETag,
			action:    access.Change,
			id:        "importThread",
			body:      "ThreadDocument",
			params:    []string{"newThread"},
			summary:   "Make a thread out of a document.",
			answers:   []answer{{http.StatusCreated, "The new thread.", typeJSON, "ThreadInfo"}},
			errors: slices.Concat(cleanErrors,
				[]string{codes.LimitExceeded, codes.StateInvalid, codes.ThreadExists}),
		},
	}
}

// getExport is GET /threads/{thread}/export.
func (a *transferAPI) getExport(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	write, err := a.transfer.Export(r.Context(), who, param(r, "thread"))
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
		exchange.JSONHeader(d.w, http.StatusOK)
	}
	return d.w.Write(b)
}

// postImport is POST /threads/import?threadId=.
func (a *transferAPI) postImport(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	id := r.URL.Query().Get("threadId")
	if err := exchange.CheckText("threadId", id); err != nil {
		return err
	}
	body, err := a.bodies.Read(w, r)
	if err != nil {
		return err
	}
	err = a.bodies.Turns.Decode(r, body, func() error {
		if text := bytes.TrimSpace(body); len(text) == 0 || text[0] != '{' {
			return exchange.Invalid("", "The body is not a JSON object.",
				"Send what GET /threads/{thread}/export has answered.")
		}
		var refused *strictjson.Error
		if _, err := strictjson.Check(body, &strictjson.Shape{Kind: strictjson.Object}); errors.As(err, &refused) {
			return exchange.Invalid(refused.Place, refused.Message, "%s", refused.Hint)
		}
		return nil
	})
	if err != nil {
		return err
	}
	info, err := a.transfer.Import(r.Context(), who, id, body)
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusCreated, info)
	return nil
}
