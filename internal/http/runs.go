package http

import (
	"context"
	"net/http"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The routes of runs: to start one, to watch one and to cancel one.

// Runs starts, cancels and streams runs.
type Runs interface {
	// Post decides what an input means for its thread and returns the stream to send; nil if
	// the run has ended and its client has all of it.
	Post(ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput) (*agui.Reply, error)
	// Events streams a run after a cursor; nil if it has ended and nothing is missing. If it
	// is given no run, it streams the thread's current one, and shows a client that has all of
	// it the thread as it is.
	Events(
		ctx context.Context,
		who holdfast.Principal,
		thread, run string,
		after store.Cursor,
		d agui.Dialect,
	) (*agui.Reply, error)
	// Attach streams a thread to a client that knows nothing about it.
	Attach(ctx context.Context, who holdfast.Principal, thread string, d agui.Dialect) (*agui.Reply, error)
}

// runAPI has the routes of runs.
type runAPI struct {
	runs    Runs
	reloads Reloads
	cancel  func(ctx context.Context, who holdfast.Principal, thread, run string) (*threads.Info, error)
	results results
	bodies  *exchange.Receiver
	out     *streamer
}

// routes are those of runs.
func (a *runAPI) routes() []route {
	return []route{
		{
			method:    "POST",
			path:      routeRuns,
			do:        a.postRun,
			noIfMatch: runNeedsNoETag,
			asks:      true,
			id:        "postRun",
			body:      "RunAgentInput",
			params:    append(slices.Clone(resumeParams), "repeatedRun"),
			summary:   "Start, resume, attach to or hydrate a run of the default agent.",
			answers:   runAnswers,
			errors:    runErrors,
		},
		{
			method:    "POST",
			path:      routeAgentRuns,
			do:        a.postRun,
			noIfMatch: runNeedsNoETag,
			asks:      true,
			id:        "postAgentRun",
			body:      "RunAgentInput",
			params:    append(slices.Clone(resumeParams), "repeatedRun"),
			summary:   "Start, resume, attach to or hydrate a run of the named agent.",
			answers:   runAnswers,
			errors:    runErrors,
		},
		{
			method:  "GET",
			path:    "/threads/{thread}/runs/{run}/events",
			do:      a.getEvents,
			action:  access.Read,
			id:      "getEvents",
			summary: "Send the events of a run after a cursor and follow it.",
			params:  []string{"LastEventID", "after", "protocolVersion", "HoldfastResume", "HoldfastCursors"},
			answers: []answer{eventStream, nothingMissing},
			errors:  slices.Concat(readErrors, []string{codes.InvalidCursor, codes.InvalidInput, codes.LimitExceeded}),
		},
		{
			method: "GET",
			path:   "/threads/{thread}/stream",
			do:     a.getStream,
			action: access.Read,
			id:     "attach",
			summary: "Attach a client that knows nothing: snapshots, reopened items, then live events. With a cursor " +
				"in the current run: its rest.",
			params:  []string{"LastEventID", "after", "protocolVersion", "HoldfastResume", "HoldfastCursors"},
			answers: []answer{eventStream},
			errors:  slices.Concat(readErrors, []string{codes.InvalidCursor, codes.InvalidInput, codes.LimitExceeded}),
		},
		{
			method:    "POST",
			path:      "/threads/{thread}/runs/{run}/cancel",
			do:        a.postCancel,
			noIfMatch: cancelNeedsNoETag,
			action:    access.Cancel,
			id:        "cancelRun",
			summary:   "Ask a run to end. Cancelling twice changes nothing.",
			answers: []answer{
				{http.StatusOK, "The run has ended.", typeJSON, "ThreadInfo"},
				{http.StatusAccepted, "The run is ending.", typeJSON, "ThreadInfo"},
			},
			errors: slices.Concat(readErrors, []string{codes.InvalidInput}),
		},
	}
}

// postRun is POST /runs and POST /agents/{agent}/runs.
func (a *runAPI) postRun(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	asJSON, err := wantsJSON(r.Header.Values("Accept"))
	if err != nil {
		return err
	}
	body, err := a.bodies.Read(w, r)
	if err != nil {
		return err
	}
	return a.run(w, r, who, runRequest{agent: param(r, "agent"), body: body, asJSON: asJSON})
}

// runRequest is a request for a run, by whatever route it came.
type runRequest struct {
	agent  string // empty for the default one
	body   []byte // a RunAgentInput
	asJSON bool   // answer with one object instead of a stream
	chat   bool   // see agui.RunAgentInput
	side   bool   // as well
}

// run starts, resumes, attaches to or hydrates a run, and answers.
func (a *runAPI) run(w http.ResponseWriter, r *http.Request, who holdfast.Principal, req runRequest) error {
	held, endTurn, err := a.bodies.Turns.Take(r.Context(), who, len(req.body))
	if err != nil {
		return err
	}
	defer endTurn()
	r = r.WithContext(held)
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	in, err := agui.DecodeInput(req.body)
	if err != nil {
		return err
	}
	in.Chat, in.Side, in.Traceparent = req.chat, req.side,
		headers.ParseTraceparent(r.Header.Values(headers.Traceparent))
	o, err := a.out.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	if !req.asJSON { // which is about the whole run
		in.After = agui.Position(asked.after)
	}
	if req.asJSON && in.ProtocolVersion == "" {
		// The JSON object has no dialects: it says what the one before 1.0 cannot.
		in.ProtocolVersion = agui.ProtocolVersion
	}
	reply, err := a.runs.Post(o.ctx, who, req.agent, in)
	exchange.NoteRun(r, in.ThreadID, in.RunID) // only now, because the run's id may be made up
	if err != nil {
		return err
	}
	endTurn()
	a.bodies.LetGo(exchange.RecorderOf(r)) // what follows takes as long as the run
	if req.asJSON {
		return a.results.answer(w, r, who, reply)
	}
	if postedByTanStack(r, in.RunID) {
		reply = forTanStack(o.ctx, a.reloads, who, reply)
	}
	return a.out.answer(w, r, o, asked, reply)
}

// getEvents is GET /threads/{thread}/runs/{run}/events: what a run has after a
// cursor, and what follows.
func (a *runAPI) getEvents(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	return a.getRest(w, r, who, param(r, "run"))
}

// getStream is GET /threads/{thread}/stream: attach a client that knows nothing, or go on
// after its cursor.
func (a *runAPI) getStream(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	return a.getRest(w, r, who, "")
}

// getRest sends what a client is missing of a run; without a name, of the thread's current one.
func (a *runAPI) getRest(w http.ResponseWriter, r *http.Request, who holdfast.Principal, run string) error {
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	o, err := a.out.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	var reply *agui.Reply
	if run == "" {
		reply, err = asked.attach(o.ctx, a.runs, who, param(r, "thread"), dialectOf(r))
	} else {
		reply, err = a.runs.Events(o.ctx, who, param(r, "thread"), run, asked.after, dialectOf(r))
	}
	if err != nil {
		return err
	}
	return a.out.answer(w, r, o, asked, reply)
}

// attach attaches to a thread, or goes on with its current run after the cursor.
func (c cursors) attach(
	ctx context.Context, runs Runs, who holdfast.Principal, thread string, d agui.Dialect,
) (*agui.Reply, error) {
	if c.after == (store.Cursor{}) {
		return runs.Attach(ctx, who, thread, d)
	}
	return runs.Events(ctx, who, thread, "", c.after, d)
}

// dialectOf returns the dialect that a GET asks for: 1.0 unless ?protocolVersion= says "none".
func dialectOf(r *http.Request) agui.Dialect {
	if r.URL.Query().Get("protocolVersion") == "none" {
		return agui.DialectLegacy
	}
	return agui.DialectV1
}

// postCancel is POST /threads/{thread}/runs/{run}/cancel.
func (a *runAPI) postCancel(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	info, err := a.cancel(r.Context(), who, param(r, "thread"), param(r, "run"))
	if err != nil {
		return err
	}
	code := http.StatusOK
	if info.Status == threads.StatusRunning {
		code = http.StatusAccepted
	}
	nameOwner(w.Header(), info.Owner)
	exchange.WriteJSON(w, code, info)
	return nil
}
