package http

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The inside of threads over HTTP: what is under way, calls, usage, questions, and the log of a
// run, which is written in inspect_log.go.

// Inspect shows what is inside threads.
type Inspect interface {
	// Work returns what is under way on a thread and in no checkpoint yet.
	Work(ctx context.Context, who holdfast.Principal, thread string) (*threads.Work, error)
	// Calls returns the tool calls of a run or, if run is empty, of up to limit runs of the
	// thread: those before the given one (empty: the newest).
	Calls(ctx context.Context, who holdfast.Principal, thread, run, before string, limit int) (*threads.CallList, error)
	// Usage returns what all runs of a thread have used.
	Usage(ctx context.Context, who holdfast.Principal, thread string) (*threads.ThreadUsage, error)
	// Questions returns the open questions of about limit of the caller's threads that were
	// last active before the given time (zero: any time).
	Questions(ctx context.Context, who holdfast.Principal, before time.Time, limit int) (*threads.QuestionList, error)
}

// inspectAPI has the routes that show what is inside threads.
type inspectAPI struct {
	inspect Inspect
	runLog  runLog
	log     *slog.Logger
}

// runLog reads records of a run: see Config.RunLog.
type runLog = func(
	ctx context.Context,
	who holdfast.Principal,
	thread, run string,
	after store.Cursor,
	limit int,
) (*agui.Page, error)

// routes are those that show what is inside threads.
func (a *inspectAPI) routes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/questions",
			do:      a.getQuestions,
			action:  access.Read,
			id:      "listQuestions",
			params:  []string{"limit", "before"},
			summary: "The open questions of all your threads, the newest first.",
			answers: []answer{{http.StatusOK, "The questions.", typeJSON, "QuestionList"}},
			errors:  listErrors,
		},
		{
			method: "GET",
			path:   "/threads/{thread}/work",
			do:     a.getWork,
			action: access.Read,
			id:     "getWork",
			summary: "The work that is under way and in no checkpoint yet: open calls, intents, pending " +
				"writes, calls in doubt.",
			answers: []answer{{http.StatusOK, "The work.", typeJSON, "Work"}},
			errors:  readErrors,
		},
		{
			method:  "GET",
			path:    "/threads/{thread}/calls",
			do:      a.getCalls,
			action:  access.Read,
			id:      "listCalls",
			params:  []string{"ofRun", "limit", "beforeRun"},
			summary: "The tool calls of a run, or of the newest runs, with effect, key, attempts and times.",
			answers: []answer{{http.StatusOK, "The calls.", typeJSON, "CallList"}},
			errors:  slices.Concat(readErrors, []string{codes.InvalidInput}),
		},
		{
			method:  "GET",
			path:    "/threads/{thread}/usage",
			do:      a.getUsage,
			action:  access.Read,
			id:      "getUsage",
			summary: "The use of models by all runs of a thread, and its cost.",
			answers: []answer{{http.StatusOK, "The usage.", typeJSON, "ThreadUsage"}},
			errors:  readErrors,
		},
		{
			method:  "GET",
			path:    "/threads/{thread}/runs/{run}/log",
			do:      a.getLog,
			action:  access.Read,
			id:      "getLog",
			params:  []string{"limitRecords", "after"},
			summary: "The records of a run in one answer, without waiting for more.",
			answers: []answer{{http.StatusOK, "A page of records.", typeJSON, "Log"}},
			errors:  slices.Concat(readErrors, []string{codes.InvalidCursor, codes.InvalidInput}),
		},
	}
}

// getQuestions is GET /questions?limit=&before=, the newest first.
func (a *inspectAPI) getQuestions(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	page, err := readThreadPage(r)
	if err != nil {
		return err
	}
	list, err := a.inspect.Questions(r.Context(), who, page.Before, page.Limit)
	return exchange.Shown(w, list, err)
}

// getWork is GET /threads/{thread}/work.
func (a *inspectAPI) getWork(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	work, err := a.inspect.Work(r.Context(), who, param(r, "thread"))
	return exchange.Shown(w, work, err)
}

// getCalls is GET /threads/{thread}/calls?run=&limit=&before=.
func (a *inspectAPI) getCalls(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	limit, err := limitParam(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	for _, name := range []string{"run", "before"} {
		if err := exchange.CheckText(name, q.Get(name)); err != nil {
			return err
		}
	}
	list, err := a.inspect.Calls(r.Context(), who, param(r, "thread"), q.Get("run"), q.Get("before"), limit)
	return exchange.Shown(w, list, err)
}

// getUsage is GET /threads/{thread}/usage.
func (a *inspectAPI) getUsage(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	usage, err := a.inspect.Usage(r.Context(), who, param(r, "thread"))
	return exchange.Shown(w, usage, err)
}

// How many records a page of a run's log has.
const (
	defaultRecords = 1000
	maxRecords     = 20_000
)

// getLog is GET /threads/{thread}/runs/{run}/log?after=&limit=.
func (a *inspectAPI) getLog(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	limit, err := numberParam(r, "limit", defaultRecords, maxRecords)
	if err != nil {
		return err
	}
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	page, err := a.runLog(r.Context(), who, param(r, "thread"), param(r, "run"), asked.after, limit)
	if err != nil {
		return err
	}
	exchange.JSONHeader(w, http.StatusOK)
	writeLog(w, r, a.log, page)
	return nil
}
