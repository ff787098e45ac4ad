package http

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/threads"
)

// Threads over HTTP: lists of them, one of them, and its messages, state and runs. Long
// answers are written piece by piece.

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

// Statuses lists threads by what they do.
type Statuses interface {
	// ThreadsIn lists about limit threads with a status: those before the given time (zero: any time).
	ThreadsIn(ctx context.Context, who holdfast.Principal, status threads.Status, before time.Time, limit int) (
		*threads.List, error)
}

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

// States changes shared states.
type States interface {
	// Patch changes the shared state of a thread, also while a run is under way.
	Patch(ctx context.Context, who holdfast.Principal, thread string, p threads.StatePatch) (*threads.PatchedState,
		error)
}

// threadAPI has the routes that show and describe threads.
type threadAPI struct {
	threads   Threads
	statuses  Statuses
	titles    Titles
	states    States
	others    Others // nil if nobody reads the threads of others
	authorize authorizer
	bodies    *exchange.Receiver
	log       *slog.Logger
}

// routes are those that show and describe threads.
func (a *threadAPI) routes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/threads",
			do:      a.listThreads,
			asks:    true,
			id:      "listThreads",
			params:  []string{"limit", "before", "status", "user"},
			summary: "List your threads, most recently active first, or those with a status.",
			answers: []answer{{http.StatusOK, "The threads.", typeJSON, "ThreadList"}},
			errors:  listErrors,
		},
		{
			method:  "GET",
			path:    "/threads/{thread}",
			do:      a.getThread,
			action:  access.Read,
			id:      "getThread",
			summary: "Status, run, iteration, open questions, cursor, size; the ETag header has its etag.",
			answers: []answer{{http.StatusOK, "The thread.", typeJSON, "ThreadInfo"}},
			errors:  readErrors,
		},
		{
			method:  "PATCH",
			path:    "/threads/{thread}",
			do:      a.patchThread,
			action:  access.Change,
			id:      "describeThread",
			params:  []string{"IfMatch"},
			summary: "Give a thread another title, hide it, or show it again.",
			body:    "Description",
			answers: []answer{{http.StatusOK, "The thread.", typeJSON, "ThreadInfo"}},
			errors:  changeErrors,
		},
		{
			method:  "GET",
			path:    "/threads/{thread}/messages",
			do:      a.getMessages,
			action:  access.Read,
			id:      "getMessages",
			summary: "The history, as AG-UI messages.",
			answers: []answer{{http.StatusOK, "The messages.", typeJSON, "MessageList"}},
			errors:  readErrors,
		},
		{
			method:  "GET",
			path:    "/threads/{thread}/runs",
			do:      a.listRuns,
			action:  access.Read,
			id:      "listRuns",
			params:  []string{"limit", "beforeRun"},
			summary: "The runs of a thread, newest first.",
			answers: []answer{{http.StatusOK, "The runs.", typeJSON, "RunList"}},
			errors:  slices.Concat(readErrors, []string{codes.InvalidInput}),
		},
	}
}

// stateRoutes has those of the shared state.
func (a *threadAPI) stateRoutes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/threads/{thread}/state",
			do:      a.getState,
			action:  access.Read,
			id:      "getState",
			summary: "The shared state, and the states of the middleware.",
			answers: []answer{{http.StatusOK, "The states.", typeJSON, "ThreadState"}},
			errors:  readErrors,
		},
		{
			method:    "PATCH",
			path:      "/threads/{thread}/state",
			do:        a.patchState,
			action:    access.Change,
			id:        "patchState",
			params:    []string{"IfMatch"},
			summary:   "Change the shared state of a thread, also while it runs.",
			body:      "StatePatch",
			bodyKinds: []string{typeJSONPatch, typeMergePatch},
			answers:   []answer{{http.StatusOK, "The thread.", typeJSON, "ThreadInfo"}},
			errors: slices.Concat(changeErrors,
				[]string{codes.LimitExceeded, codes.StateConflict, codes.StateInvalid}),
		},
	}
}

// listThreads is GET /threads?limit=&before=&status=&user=, most recently active first.
func (a *threadAPI) listThreads(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	page, err := readThreadPage(r)
	if err == nil {
		page.Status, err = statusParam(r)
	}
	if err != nil {
		return err
	}
	var list *threads.List
	switch r.URL.Query().Get("user") {
	case "":
		if err = a.authorize(r.Context(), who, access.Read, ""); err != nil {
			return err
		}
		list, err = a.own(r.Context(), who, page)
	case "*":
		if a.others == nil {
			return errNoOthers()
		}
		list, err = a.others.ThreadsOfAll(r, who, page)
	default:
		err = exchange.Invalid("user", "user must be *.",
			"For the threads of one user, send the header "+headerUser+".")
	}
	return exchange.Shown(w, list, err)
}

// own lists the caller's threads.
func (a *threadAPI) own(ctx context.Context, who holdfast.Principal, page ThreadPage) (*threads.List, error) {
	if page.Status != "" {
		return a.statuses.ThreadsIn(ctx, who, page.Status, page.Before, page.Limit)
	}
	list, err := a.threads.Threads(ctx, who, page.Before, page.Limit)
	return &threads.List{Threads: list}, err
}

// getThread is GET /threads/{thread}.
func (a *threadAPI) getThread(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	info, err := a.threads.Thread(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	writeThread(w, http.StatusOK, info)
	return nil
}

// writeThread answers with one thread.
func writeThread(w http.ResponseWriter, code int, info *threads.Info) {
	w.Header().Set("ETag", `"`+info.ETag+`"`)
	nameOwner(w.Header(), info.Owner)
	exchange.WriteJSON(w, code, info)
}

// patchThread is PATCH /threads/{thread}.
func (a *threadAPI) patchThread(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var d threads.Description
	if err := a.bodies.ReadObject(w, r, &d, "title", "hidden"); err != nil {
		return err
	}
	if d.Title == nil && d.Hidden == nil {
		return exchange.Invalid("", "Nothing is to be changed.", "Send title, hidden or both.")
	}
	info, err := a.describe(r, who, d)
	if err != nil {
		return err
	}
	writeThread(w, http.StatusOK, info)
	return nil
}

// describe changes the description of the thread in the path.
func (a *threadAPI) describe(r *http.Request, who holdfast.Principal, d threads.Description) (*threads.Info, error) {
	if d.Title != nil {
		if err := exchange.CheckText("title", *d.Title); err != nil {
			return nil, err
		}
	}
	etag, err := exchange.IfMatch(r)
	if err != nil {
		return nil, err
	}
	return a.titles.Describe(r.Context(), who, param(r, "thread"), etag, d)
}

// getMessages is GET /threads/{thread}/messages.
func (a *threadAPI) getMessages(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	messages, err := a.threads.Messages(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	return writeMessages(w, r, a.log, "{", messages, "}\n")
}

// writeMessages writes a JSON object that has the messages between two parts of its text,
// one by one, so that a slow client does not keep all of them in memory. They are read
// twice: before the first byte is sent, a message that cannot be read is an error like any
// other. If one cannot be read only then, cutting the connection is the only way left to show
// that the answer is incomplete.
func writeMessages(
	w http.ResponseWriter, r *http.Request, log *slog.Logger, before string, messages iter.Seq2[json.RawMessage, error],
	after string,
) error {
	for _, err := range messages {
		if err != nil {
			return err
		}
	}
	exchange.JSONHeader(w, http.StatusOK)
	out := bufio.NewWriterSize(w, maxBuffer)
	_, failed := out.WriteString(before + `"messages":[`)
	separator := ""
	var line bytes.Buffer
	for m, err := range messages {
		if err != nil {
			if r.Context().Err() == nil {
				log.Warn("answer cut in the middle", "path", r.URL.Path, "error", err)
			}
			panic(http.ErrAbortHandler)
		}
		if failed == nil {
			_, failed = out.WriteString(separator)
		}
		if failed == nil {
			line.Reset()
			failed = json.Compact(&line, m)
		}
		if failed == nil {
			_, failed = out.Write(line.Bytes())
		}
		if failed != nil {
			return nil // the client went away or does not read; what is stored is JSON
		}
		separator = ","
	}
	// An error here means the same.
	_, _ = out.WriteString("]" + after)
	_ = out.Flush()
	return nil
}

// getState is GET /threads/{thread}/state.
func (a *threadAPI) getState(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	state, err := a.threads.State(r.Context(), who, param(r, "thread"))
	return exchange.Shown(w, state, err)
}

// The media types of patches.
const (
	typeJSONPatch  = "application/json-patch+json"
	typeMergePatch = "application/merge-patch+json"
)

// patchState is PATCH /threads/{thread}/state.
func (a *threadAPI) patchState(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	body, kind, err := a.bodies.ReadAs(w, r, typeJSONPatch, typeMergePatch)
	if err != nil {
		return err
	}
	p := threads.StatePatch{Patch: body, Merge: kind == typeMergePatch}
	if p.ETag, err = exchange.IfMatch(r); err != nil {
		return err
	}
	err = a.bodies.Turns.Decode(r, body, func() error {
		if _, err := strictjson.Check(body, nil); err != nil {
			return exchange.Invalid("", "The body is not JSON: "+err.Error(), "Send a document of %s.", kind)
		}
		if p.Merge {
			return nil
		}
		if err := jsonpatch.Check(body); err != nil {
			return exchange.Invalid("", "The body is no JSON Patch: "+err.Error()+".",
				"Send a list of operations: RFC 6902.")
		}
		return nil
	})
	if err != nil {
		return err
	}
	made, err := a.states.Patch(r.Context(), who, param(r, "thread"), p)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+made.ETag+`"`)
	nameOwner(w.Header(), made.Owner)
	exchange.WriteJSON(w, http.StatusOK, made)
	return nil
}

// listRuns is GET /threads/{thread}/runs?limit=&before=, newest first.
func (a *threadAPI) listRuns(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	limit, err := limitParam(r)
	if err != nil {
		return err
	}
	before := r.URL.Query().Get("before")
	if err := exchange.CheckText("before", before); err != nil {
		return err
	}
	runs, err := a.threads.Runs(r.Context(), who, param(r, "thread"), before, limit)
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]any{"runs": runs})
	return nil
}
