package http

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/internal/tanstack"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// After a reload of its page, the client of TanStack AI asks the address that it posts runs to for a thread with
// what is under way on it (it calls that hydrating), and for the stream of a run of which it only knows the id
// (joining). The parameters and the shapes are those of its version 0.33.

// Joins streams runs to pages that know a run, and not where they are in it.
type Joins interface {
	// Join streams a run after a cursor; nil if it has ended and nothing is missing. Without one, it shows the
	// messages of the thread as shown makes them, and the answer under way from its start.
	Join(
		ctx context.Context,
		who holdfast.Principal,
		thread, run string,
		after store.Cursor,
		d agui.Dialect,
		shown agui.Shown,
	) (*agui.Reply, error)
}

// tanStack has these routes.
type tanStack struct {
	joins   Joins
	reloads Reloads
	out     *streamer
	log     *slog.Logger
}

// routes are those below the addresses of runs.
func (a *tanStack) routes() []route {
	of := func(path, id string) route {
		return route{
			method: "GET",
			path:   path,
			do:     a.get,
			action: access.Read,
			id:     id,
			summary: "Show a thread as TanStack AI's client asks for it after a reload, or, with runId, stream a run " +
				"that is under way or has just ended.",
			params: []string{"ofThread", "joinedRun", "offset", "limitMessages", "beforeMessage", "LastEventID",
				"protocolVersion", "HoldfastResume", "HoldfastCursors"},
			answers: []answer{
				{http.StatusOK, "With threadId: the thread; an empty one if there is none.", typeJSON,
					"TanStackThread"},
				{http.StatusOK, "With runId: the run's AG-UI events, as Server-Sent Events.", typeSSE, ""},
				nothingMissing,
			},
			errors: slices.Concat(readErrors, []string{codes.InvalidCursor, codes.InvalidInput, codes.LimitExceeded}),
		}
	}
	return []route{of(routeRuns, "joinRun"), of(routeAgentRuns, "joinAgentRun")}
}

// get is GET /runs and GET /agents/{agent}/runs.
func (a *tanStack) get(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	q := r.URL.Query()
	for _, name := range []string{"runId", "threadId", "before"} {
		if err := exchange.CheckText(name, q.Get(name)); err != nil {
			return err
		}
	}
	switch run, thread := q.Get("runId"), q.Get("threadId"); {
	case run != "":
		return a.join(w, r, who, run)
	case thread != "":
		return a.hydrate(w, r, who, thread)
	}
	return exchange.Invalid("runId", "A run or a thread must be named.",
		"Send threadId for a thread, or runId for the stream of a run. To start one, use POST.")
}

// join streams a run: from its beginning, or after the cursor of a client that has been there before.
func (a *tanStack) join(w http.ResponseWriter, r *http.Request, who holdfast.Principal, run string) error {
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	if offset := r.URL.Query().Get("offset"); offset != "" && offset != "-1" {
		return exchange.Invalid("offset", "offset must be -1.",
			"A run is joined at its beginning; to go on after an event, send its id as Last-Event-ID.")
	}
	o, err := a.out.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	thread, err := a.reloads.ThreadOf(o.ctx, who, run)
	if err != nil {
		return err
	}
	dialect := agui.DialectLegacy // which the client posts in
	if r.URL.Query().Has("protocolVersion") {
		dialect = dialectOf(r)
	}
	reply, err := a.joins.Join(o.ctx, who, thread, run, asked.after, dialect, tanstack.Messages)
	if err != nil {
		return err
	}
	return a.out.answer(w, r, o, asked, forTanStack(o.ctx, a.reloads, who, reply))
}

// tanStackRun names a run that is under way.
type tanStackRun struct {
	RunID string `json:"runId"`
}

// tanStackInterrupts are the open questions of a thread.
type tanStackInterrupts struct {
	RunID   string           `json:"runId"`
	Pending []agui.Interrupt `json:"pending"`
}

// tanStackPage says whether there are earlier messages, and by what to ask for them.
type tanStackPage struct {
	Truncated bool   `json:"truncated"`
	Cursor    string `json:"cursor,omitempty"`
}

// tanStackRest is what the answer has beside the messages.
type tanStackRest struct {
	ActiveRun  *tanStackRun        `json:"activeRun"`
	Interrupts *tanStackInterrupts `json:"interrupts"`
	Page       *tanStackPage       `json:"page,omitempty"`
}

// hydrate answers with a thread. One that does not exist, or is somebody else's, is empty: the client asks
// before the first message, too.
func (a *tanStack) hydrate(w http.ResponseWriter, r *http.Request, who holdfast.Principal, thread string) error {
	info, history, err := a.reloads.Conversation(r.Context(), who, thread)
	var public *holdfast.Error
	if errors.As(err, &public) && public.Code == codes.NotFound {
		info, history, err = &threads.Info{}, func(func([]byte, error) bool) {}, nil
	}
	if err != nil {
		return err
	}
	var rest tanStackRest
	open := openOf(info, history)
	switch info.Status {
	case threads.StatusRunning:
		rest.ActiveRun = &tanStackRun{info.Run}
	case threads.StatusInterrupted:
		rest.Interrupts = &tanStackInterrupts{info.Run, open.Bound()}
	}
	messages := open.Messages()
	if limit, asks := tanStackLimit(r); asks {
		window, err := tanstack.Before(messages, r.URL.Query().Get("before"), limit)
		if errors.Is(err, tanstack.ErrNoMessage) {
			return exchange.Invalid("before", "before must be a cursor of this thread.",
				"Send the page.cursor of the answer before, or leave it out.")
		}
		if err != nil {
			return err
		}
		messages = window.Of(messages)
		rest.Page = &tanStackPage{window.Cursor != "", window.Cursor}
	}
	after, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	return writeMessages(w, r, a.log, "{", rawMessages(messages), ","+string(after[1:])+"\n")
}

// rawMessages are the messages as JSON.
func rawMessages(messages iter.Seq2[[]byte, error]) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for m, err := range messages {
			if !yield(m, err) {
				return
			}
		}
	}
}

// tanStackLimit returns how many messages are asked for. Like the client's own server, it takes anything but
// a positive number for all of them, and no more than 500.
func tanStackLimit(r *http.Request) (limit int, asks bool) {
	const most = 500
	n, err := strconv.Atoi(r.URL.Query().Get("limit"))
	return min(n, most), err == nil && n > 0
}
