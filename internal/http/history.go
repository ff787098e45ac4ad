package http

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
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

// listCheckpoints is GET /threads/{thread}/checkpoints?limit=&before=, newest first.
func (h *handler) listCheckpoints(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	limit, err := limitParam(r)
	if err != nil {
		return err
	}
	before, until, err := checkpointBefore(r.URL.Query().Get("before"))
	if err != nil {
		return err
	}
	list, err := h.History.Checkpoints(r.Context(), who, param(r, "thread"), before, until, limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"checkpoints": list})
	return nil
}

// checkpointBefore reads a checkpoint's id, which is a number, or a time.
func checkpointBefore(s string) (id string, until time.Time, err error) {
	if strings.Trim(s, "0123456789") == "" {
		return s, until, checkText("before", s)
	}
	if until, err = time.Parse(time.RFC3339Nano, s); err != nil {
		return "", until, invalid("before", "before must be the id of a checkpoint or a time.",
			"Use the id of the last checkpoint you got, or a time like 2026-01-31T12:00:00Z.")
	}
	return "", until, nil
}

// getCheckpoint is GET /threads/{thread}/checkpoints/{checkpoint}.
func (h *handler) getCheckpoint(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	detail, err := h.History.Checkpoint(r.Context(), who, param(r, "thread"), param(r, "checkpoint"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, detail)
	return nil
}

// postCheckpoint is POST /threads/{thread}/checkpoints.
func (h *handler) postCheckpoint(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var m threads.Mark
	err := h.readObject(w, r, &m, "label", "state")
	if err == nil {
		err = checkText("label", m.Label)
	}
	if err == nil {
		m.ETag, err = ifMatch(r)
	}
	if err != nil {
		return err
	}
	made, err := h.History.Mark(r.Context(), who, param(r, "thread"), m)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, made)
	return nil
}

// postFork is POST /threads/{thread}/fork.
func (h *handler) postFork(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	to, err := h.travel(
		w,
		r,
		"checkpointId",
		"messageId",
		"threadId",
		"reuseResults",
		"onlyRecorded",
		"reuse",
		"preview",
	)
	if err != nil {
		return err
	}
	if err := h.Authorize(r.Context(), who, toTravel(to), ""); err != nil {
		return err
	}
	made, err := h.History.Fork(r.Context(), who, param(r, "thread"), to)
	if err != nil {
		return err
	}
	code := http.StatusCreated
	if made.Preview {
		code = http.StatusOK
	}
	writeJSON(w, code, made)
	return nil
}

// postRewind is POST /threads/{thread}/rewind.
func (h *handler) postRewind(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	to, err := h.travel(w, r, "checkpointId", "messageId", "reuseResults", "onlyRecorded", "reuse", "preview")
	if err != nil {
		return err
	}
	if err := h.Authorize(r.Context(), who, toTravel(to), ""); err != nil {
		return err
	}
	made, err := h.Upkeep.Rewind(r.Context(), who, param(r, "thread"), to)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, made)
	return nil
}

// toTravel returns what a caller must be allowed to do to go back: a preview only reads.
func toTravel(to threads.Travel) access.Action {
	if to.Preview {
		return access.Read
	}
	return access.Change
}

// travel reads where to go back to.
func (h *handler) travel(w http.ResponseWriter, r *http.Request, known ...string) (to threads.Travel, err error) {
	if err := h.readObject(w, r, &to, known...); err != nil {
		return to, err
	}
	for _, id := range []struct{ field, value string }{
		{"checkpointId", to.Checkpoint}, {"messageId", to.Message}, {"threadId", to.Thread},
	} {
		if err := checkText(id.field, id.value); err != nil {
			return to, err
		}
	}
	if to.Checkpoint != "" && to.Message != "" {
		return to, invalid("messageId", "checkpointId and messageId name two different places.", "Send one of them.")
	}
	to.ETag, err = ifMatch(r)
	return to, err
}
