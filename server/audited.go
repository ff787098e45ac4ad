package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The operations that the log has a line of each: who did what to which thread, and what came of
// it. Operators act in them on the threads of all users of their tenant.

// auditLog says in the log who has deleted, taken back, finished or copied something, or has
// tried to.
type auditLog struct{ log *slog.Logger }

// note writes a line: who, action, thread, and as result "ok" or the code of the error.
func (l auditLog) note(ctx context.Context, who, action, thread string, err error, more ...slog.Attr) {
	result := "ok"
	if err != nil {
		result = holdfast.AsError(err).Code
	}
	attrs := []slog.Attr{slog.String("who", who), slog.String("action", action)}
	if thread != "" {
		attrs = append(attrs, slog.String("thread", thread))
	}
	attrs = append(attrs, slog.String("result", result))
	l.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "audit", append(attrs, more...)...)
}

// caller names a caller in the log.
func caller(who holdfast.Principal) string { return who.Tenant + "/" + who.User }

// audited are those of the keeper and the engine: those that take a thread back, remove something
// or finish a call.
type audited struct {
	engine    *owner.Engine
	keeper    *upkeep.Keeper
	store     store.Store
	authorize authorizer // for operators
	audit     auditLog
}

// Rewind implements [hfhttp.Upkeep].
func (a *audited) Rewind(
	ctx context.Context, who holdfast.Principal, thread string, to threads.Travel,
) (*threads.Traveled, error) {
	made, err := a.keeper.Rewind(ctx, who, thread, to)
	if !to.Preview {
		a.audit.note(ctx, caller(who), "rewind", thread, err)
	}
	return made, err
}

// Patch implements [hfhttp.States].
func (a *audited) Patch(
	ctx context.Context, who holdfast.Principal, thread string, p threads.StatePatch,
) (*threads.PatchedState, error) {
	made, err := upkeep.States{Keeper: a.keeper}.Patch(ctx, who, thread, p)
	a.audit.note(ctx, caller(who), "patch_state", thread, err)
	return made, err
}

// Prune implements [hfhttp.Upkeep].
func (a *audited) Prune(
	ctx context.Context, who holdfast.Principal, thread, etag string, keep int, dryRun bool,
) (*threads.Cleaned, error) {
	owner, err := a.ownerOf(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	cleaned, err := a.keeper.Prune(ctx, owner, thread, etag, keep, dryRun)
	if !dryRun {
		a.audit.note(ctx, caller(who), "prune", thread, err)
	}
	return cleaned, err
}

// Delete implements [hfhttp.Upkeep].
func (a *audited) Delete(ctx context.Context, who holdfast.Principal, thread, etag string, children bool) (int, error) {
	owner, err := a.ownerOf(ctx, who, thread)
	if err != nil {
		return 0, err
	}
	n, err := a.keeper.Delete(ctx, owner, thread, etag, children)
	a.audit.note(ctx, caller(who), "delete", thread, err, slog.Int("threads", n))
	return n, err
}

// DeleteOlderThan implements [hfhttp.Upkeep].
func (a *audited) DeleteOlderThan(
	ctx context.Context, who holdfast.Principal, before time.Time, dryRun bool,
) (*threads.Cleaned, error) {
	return a.cleanUp(ctx, who, "delete_older_than", dryRun, func(owner holdfast.Principal) (*threads.Cleaned, error) {
		return a.keeper.DeleteOlderThan(ctx, owner, before, dryRun)
	})
}

// DeleteInactive implements [hfhttp.Upkeep].
func (a *audited) DeleteInactive(
	ctx context.Context, who holdfast.Principal, before time.Time, dryRun bool,
) (*threads.Cleaned, error) {
	return a.cleanUp(ctx, who, "delete_inactive", dryRun, func(owner holdfast.Principal) (*threads.Cleaned, error) {
		return a.keeper.DeleteInactive(ctx, owner, before, dryRun)
	})
}

// ownerOf returns on whose behalf a caller deletes a thread: an operator deletes as the
// thread's owner, everybody else as themselves.
func (a *audited) ownerOf(ctx context.Context, who holdfast.Principal, id string) (holdfast.Principal, error) {
	operates, err := operates(ctx, a.authorize, who, access.OperateTenant)
	if err != nil || !operates {
		return who, err
	}
	head, err := a.store.Head(ctx, store.ThreadKey{Tenant: who.Tenant, Thread: id})
	if err != nil {
		return who, nil // the keeper reads it again, and says what is wrong
	}
	return holdfast.Principal{Tenant: who.Tenant, User: head.User}, nil
}

// cleanUp cleans up the caller's threads or, for an operator, those of all users of the
// tenant, one user after the other.
func (a *audited) cleanUp(
	ctx context.Context, who holdfast.Principal, action string, dryRun bool,
	clean func(owner holdfast.Principal) (*threads.Cleaned, error),
) (*threads.Cleaned, error) {
	owners := []holdfast.Principal{who}
	operates, err := operates(ctx, a.authorize, who, access.OperateTenant)
	if err == nil && operates {
		owners, err = a.users(ctx, who.Tenant)
	}
	if err != nil {
		return nil, err
	}
	sum := &threads.Cleaned{DryRun: dryRun}
	for _, owner := range owners {
		var one *threads.Cleaned
		if one, err = clean(owner); one != nil {
			sum.Threads += one.Threads
			sum.Checkpoints += one.Checkpoints
			sum.Messages += one.Messages
			sum.Kept += one.Kept
			sum.Unreadable += one.Unreadable
		}
		if err != nil {
			break
		}
	}
	if !dryRun {
		n, checkpoints := slog.Int("threads", sum.Threads), slog.Int("checkpoints", sum.Checkpoints)
		a.audit.note(ctx, caller(who), action, "", err, n, checkpoints)
	}
	return sum, err
}

// usersPage is how many threads are looked at at a time.
const usersPage = 500

// users returns the users of a tenant who have threads.
func (a *audited) users(ctx context.Context, tenant string) ([]holdfast.Principal, error) {
	var list []holdfast.Principal
	seen := map[string]bool{}
	for after := ""; ; {
		heads, next, err := a.store.Walk(ctx, after, usersPage)
		if err != nil && !errors.Is(err, store.ErrUnreadable) {
			return nil, thread.ReadError(store.ThreadKey{}, err)
		}
		for i := range heads {
			h := &heads[i]
			nobodys := h.Unreadable != nil && h.User == "" // it is damaged
			if h.Key.Tenant != tenant || nobodys || seen[h.User] {
				continue
			}
			seen[h.User] = true
			list = append(list, holdfast.Principal{Tenant: tenant, User: h.User})
		}
		if after = next; next == "" {
			return list, nil
		}
	}
}

// Finish implements [hfhttp.Calls].
func (a *audited) Finish(
	ctx context.Context, who holdfast.Principal, thread, call string, r threads.OutsideResult,
) (*threads.FinishedCall, error) {
	f := finishing(r)
	f.Who, f.Thread, f.Call = who, thread, call
	done, err := a.engine.Finish(ctx, f)
	a.audit.note(ctx, caller(who), "finish", thread, err, slog.String("call", call))
	return done, err
}

// Expects implements [hfhttp.Calls].
func (a *audited) Expects(ctx context.Context, token string) error {
	return owner.Expects(ctx, a.engine, token)
}

// byURL is in the log who finished a call by its one-time URL.
const byURL = "one-time URL"

// FinishByToken implements [hfhttp.Calls].
func (a *audited) FinishByToken(
	ctx context.Context, token string, r threads.OutsideResult,
) (*threads.FinishedCall, error) {
	f := finishing(r)
	f.Token = token
	done, err := a.engine.Finish(ctx, f)
	if done != nil { // else the log would have what anybody sends
		a.audit.note(ctx, byURL, "finish", done.Thread, nil, slog.String("call", done.ID))
	}
	return done, err
}

// finishing returns a result as the engine takes it.
func finishing(r threads.OutsideResult) owner.OutsideResult {
	if !r.Failed {
		return owner.OutsideResult{Result: r.Result}
	}
	text, _ := json.Marshal(r.Error) // a string can always be encoded
	return owner.OutsideResult{Result: text, Failed: true}
}
