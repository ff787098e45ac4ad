package loop

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The errors of the engine, and the results that it reports to the observer. Each error
// says what to do next. The errors of a decision are in package decide, those of reading
// a thread in package thread.

// publicError returns what a client may read of an error.
func publicError(err error) *holdfast.Error {
	var m *holdfast.ModelError
	if errors.As(err, &m) {
		text := m.Public
		if text == "" {
			text = "The model could not answer."
		}
		return holdfast.Errorf(codes.ModelFailed, "%s", text).WithHint("%s", hint(m.Kind)).Wrap(err)
	}
	return holdfast.AsError(err)
}

// hint says what to do about a model that has failed in this way.
func hint(kind failure.Kind) string {
	again := "To try again, " + thread.HintEmptyPost + "."
	switch kind {
	case failure.Quota, failure.Auth:
		return "The server's log has the provider's words. " + again
	case failure.TooLong:
		return "Begin a new thread, fork this one at an earlier message, or give the agent a history window. " + again
	case failure.Refused:
		return "Go back to before the last message (POST /threads/{thread}/rewind) and send another one. " + again
	case failure.Invalid:
		return "The same request will be refused again; the server's log has the provider's words. " + again
	}
	return again
}

// modelResult names the result of one try of a model call for the observer.
func modelResult(ctx context.Context, err error) observe.ModelResult {
	switch {
	case err == nil:
		return observe.ModelSuccess
	case ctx.Err() != nil,
		errors.Is(err, journal.ErrClosed),
		errors.Is(err, store.ErrFenced),
		errors.Is(err, store.ErrConflict):
		return observe.ModelCancelled
	case errors.Is(err, holdfast.ErrTruncated):
		return observe.ModelTruncated
	}
	return observe.ModelFailed
}

// toolResult names the result of a started tool call for the observer, by the contexts of
// the call and of its run.
func toolResult(call, run context.Context, f *finished) observe.ToolResult {
	var ask *holdfast.Interrupt
	switch {
	case isHandedOut(f.err), errors.Is(context.Cause(call), errResultCame):
		return observe.ToolOutside
	case errors.As(f.err, &ask):
		return observe.ToolAsked
	case f.err != nil && run.Err() != nil:
		return observe.ToolCancelled
	case f.err != nil, f.result.Failed:
		return observe.ToolFailed
	}
	return observe.ToolSuccess
}

func errThreadTooLarge(has, limit int64) *holdfast.Error {
	return holdfast.Errorf(codes.ThreadTooLarge, "This thread takes %d bytes, %d are allowed; nothing was lost.", has,
		limit).
		WithHint("Prune it (POST /threads/{thread}/prune), fork it at a message, or begin a new thread.").
		With("bytes", has).
		With("limit", limit)
}
