package http

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/threads"
)

// The handlers that delete: what of a thread is no longer needed, a thread, or all threads
// that are old enough.

// Upkeep takes threads back, and removes what is no longer needed.
type Upkeep interface {
	// Rewind takes a thread back.
	Rewind(ctx context.Context, who holdfast.Principal, thread string, to threads.Travel) (*threads.Traveled, error)
	// Prune keeps a thread's newest checkpoints, and what they and the head need. An etag
	// that is not empty must match the thread's, here and for Delete.
	Prune(
		ctx context.Context,
		who holdfast.Principal,
		thread, etag string,
		keep int,
		dryRun bool,
	) (*threads.Cleaned, error)
	// Delete removes a thread and, if children is set, those that were forked from it.
	// It returns how many it removed.
	Delete(ctx context.Context, who holdfast.Principal, thread, etag string, children bool) (int, error)
	// DeleteOlderThan removes from the caller's threads the checkpoints that were taken
	// before the given time, but never a thread's newest.
	DeleteOlderThan(
		ctx context.Context,
		who holdfast.Principal,
		before time.Time,
		dryRun bool,
	) (*threads.Cleaned, error)
	// DeleteInactive deletes the caller's idle threads that were last active before the
	// given time.
	DeleteInactive(ctx context.Context, who holdfast.Principal, before time.Time, dryRun bool) (*threads.Cleaned, error)
}

// defaultKeep is how many checkpoints a prune keeps unless it says otherwise.
const defaultKeep = 10

// postPrune is POST /threads/{thread}/prune.
func (h *handler) postPrune(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	in := struct {
		Keep   int  `json:"keep"`
		DryRun bool `json:"dryRun"`
	}{Keep: defaultKeep}
	if err := h.readObject(w, r, &in, "keep", "dryRun"); err != nil {
		return err
	}
	if in.Keep < 1 {
		return invalid(
			"keep",
			"keep must be at least 1.",
			"The newest checkpoint always stays. To remove all, DELETE the thread.",
		)
	}
	etag, err := ifMatch(r)
	if err != nil {
		return err
	}
	cleaned, err := h.Upkeep.Prune(r.Context(), who, param(r, "thread"), etag, in.Keep, in.DryRun)
	return answerCleaned(w, cleaned, err)
}

func answerCleaned(w http.ResponseWriter, cleaned *threads.Cleaned, err error) error {
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, cleaned)
	return nil
}

// deleteThread is DELETE /threads/{thread}?children=delete.
func (h *handler) deleteThread(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	children := r.URL.Query().Get("children")
	if children != "" && children != "delete" {
		return invalid(
			"children",
			"children must be delete.",
			"Leave it out to keep the threads that were forked from this one.",
		)
	}
	etag, err := ifMatch(r)
	if err != nil {
		return err
	}
	n, err := h.Upkeep.Delete(r.Context(), who, param(r, "thread"), etag, children == "delete")
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]int{"deleted": n})
	return nil
}

// getChildren is GET /threads/{thread}/children.
func (h *handler) getChildren(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	threads, err := h.History.Children(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"threads": threads})
	return nil
}

// postDeleteOlderThan is POST /maintenance/delete-older-than.
func (h *handler) postDeleteOlderThan(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in struct {
		Before    string `json:"before"`
		OlderThan string `json:"olderThan"`
		DryRun    bool   `json:"dryRun"`
	}
	if err := noIfMatch(r, cleanUpNeedsNoETag); err != nil {
		return err
	}
	if err := h.readObject(w, r, &in, "before", "olderThan", "dryRun"); err != nil {
		return err
	}
	if (in.Before == "") == (in.OlderThan == "") {
		return invalid("before", "Either before or olderThan must say which checkpoints are meant, but not both.",
			`Send {"before": "2026-01-31T12:00:00Z"} or {"olderThan": "720h"}.`)
	}
	cutoff, err := time.Parse(time.RFC3339Nano, in.Before)
	if in.OlderThan != "" {
		cutoff, err = h.ago("olderThan", in.OlderThan)
	} else if err != nil {
		err = invalid("before", "before must be a time.", "Write it like 2026-01-31T12:00:00Z.")
	}
	if err != nil {
		return err
	}
	cleaned, err := h.Upkeep.DeleteOlderThan(r.Context(), who, cutoff, in.DryRun)
	return answerCleaned(w, cleaned, err)
}

// postDeleteInactive is POST /maintenance/delete-inactive.
func (h *handler) postDeleteInactive(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in struct {
		Threshold string `json:"threshold"`
		DryRun    bool   `json:"dryRun"`
	}
	if err := noIfMatch(r, cleanUpNeedsNoETag); err != nil {
		return err
	}
	if err := h.readObject(w, r, &in, "threshold", "dryRun"); err != nil {
		return err
	}
	cutoff, err := h.ago("threshold", in.Threshold)
	if err != nil {
		return err
	}
	cleaned, err := h.Upkeep.DeleteInactive(r.Context(), who, cutoff, in.DryRun)
	return answerCleaned(w, cleaned, err)
}

// ago returns the time before which things are older than the span. A span of zero
// would mean everything, which nobody should request by mistake.
func (h *handler) ago(field, span string) (time.Time, error) {
	d, err := time.ParseDuration(span)
	if err != nil || d <= 0 {
		return time.Time{}, invalid(
			field,
			field+" must be a span of time.",
			"Write it in hours, minutes or seconds, like 720h or 1h30m; it must be more than 0s.",
		)
	}
	return h.Now().Add(-d).Time(), nil
}
