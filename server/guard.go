package server

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// What callers may do: each call of the HTTP interface and of the Server's own methods
// goes through the guard, which asks Config.Authorize, ends the streams of callers who are
// no longer let in, lets operators act on the threads of their tenant, and logs what was
// deleted or taken back. Whether a run may start is asked by the engine, which knows the
// agent only once it has read the thread.

// Authorize is what decides without [Config].Authorize: the caller's roles must allow the
// action, and the agent must be one of the caller's (access.Rights.Allow). The error has
// the code forbidden and says what is missing.
func Authorize(_ context.Context, who holdfast.Principal, action access.Action, agent string) error {
	if who.Rights.Allow(action, agent) {
		return nil
	}
	e := holdfast.Errorf(codes.Forbidden, "Your key or token does not allow this.").
		WithHint("The operator of the server issues keys and tokens, and can give them other roles or agents.").
		With("action", string(action))
	if agent != "" {
		e = e.With("agent", agent)
	}
	return e
}

// authorizer is the type of Config.Authorize.
type authorizer = func(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error

// refusing returns a program's own function with all its errors as refusals: one without
// a code is not shown to the caller.
func refusing(authorize authorizer) authorizer {
	return func(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error {
		err := authorize(ctx, who, action, agent)
		var coded *holdfast.Error
		if err == nil || errors.As(err, &coded) {
			return err
		}
		return holdfast.Errorf(codes.Forbidden, "You may not do this.").
			WithHint("Ask the operator of the server.").With("action", string(action)).Wrap(err)
	}
}

// guard stands before the engine and the keeper.
type guard struct {
	engine    *loop.Engine
	keeper    *upkeep.Keeper
	store     store.Store
	authorize authorizer
	log       *slog.Logger
	now       clock.Shared
	prices    *prices
}

// allow asks whether a caller may do something.
func (g *guard) allow(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error {
	return g.authorize(ctx, who, action, agent)
}

func (g *guard) mayBeShown(ctx context.Context, who holdfast.Principal, agent string) bool {
	return g.allow(ctx, who, access.Read, agent) == nil
}

// guarded makes a call if the caller may.
func guarded[T any](
	ctx context.Context,
	g *guard,
	who holdfast.Principal,
	action access.Action,
	call func() (T, error),
) (T, error) {
	if err := g.allow(ctx, who, action, ""); err != nil {
		var none T
		return none, err
	}
	return call()
}

func (g *guard) Post(
	ctx context.Context,
	who holdfast.Principal,
	agent string,
	in *agui.RunAgentInput,
) (*agui.Reply, error) {
	return g.stream(
		ctx,
		who,
		func(ctx context.Context) (*agui.Reply, error) { return g.engine.Post(ctx, who, agent, in) },
	)
}

func (g *guard) Cancel(ctx context.Context, who holdfast.Principal, thread, run string) (*threads.Info, error) {
	return guarded(
		ctx,
		g,
		who,
		access.Cancel,
		func() (*threads.Info, error) { return g.engine.Cancel(ctx, who, thread, run) },
	)
}

func (g *guard) Events(
	ctx context.Context,
	who holdfast.Principal,
	thread, run string,
	after store.Cursor,
	d agui.Dialect,
) (*agui.Reply, error) {
	return guarded(ctx, g, who, access.Read, func() (*agui.Reply, error) {
		return g.stream(ctx, who, func(ctx context.Context) (*agui.Reply, error) {
			return g.engine.Events(ctx, who, thread, run, after, d)
		})
	})
}

func (g *guard) Attach(
	ctx context.Context,
	who holdfast.Principal,
	thread string,
	d agui.Dialect,
) (*agui.Reply, error) {
	return guarded(ctx, g, who, access.Read, func() (*agui.Reply, error) {
		return g.stream(
			ctx,
			who,
			func(ctx context.Context) (*agui.Reply, error) { return g.engine.Attach(ctx, who, thread, d) },
		)
	})
}

func (g *guard) Threads(
	ctx context.Context,
	who holdfast.Principal,
	before time.Time,
	limit int,
) ([]threads.Info, error) {
	return guarded(
		ctx,
		g,
		who,
		access.Read,
		func() ([]threads.Info, error) { return g.keeper.Threads(ctx, who, before, limit) },
	)
}

func (g *guard) Thread(ctx context.Context, who holdfast.Principal, thread string) (*threads.Info, error) {
	return guarded(ctx, g, who, access.Read, func() (*threads.Info, error) { return g.keeper.Thread(ctx, who, thread) })
}

func (g *guard) Messages(
	ctx context.Context,
	who holdfast.Principal,
	thread string,
) (iter.Seq2[json.RawMessage, error], error) {
	return guarded(
		ctx,
		g,
		who,
		access.Read,
		func() (iter.Seq2[json.RawMessage, error], error) { return g.keeper.Messages(ctx, who, thread) },
	)
}

func (g *guard) State(ctx context.Context, who holdfast.Principal, thread string) (*threads.State, error) {
	return guarded(ctx, g, who, access.Read, func() (*threads.State, error) { return g.keeper.State(ctx, who, thread) })
}

func (g *guard) Runs(
	ctx context.Context,
	who holdfast.Principal,
	thread, before string,
	limit int,
) ([]threads.Run, error) {
	return guarded(ctx, g, who, access.Read, func() ([]threads.Run, error) {
		return g.prices.pricedRuns(g.keeper.Runs(ctx, who, thread, before, limit))
	})
}

func (g *guard) Children(ctx context.Context, who holdfast.Principal, thread string) ([]threads.Info, error) {
	return guarded(
		ctx,
		g,
		who,
		access.Read,
		func() ([]threads.Info, error) { return g.keeper.Children(ctx, who, thread) },
	)
}

func (g *guard) Checkpoints(
	ctx context.Context,
	who holdfast.Principal,
	thread, before string,
	until time.Time,
	limit int,
) ([]threads.Checkpoint, error) {
	return guarded(ctx, g, who, access.Read, func() ([]threads.Checkpoint, error) {
		return g.keeper.Checkpoints(ctx, who, thread, before, until, limit)
	})
}

func (g *guard) Checkpoint(ctx context.Context, who holdfast.Principal, thread, id string) (*threads.Detail, error) {
	return guarded(
		ctx,
		g,
		who,
		access.Read,
		func() (*threads.Detail, error) { return g.keeper.Checkpoint(ctx, who, thread, id) },
	)
}

func (g *guard) Mark(
	ctx context.Context,
	who holdfast.Principal,
	thread string,
	m threads.Mark,
) (*threads.Checkpoint, error) {
	return guarded(
		ctx,
		g,
		who,
		access.Change,
		func() (*threads.Checkpoint, error) { return g.keeper.Mark(ctx, who, thread, m) },
	)
}

// toTravel returns what a caller must be allowed to do to go back: a preview only reads.
func toTravel(to threads.Travel) access.Action {
	if to.Preview {
		return access.Read
	}
	return access.Change
}

func (g *guard) Fork(
	ctx context.Context,
	who holdfast.Principal,
	thread string,
	to threads.Travel,
) (*threads.Traveled, error) {
	return guarded(
		ctx,
		g,
		who,
		toTravel(to),
		func() (*threads.Traveled, error) { return g.keeper.Fork(ctx, who, thread, to) },
	)
}

func (g *guard) Rewind(
	ctx context.Context,
	who holdfast.Principal,
	thread string,
	to threads.Travel,
) (*threads.Traveled, error) {
	return guarded(ctx, g, who, toTravel(to), func() (*threads.Traveled, error) {
		made, err := g.keeper.Rewind(ctx, who, thread, to)
		if to.Preview {
			return made, err
		}
		g.audit(ctx, caller(who), "rewind", thread, err)
		return made, err
	})
}

func (g *guard) Describe(
	ctx context.Context,
	who holdfast.Principal,
	thread, etag string,
	d threads.Description,
) (*threads.Info, error) {
	return guarded(ctx, g, who, access.Change, func() (*threads.Info, error) {
		return upkeep.Titles{Keeper: g.keeper}.Describe(ctx, who, thread, etag, d)
	})
}

func (g *guard) Prune(
	ctx context.Context,
	who holdfast.Principal,
	thread, etag string,
	keep int,
	dryRun bool,
) (*threads.Cleaned, error) {
	return guarded(ctx, g, who, access.Delete, func() (*threads.Cleaned, error) {
		owner, err := g.ownerOf(ctx, who, thread)
		if err != nil {
			return nil, err
		}
		cleaned, err := g.keeper.Prune(ctx, owner, thread, etag, keep, dryRun)
		if !dryRun {
			g.audit(ctx, caller(who), "prune", thread, err)
		}
		return cleaned, err
	})
}

func (g *guard) Delete(ctx context.Context, who holdfast.Principal, thread, etag string, children bool) (int, error) {
	return guarded(ctx, g, who, access.Delete, func() (int, error) {
		owner, err := g.ownerOf(ctx, who, thread)
		if err != nil {
			return 0, err
		}
		n, err := g.keeper.Delete(ctx, owner, thread, etag, children)
		g.audit(ctx, caller(who), "delete", thread, err, slog.Int("threads", n))
		return n, err
	})
}

func (g *guard) DeleteOlderThan(
	ctx context.Context,
	who holdfast.Principal,
	before time.Time,
	dryRun bool,
) (*threads.Cleaned, error) {
	return g.cleanUp(ctx, who, "delete_older_than", dryRun, func(owner holdfast.Principal) (*threads.Cleaned, error) {
		return g.keeper.DeleteOlderThan(ctx, owner, before, dryRun)
	})
}

func (g *guard) DeleteInactive(
	ctx context.Context,
	who holdfast.Principal,
	before time.Time,
	dryRun bool,
) (*threads.Cleaned, error) {
	return g.cleanUp(ctx, who, "delete_inactive", dryRun, func(owner holdfast.Principal) (*threads.Cleaned, error) {
		return g.keeper.DeleteInactive(ctx, owner, before, dryRun)
	})
}

func (g *guard) Finish(
	ctx context.Context,
	who holdfast.Principal,
	thread, call string,
	r threads.CallResult,
) (*threads.FinishedCall, error) {
	f := finishing(r)
	f.Who, f.Thread, f.Call = who, thread, call
	done, err := g.engine.Finish(ctx, f)
	g.audit(ctx, caller(who), "finish", thread, err, slog.String("call", call))
	return done, err
}

// byURL is in the log who finished a call by its one-time URL.
const byURL = "one-time URL"

func (g *guard) Expects(ctx context.Context, token string) error {
	return loop.Expects(ctx, g.engine, token)
}

func (g *guard) FinishByToken(ctx context.Context, token string, r threads.CallResult) (*threads.FinishedCall, error) {
	f := finishing(r)
	f.Token = token
	done, err := g.engine.Finish(ctx, f)
	if done != nil { // else the log would have what anybody sends
		g.audit(ctx, byURL, "finish", done.Thread, nil, slog.String("call", done.ID))
	}
	return done, err
}

// finishing returns a result as the engine takes it.
func finishing(r threads.CallResult) loop.Finishing {
	if !r.Failed {
		return loop.Finishing{Result: r.Result}
	}
	text, _ := json.Marshal(r.Error) // a string can always be encoded
	return loop.Finishing{Result: text, Failed: true}
}
