package http

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
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

// upkeepAPI has the routes that remove something, and the one that copies the store.
type upkeepAPI struct {
	upkeep   Upkeep
	backup   func(ctx context.Context, dir string) error              // nil if it cannot be copied
	operator func(*http.Request) (who string, err error)              // nil if there is none
	audit    func(ctx context.Context, who, action string, err error) // nil if nobody wants to know
	bodies   *exchange.Receiver
	now      clock.Shared
}

// routes are those that remove something, and the one that copies the store.
func (a *upkeepAPI) routes() []route {
	return []route{
		{
			method:  "DELETE",
			path:    "/threads/{thread}",
			do:      a.deleteThread,
			action:  access.Delete,
			id:      "deleteThread",
			params:  []string{"IfMatch", "children"},
			summary: "Delete a thread that is not running, with everything stored about it.",
			answers: []answer{{http.StatusOK, "How many threads were deleted.", typeJSON, "Deleted"}},
			errors: slices.Concat(readErrors,
				[]string{codes.InvalidInput, codes.RunInProgress, codes.CheckpointConflict}),
		},
		{
			method:       "POST",
			path:         "/threads/{thread}/prune",
			do:           a.postPrune,
			action:       access.Delete,
			id:           "pruneThread",
			params:       []string{"IfMatch"},
			body:         "Prune",
			bodyOptional: true,
			summary:      "Keep the newest checkpoints, and remove what neither they nor the head needs.",
			answers: []answer{
				{http.StatusOK, "The counts of what was removed or, in a dry run, would be.", typeJSON, "Cleaned"},
			},
			errors: changeErrors,
		},
		{
			method:    "POST",
			path:      "/maintenance/delete-older-than",
			do:        a.postDeleteOlderThan,
			noIfMatch: cleanUpNeedsNoETag,
			action:    access.Delete,
			id:        "deleteOlderThan",
			body:      "DeleteOlderThan",
			summary: "Remove old checkpoints from all your threads (an operator of the tenant: from all of its), " +
				"but never a thread's newest.",
			answers: []answer{
				{http.StatusOK, "The counts of what was removed or, in a dry run, would be.", typeJSON, "Cleaned"},
			},
			errors: cleanErrors,
		},
		{
			method:    "POST",
			path:      "/maintenance/delete-inactive",
			do:        a.postDeleteInactive,
			noIfMatch: cleanUpNeedsNoETag,
			action:    access.Delete,
			id:        "deleteInactive",
			body:      "DeleteInactive",
			summary: "Delete your idle threads (an operator of the tenant: all of its) that have not " +
				"been used for a long time.",
			answers: []answer{
				{http.StatusOK, "The counts of what was removed or, in a dry run, would be.", typeJSON, "Cleaned"},
			},
			errors: cleanErrors,
		},
		{
			method: "POST",
			path:   "/maintenance/backup",
			do:     a.postBackup,
			open:   true,
			id:     "backup",
			body:   "Backup",
			summary: "Copy the embedded store to a new directory on the server's machine. For operators of the " +
				"server: see holdfast backup.",
			answers: []answer{{http.StatusOK, "The copy is complete.", typeJSON, "BackedUp"}},
			errors: []string{
				codes.Forbidden,
				codes.InvalidInput,
				codes.NotFound,
				codes.PayloadTooLarge,
				codes.StoreUnavailable,
				codes.UnsupportedMediaType,
			},
		},
	}
}

// defaultKeep is how many checkpoints a prune keeps unless it says otherwise.
const defaultKeep = 10

// postPrune is POST /threads/{thread}/prune.
func (a *upkeepAPI) postPrune(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	in := struct {
		Keep   int  `json:"keep"`
		DryRun bool `json:"dryRun"`
	}{Keep: defaultKeep}
	if err := a.bodies.ReadObject(w, r, &in, "keep", "dryRun"); err != nil {
		return err
	}
	if in.Keep < 1 {
		return exchange.Invalid("keep", "keep must be at least 1.",
			"The newest checkpoint always stays. To remove all, DELETE the thread.")
	}
	etag, err := exchange.IfMatch(r)
	if err != nil {
		return err
	}
	cleaned, err := a.upkeep.Prune(r.Context(), who, param(r, "thread"), etag, in.Keep, in.DryRun)
	return exchange.Shown(w, cleaned, err)
}

// deleteThread is DELETE /threads/{thread}?children=delete.
func (a *upkeepAPI) deleteThread(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	children := r.URL.Query().Get("children")
	if children != "" && children != "delete" {
		return exchange.Invalid("children", "children must be delete.",
			"Leave it out to keep the threads that were forked from this one.")
	}
	etag, err := exchange.IfMatch(r)
	if err != nil {
		return err
	}
	n, err := a.upkeep.Delete(r.Context(), who, param(r, "thread"), etag, children == "delete")
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]int{"deleted": n})
	return nil
}

// postDeleteOlderThan is POST /maintenance/delete-older-than.
func (a *upkeepAPI) postDeleteOlderThan(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in struct {
		Before    string `json:"before"`
		OlderThan string `json:"olderThan"`
		DryRun    bool   `json:"dryRun"`
	}
	if err := a.bodies.ReadObject(w, r, &in, "before", "olderThan", "dryRun"); err != nil {
		return err
	}
	if (in.Before == "") == (in.OlderThan == "") {
		return exchange.Invalid("before",
			"Either before or olderThan must say which checkpoints are meant, but not both.",
			`Send {"before": "2026-01-31T12:00:00Z"} or {"olderThan": "720h"}.`)
	}
	cutoff, err := time.Parse(time.RFC3339Nano, in.Before)
	if in.OlderThan != "" {
		cutoff, err = a.ago("olderThan", in.OlderThan)
	} else if err != nil {
		err = exchange.Invalid("before", "before must be a time.", "Write it like 2026-01-31T12:00:00Z.")
	}
	if err != nil {
		return err
	}
	cleaned, err := a.upkeep.DeleteOlderThan(r.Context(), who, cutoff, in.DryRun)
	return exchange.Shown(w, cleaned, err)
}

// postDeleteInactive is POST /maintenance/delete-inactive.
func (a *upkeepAPI) postDeleteInactive(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in struct {
		Threshold string `json:"threshold"`
		DryRun    bool   `json:"dryRun"`
	}
	if err := a.bodies.ReadObject(w, r, &in, "threshold", "dryRun"); err != nil {
		return err
	}
	cutoff, err := a.ago("threshold", in.Threshold)
	if err != nil {
		return err
	}
	cleaned, err := a.upkeep.DeleteInactive(r.Context(), who, cutoff, in.DryRun)
	return exchange.Shown(w, cleaned, err)
}

// ago returns the time before which things are older than the span. A span of zero
// would mean everything, which nobody should request by mistake.
func (a *upkeepAPI) ago(field, span string) (time.Time, error) {
	d, err := time.ParseDuration(span)
	if err != nil || d <= 0 {
		return time.Time{}, exchange.Invalid(field, field+" must be a span of time.",
			"Write it in hours, minutes or seconds, like 720h or 1h30m; it must be more than 0s.")
	}
	return a.now().Add(-d).Time(), nil
}

// postBackup is POST /maintenance/backup. Only operators of the server may ask for it, because it writes
// to the server's disk, and the copy has the threads of everybody. They are told what
// went wrong, in full.
func (a *upkeepAPI) postBackup(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	operator, err := a.operatorOf(r)
	if err != nil {
		if a.audit != nil && operator != "" { // it is known who has tried
			a.audit(r.Context(), operator, "backup", err)
		}
		return err
	}
	if a.backup == nil {
		return holdfast.Errorf(codes.NotFound, "This server's store cannot be copied through the server.").
			WithHint("Redis is backed up with its own means.")
	}
	var in struct {
		Dir string `json:"dir"`
	}
	if err := a.bodies.ReadObject(w, r, &in, "dir"); err != nil {
		return err
	}
	if !filepath.IsAbs(in.Dir) {
		return exchange.Invalid("dir", "dir must be an absolute path.",
			"Name a directory on the server's machine that does not exist yet.")
	}
	err = backupError(in.Dir, a.backup(r.Context(), in.Dir))
	if a.audit != nil {
		a.audit(r.Context(), operator, "backup", err)
	}
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]string{"dir": in.Dir})
	return nil
}

// backupError returns the error as the operator gets it, and as the log has it.
func backupError(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return exchange.Invalid("dir", dir+" exists.",
			"A backup is a new directory: name one that does not exist yet.").Wrap(err)
	}
	return holdfast.Errorf(codes.StoreUnavailable, "The backup was not made: %v", err).Wrap(err)
}

// operatorOf returns who the operator is that has sent the request. With an error it is who else has
// sent it, if that is known.
func (a *upkeepAPI) operatorOf(r *http.Request) (who string, err error) {
	if a.operator != nil {
		who, err = a.operator(r)
	}
	if err == nil && who == "" {
		err = holdfast.Errorf(codes.NotFound, "Only operators of this server may do this.").
			WithHint("Run holdfast backup on the server's machine, as a user who can read the store.")
	}
	return who, err
}
