package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/operator"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Operators: who they are, what they may do to other users' threads, and the lines in the
// log that say what was done.

// operators are let in with what the server has left in its store's directory, while it
// listens. Nobody is, if the store has none.
type operators struct {
	contact atomic.Pointer[operator.Contact]
}

func (o *operators) allow(r *http.Request) bool {
	c := o.contact.Load()
	return c != nil && c.Allows(r)
}

// thisMachine is in the log who used what the server has left in its store's directory.
const thisMachine = "this machine"

// operatorOf returns the operator who sent a request: whoever can read the store's
// directory, or a caller who may operate the server. It returns "" for everybody else
// on a server without keys.
func (s *Server) operatorOf(r *http.Request) (string, error) {
	if s.operators.allow(r) {
		return thisMachine, nil
	}
	if s.cfg.Authenticate == nil {
		return "", nil
	}
	who, err := s.cfg.Authenticate(r)
	if err != nil {
		return "", err
	}
	operates, err := s.guard.operates(r.Context(), who)
	if err == nil && !operates {
		err = Authorize(r.Context(), who, access.Operate, "")
	}
	return caller(who), err
}

// backup returns how the store is copied; nil if it cannot be.
func (s *Server) backup() func(ctx context.Context, dir string) error {
	if b, ok := s.store.(store.Backuper); ok {
		return b.Backup
	}
	return nil
}

// directory is where the embedded store is; "" if there is none.
func (s *Server) directory() string {
	if d, ok := s.store.(interface{ Dir() string }); ok {
		return d.Dir()
	}
	return ""
}

// announce leaves a contact in the store's directory. Without it, the server only cannot
// be asked for a backup.
func (s *Server) announce() {
	dir := s.directory()
	if dir == "" {
		return
	}
	var c operator.Contact
	doors, err := s.cfg.doors()
	if err == nil {
		c, err = operator.NewContact(s.Addr(), doors.hosts.First())
	}
	if err == nil {
		err = c.Write(dir)
	}
	if err != nil {
		s.cfg.Log.Warn("holdfast backup cannot reach this server", "error", err)
		return
	}
	s.operators.contact.Store(&c)
}

// withdraw takes the contact back.
func (s *Server) withdraw() error {
	if s.operators.contact.Swap(nil) == nil {
		return nil
	}
	return operator.Remove(s.directory())
}

// caller names a caller in the log.
func caller(who holdfast.Principal) string { return who.Tenant + "/" + who.User }

// audit logs what a caller has deleted, taken back or copied, or has tried to: who, action,
// thread, and as result "ok" or the code of the error.
func (g *guard) audit(ctx context.Context, who, action, thread string, err error, more ...slog.Attr) {
	result := "ok"
	if err != nil {
		result = holdfast.AsError(err).Code
	}
	attrs := []slog.Attr{slog.String("who", who), slog.String("action", action)}
	if thread != "" {
		attrs = append(attrs, slog.String("thread", thread))
	}
	attrs = append(attrs, slog.String("result", result))
	g.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "audit", append(attrs, more...)...)
}

// operates reports whether the caller has the operator's role and may use it. The role
// alone is not enough for a program that decides for itself, nor is such a program's
// leave enough for a caller without the role, whose own threads are meant.
func (g *guard) operates(ctx context.Context, who holdfast.Principal) (bool, error) {
	if !who.Rights.Has(access.RoleOperator) {
		return false, nil
	}
	return true, g.allow(ctx, who, access.Operate, "")
}

// ownerOf returns on whose behalf a caller deletes a thread: an operator deletes as the
// thread's owner, everybody else as themselves.
func (g *guard) ownerOf(ctx context.Context, who holdfast.Principal, id string) (holdfast.Principal, error) {
	operates, err := g.operates(ctx, who)
	if err != nil || !operates {
		return who, err
	}
	head, err := g.store.Head(ctx, store.ThreadKey{Tenant: who.Tenant, Thread: id})
	if err != nil {
		return who, nil // the keeper reads it again, and says what is wrong
	}
	return holdfast.Principal{Tenant: who.Tenant, User: head.User}, nil
}

// cleanUp cleans up the caller's threads or, for an operator, those of all users of the
// tenant, one user after the other.
func (g *guard) cleanUp(
	ctx context.Context,
	who holdfast.Principal,
	action string,
	dryRun bool,
	clean func(owner holdfast.Principal) (*threads.Cleaned, error),
) (*threads.Cleaned, error) {
	return guarded(ctx, g, who, access.Delete, func() (*threads.Cleaned, error) {
		owners := []holdfast.Principal{who}
		operates, err := g.operates(ctx, who)
		if err == nil && operates {
			owners, err = g.users(ctx, who.Tenant)
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
			g.audit(
				ctx,
				caller(who),
				action,
				"",
				err,
				slog.Int("threads", sum.Threads),
				slog.Int("checkpoints", sum.Checkpoints),
			)
		}
		return sum, err
	})
}

// usersPage is how many threads are looked at at a time.
const usersPage = 500

// users returns the users of a tenant who have threads.
func (g *guard) users(ctx context.Context, tenant string) ([]holdfast.Principal, error) {
	var list []holdfast.Principal
	seen := map[string]bool{}
	for after := ""; ; {
		heads, next, err := g.store.Walk(ctx, after, usersPage)
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
