package server

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/store"
)

// How long a stream may last: not longer than the key or the token with which it was
// opened.

// errNoLongerValid is why a stream's context is cancelled.
var errNoLongerValid = errors.New("the caller's key or token is no longer valid")

// keyedStreams are the engine's streams, each of which ends when the key or the token of its
// caller does. Its run goes on.
type keyedStreams struct {
	engine *owner.Engine
	now    clock.Shared
}

// Post implements [hfhttp.Runs].
func (s *keyedStreams) Post(
	ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput,
) (*agui.Reply, error) {
	return s.open(ctx, who, func(ctx context.Context) (*agui.Reply, error) {
		return s.engine.Post(ctx, who, agent, in)
	})
}

// Events implements [hfhttp.Runs].
func (s *keyedStreams) Events(
	ctx context.Context, who holdfast.Principal, thread, run string, after store.Cursor, d agui.Dialect,
) (*agui.Reply, error) {
	return s.open(ctx, who, func(ctx context.Context) (*agui.Reply, error) {
		return s.engine.Events(ctx, who, thread, run, after, d)
	})
}

// Attach implements [hfhttp.Runs].
func (s *keyedStreams) Attach(
	ctx context.Context, who holdfast.Principal, thread string, d agui.Dialect,
) (*agui.Reply, error) {
	return s.open(ctx, who, func(ctx context.Context) (*agui.Reply, error) {
		return s.engine.Attach(ctx, who, thread, d)
	})
}

// Join implements [hfhttp.Runs].
func (s *keyedStreams) Join(
	ctx context.Context, who holdfast.Principal, thread, run string, after store.Cursor, d agui.Dialect,
	shown agui.Shown,
) (*agui.Reply, error) {
	return s.open(ctx, who, func(ctx context.Context) (*agui.Reply, error) {
		return owner.Joins{Engine: s.engine}.Join(ctx, who, thread, run, after, d, shown)
	})
}

// open opens one of them.
func (s *keyedStreams) open(
	ctx context.Context, who holdfast.Principal, open func(context.Context) (*agui.Reply, error),
) (*agui.Reply, error) {
	if who.Rights == nil || who.Rights.Expires.IsZero() && who.Rights.Revoked == nil {
		return open(ctx)
	}
	within, stop := s.whileValid(ctx, who)
	reply, err := open(within)
	if err != nil || reply == nil {
		stop()
		if errors.Is(context.Cause(within), errNoLongerValid) {
			err = tooLateError(err)
		}
		return nil, err
	}
	limited := *reply
	limited.Frames = func(yield func([]agui.Frame, error) bool) {
		defer stop()
		over := false // the last event was shown, or the error why it was not
		for frames, err := range reply.Frames {
			over = err != nil || endsRun(frames)
			if !yield(frames, err) {
				return
			}
		}
		if !over && errors.Is(context.Cause(within), errNoLongerValid) {
			yield(nil, endedError())
		}
	}
	return &limited, nil
}

// whileValid returns a context that is cancelled with errNoLongerValid when the caller is
// no longer let in. Nothing waits for that: neither a timer nor AfterFunc has a goroutine.
func (s *keyedStreams) whileValid(ctx context.Context, who holdfast.Principal) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(errNoLongerValid) }
	unwatch, untime := func() bool { return true }, func() bool { return true }
	if who.Rights.Revoked != nil {
		unwatch = context.AfterFunc(who.Rights.Revoked, end)
	}
	if expires := who.Rights.Expires; !expires.IsZero() {
		untime = time.AfterFunc(-s.now().Age(expires), end).Stop
	}
	return within, func() {
		unwatch()
		untime()
		cancel(nil)
	}
}

// endsRun reports whether frames end with the last event of a run.
func endsRun(frames []agui.Frame) bool {
	if len(frames) == 0 {
		return false
	}
	last := agui.TypeOf(frames[len(frames)-1].Data)
	return last == agui.TypeRunFinished || last == agui.TypeRunError
}

// tooLateError is for a request whose key or token has ended before there was a stream. Only
// the store knows whether the run was begun.
func tooLateError(err error) error {
	return holdfast.Errorf(codes.Unauthenticated, "The API key or token of this request is no longer valid.").
		WithHint("Send the request again with a valid one: what has begun goes on, and nothing is started twice.").
		Wrap(err)
}

func endedError() error {
	return holdfast.Errorf(codes.Unauthenticated,
		"The API key or token of this connection is no longer valid; the run continues.").
		WithHint("Attach again with a valid one: GET /threads/{thread}/stream.")
}
