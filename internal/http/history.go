package http

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/threads"
)

// The handlers of a thread's past: its checkpoints, and going back to one of them in the
// thread itself or in a fork.

// History reads a thread's past, and starts other threads there.
type History interface {
	// Children lists the threads that were forked from this one.
	Children(ctx context.Context, who holdfast.Principal, thread string) ([]threads.Info, error)
	// Checkpoints lists up to limit checkpoints, newest first: those before the given
	// one (empty: starting with the newest) that were taken before until (zero: any
	// time).
	Checkpoints(
		ctx context.Context,
		who holdfast.Principal,
		thread, before string,
		until time.Time,
		limit int,
	) ([]threads.Checkpoint, error)
	// Checkpoint returns a checkpoint with everything it holds.
	Checkpoint(ctx context.Context, who holdfast.Principal, thread, id string) (*threads.Detail, error)
	// Mark takes a manual checkpoint.
	Mark(ctx context.Context, who holdfast.Principal, thread string, m threads.Mark) (*threads.Checkpoint, error)
	// Fork starts a new thread where another stands or stood.
	Fork(ctx context.Context, who holdfast.Principal, thread string, to threads.Travel) (*threads.Traveled, error)
}

// historyAPI has the routes of a thread's past.
type historyAPI struct {
	history   History
	upkeep    Upkeep // to rewind
	authorize authorizer
	bodies    *exchange.Receiver
}

// routes are those of a thread's past.
func (a *historyAPI) routes() []route {
	return []route{
		{
			method:  "GET",
			path:    "/threads/{thread}/children",
			do:      a.getChildren,
			action:  access.Read,
			id:      "listChildren",
			summary: "Your threads that were forked from this one.",
			answers: []answer{{http.StatusOK, "The threads.", typeJSON, "ThreadList"}},
			errors:  readErrors,
		},
		{
			method:  "GET",
			path:    "/threads/{thread}/checkpoints",
			do:      a.listCheckpoints,
			action:  access.Read,
			id:      "listCheckpoints",
			params:  []string{"limit", "beforeCheckpoint"},
			summary: "The checkpoints of a thread, newest first.",
			answers: []answer{{http.StatusOK, "The checkpoints.", typeJSON, "CheckpointList"}},
			errors:  slices.Concat(readErrors, []string{codes.InvalidInput, codes.HistoryNotKept}),
		},
		{
			method:  "GET",
			path:    "/threads/{thread}/checkpoints/{checkpoint}",
			do:      a.getCheckpoint,
			action:  access.Read,
			id:      "getCheckpoint",
			summary: "The thread as it was at a checkpoint: messages, shared state, open calls.",
			answers: []answer{{http.StatusOK, "The checkpoint.", typeJSON, "CheckpointDetail"}},
			errors:  slices.Concat(readErrors, []string{codes.HistoryNotKept}),
		},
		{
			method: "POST",
			path:   "/threads/{thread}/checkpoints",
			do:     a.postCheckpoint,
			action: access.Change,
			id:     "markCheckpoint",
			params: []string{"IfMatch"},
			summary: "Take a checkpoint, also while a run is under way; on a thread that is not running, it may " +
				"replace the shared state.",
			body:         "Mark",
			bodyOptional: true,
			answers:      []answer{{http.StatusCreated, "The checkpoint.", typeJSON, "Checkpoint"}},
			errors:       slices.Concat(changeErrors, []string{codes.LimitExceeded, codes.StateInvalid}),
		},
		{
			method:       "POST",
			path:         "/threads/{thread}/fork",
			do:           a.postFork,
			asks:         true,
			id:           "forkThread",
			params:       []string{"IfMatch"},
			summary:      "Start a new thread where this one stands or stood.",
			body:         "Travel",
			bodyOptional: true,
			answers: []answer{
				{http.StatusCreated, "The new thread.", typeJSON, "Traveled"},
				{http.StatusOK, "The would-be result, with preview.", typeJSON, "Traveled"},
			},
			errors: slices.Concat(changeErrors,
				[]string{codes.HistoryNotKept, codes.LimitExceeded, codes.ThreadExists}),
		},
		{
			method:  "POST",
			path:    "/threads/{thread}/rewind",
			do:      a.postRewind,
			asks:    true,
			id:      "rewindThread",
			params:  []string{"IfMatch"},
			summary: "Take a thread that is not running back to a checkpoint or a message.",
			body:    "Rewind",
			answers: []answer{{http.StatusOK, "Where the thread is now.", typeJSON, "Traveled"}},
			errors:  slices.Concat(changeErrors, []string{codes.HistoryNotKept}),
		},
	}
}

// getChildren is GET /threads/{thread}/children.
func (a *historyAPI) getChildren(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	list, err := a.history.Children(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]any{"threads": list})
	return nil
}

// listCheckpoints is GET /threads/{thread}/checkpoints?limit=&before=, newest first.
func (a *historyAPI) listCheckpoints(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	limit, err := limitParam(r)
	if err != nil {
		return err
	}
	before, until, err := checkpointBefore(r.URL.Query().Get("before"))
	if err != nil {
		return err
	}
	list, err := a.history.Checkpoints(r.Context(), who, param(r, "thread"), before, until, limit)
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]any{"checkpoints": list})
	return nil
}

// checkpointBefore reads a checkpoint's id, which is a number, or a time.
func checkpointBefore(s string) (id string, until time.Time, err error) {
	if strings.Trim(s, "0123456789") == "" {
		return s, until, exchange.CheckText("before", s)
	}
	if until, err = time.Parse(time.RFC3339Nano, s); err != nil {
		return "", until, exchange.Invalid("before", "before must be the id of a checkpoint or a time.",
			"Use the id of the last checkpoint you got, or a time like 2026-01-31T12:00:00Z.")
	}
	return "", until, nil
}

// getCheckpoint is GET /threads/{thread}/checkpoints/{checkpoint}.
func (a *historyAPI) getCheckpoint(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	detail, err := a.history.Checkpoint(r.Context(), who, param(r, "thread"), param(r, "checkpoint"))
	return exchange.Shown(w, detail, err)
}

// postCheckpoint is POST /threads/{thread}/checkpoints.
func (a *historyAPI) postCheckpoint(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var m threads.Mark
	err := a.bodies.ReadObject(w, r, &m, "label", "state")
	if err == nil {
		err = exchange.CheckText("label", m.Label)
	}
	if err == nil {
		m.ETag, err = exchange.IfMatch(r)
	}
	if err != nil {
		return err
	}
	made, err := a.history.Mark(r.Context(), who, param(r, "thread"), m)
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusCreated, made)
	return nil
}

// postFork is POST /threads/{thread}/fork.
func (a *historyAPI) postFork(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	to, err := a.travel(w, r, "checkpointId", "messageId", "threadId", "reuseResults", "onlyRecorded", "reuse",
		"preview")
	if err != nil {
		return err
	}
	if err := a.authorize(r.Context(), who, toTravel(to), ""); err != nil {
		return err
	}
	made, err := a.history.Fork(r.Context(), who, param(r, "thread"), to)
	if err != nil {
		return err
	}
	code := http.StatusCreated
	if made.Preview {
		code = http.StatusOK
	}
	exchange.WriteJSON(w, code, made)
	return nil
}

// postRewind is POST /threads/{thread}/rewind.
func (a *historyAPI) postRewind(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	to, err := a.travel(w, r, "checkpointId", "messageId", "reuseResults", "onlyRecorded", "reuse", "preview")
	if err != nil {
		return err
	}
	if err := a.authorize(r.Context(), who, toTravel(to), ""); err != nil {
		return err
	}
	made, err := a.upkeep.Rewind(r.Context(), who, param(r, "thread"), to)
	return exchange.Shown(w, made, err)
}

// toTravel returns what a caller must be allowed to do to go back: a preview only reads.
func toTravel(to threads.Travel) access.Action {
	if to.Preview {
		return access.Read
	}
	return access.Change
}

// travel reads where to go back to.
func (a *historyAPI) travel(w http.ResponseWriter, r *http.Request, known ...string) (to threads.Travel, err error) {
	if err := a.bodies.ReadObject(w, r, &to, known...); err != nil {
		return to, err
	}
	for _, id := range []struct{ field, value string }{
		{"checkpointId", to.Checkpoint}, {"messageId", to.Message}, {"threadId", to.Thread},
	} {
		if err := exchange.CheckText(id.field, id.value); err != nil {
			return to, err
		}
	}
	if to.Checkpoint != "" && to.Message != "" {
		return to, exchange.Invalid("messageId", "checkpointId and messageId name two different places.",
			"Send one of them.")
	}
	to.ETag, err = exchange.IfMatch(r)
	return to, err
}
