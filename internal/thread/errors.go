package thread

import (
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/store"
)

// ReadUnlessMoved is ReadError for the error of a commit. It returns ErrConflict,
// ErrFenced and public errors as they are, so that the caller can decide again.
func ReadUnlessMoved(err error) error {
	var pub *holdfast.Error
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) || errors.As(err, &pub) {
		return err
	}
	if errors.Is(err, store.ErrInvalid) {
		return holdfast.Errorf(codes.InvalidInput, "These messages cannot be stored: an id is empty, too long or taken.").
			WithHint("Give each message an id of its own.").Wrap(err)
	}
	return ReadError(err)
}

// ReadError turns an error of reading a thread into one that is safe to show: damaged
// data and a newer format each have a code; anything else counts as a store that does
// not answer.
func ReadError(err error) error {
	switch {
	case errors.Is(err, store.ErrVersionTooNew):
		return tooNew(err)
	case errors.Is(err, ErrNegative):
		return checkpointInvalid(err)
	case errors.Is(err, ErrUnreadable), errors.Is(err, store.ErrUnreadable):
		return checkpointUnreadable(err)
	}
	return StoreError(err)
}

// StoreError says that the store does not answer.
func StoreError(err error) error {
	return holdfast.Errorf(codes.StoreUnavailable, "The store cannot be reached at the moment.").
		WithHint("Try again; nothing was started.").Wrap(fmt.Errorf("store: %w", err))
}

// NotFound says that there is no such thread. It is the same for a thread that does not
// exist and for one that belongs to somebody else.
func NotFound(thread string) *holdfast.Error {
	return holdfast.Errorf(codes.NotFound, "There is no thread %q.", thread).
		WithHint("GET /threads lists yours.")
}

// RunNotFound says that the thread has no such run.
func RunNotFound(thread, run string) *holdfast.Error {
	return holdfast.Errorf(codes.NotFound, "There is no run %q in thread %q.", run, thread).
		WithHint("GET /threads/%s names its last run.", thread)
}

// CheckpointNotFound says that the thread has no such checkpoint, or keeps it no longer.
func CheckpointNotFound(thread, id string) *holdfast.Error {
	return holdfast.Errorf(codes.NotFound, "There is no checkpoint %q in thread %q.", id, thread).
		WithHint("GET /threads/{thread}/checkpoints lists those that are kept.").With("checkpointId", id)
}

// tooNew says that only a newer version can read the thread.
func tooNew(err error) *holdfast.Error {
	return holdfast.Errorf(codes.VersionTooNew, "This thread was written by a newer version of the server; it was left untouched.").
		WithHint("Upgrade this server.").Wrap(err)
}

// checkpointInvalid says that the state can be read but cannot be right.
func checkpointInvalid(err error) *holdfast.Error {
	return holdfast.Errorf(codes.CheckpointInvalid, "This thread's stored state has a negative counter, so no run can continue from it; it was left untouched.").
		WithHint("Operators look at it with: holdfast inspect.").Wrap(err)
}

// checkpointUnreadable says that a stored value is damaged.
func checkpointUnreadable(err error) *holdfast.Error {
	return holdfast.Errorf(codes.CheckpointUnreadable, "A part of this thread's stored state cannot be read; it was left untouched.").
		WithHint("Operators look at it with: holdfast check.").Wrap(err)
}

// stale says that the history is not the one that the head was written for.
func stale(has, expects int) *holdfast.Error {
	return holdfast.Errorf(codes.CheckpointStale,
		"Checkpoint is stale. Conversation has %d messages but checkpoint expects %d.", has, expects).
		WithHint("To go on with the history as it is, set forwardedProps.holdfast.allowStale to true.").
		With("actual", has).With("expected", expects)
}

// HintEmptyPost says how to continue a run that has stopped.
const HintEmptyPost = `POST the same threadId with "messages": [] and a new runId`

// PublicText returns an error's message and hint as one text, because RUN_ERROR has no
// field for a hint.
func PublicText(e *holdfast.Error) string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " " + e.Hint
}

// CutOff says that a run ended because its server died, at the given iteration.
func CutOff(iteration int) *holdfast.Error {
	return holdfast.Errorf(codes.CutOff,
		"The server that ran this run died at iteration %d. Finished results are kept. To go on, %s.", iteration, HintEmptyPost)
}

// KeptChanging says that the thread moved each time a request was decided.
func KeptChanging() *holdfast.Error {
	return holdfast.Errorf(codes.CheckpointConflict, "The thread kept changing while this request was decided.").
		WithHint("Try again.")
}
