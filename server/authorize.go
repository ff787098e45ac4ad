package server

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
)

// The actions that callers may do. Over HTTP the table of routes says which action each route
// needs; a method of the Server says it itself. Whether a run may start is asked by the
// engine, which knows the agent only once it has read the thread.

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

// operates reports whether the caller has an operator's role for the action, which is
// access.OperateTenant or access.OperateServer, and may use it. The role alone is not enough
// for a program that decides for itself, nor is such a program's leave enough for a caller
// without the role, whose own threads are meant.
func operates(ctx context.Context, authorize authorizer, who holdfast.Principal, action access.Action) (bool, error) {
	if !who.Rights.Allow(action, "") {
		return false, nil
	}
	return true, authorize(ctx, who, action, "")
}

// mustOperate returns why the caller may not operate the tenant or the server.
func mustOperate(ctx context.Context, authorize authorizer, who holdfast.Principal, action access.Action) error {
	operates, err := operates(ctx, authorize, who, action)
	if err == nil && !operates {
		err = Authorize(ctx, who, action, "")
	}
	return err
}
