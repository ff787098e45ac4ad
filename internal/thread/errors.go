package thread

import (
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

// ReadUnlessMoved is readError for a commit, which may also be refused.
func ReadUnlessMoved(err error) error {
	var pub *holdfast.Error
	if errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrFenced) || errors.As(err, &pub) {
		return err
	}
	if errors.Is(err, holdfast.ErrInvalid) {
		return holdfast.Errorf(holdfast.CodeInvalidInput, "These messages cannot be stored: an id is empty, too long or taken.").
			WithHint("Give each message an id of its own.").Wrap(err)
	}
	return ReadError(err)
}

func ReadError(err error) error {
	switch {
	case errors.Is(err, holdfast.ErrVersionTooNew):
		return tooNew(err)
	case errors.Is(err, ErrNegative):
		return checkpointInvalid(err)
	case errors.Is(err, ErrUnreadable):
		return checkpointUnreadable(err)
	}
	return StoreError(err)
}

func StoreError(err error) error {
	return holdfast.Errorf(holdfast.CodeStoreUnavailable, "The store cannot be reached at the moment.").
		WithHint("Try again; nothing was started.").Wrap(fmt.Errorf("store: %w", err))
}

// NotFound is the same for a thread that does not exist and one that
// is somebody else's.
func NotFound(thread string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeNotFound, "There is no thread %q.", thread).
		WithHint("GET /threads lists yours.")
}

func RunNotFound(thread, run string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeNotFound, "There is no run %q in thread %q.", run, thread).
		WithHint("GET /threads/%s names its last run.", thread)
}

func CheckpointNotFound(thread, id string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeNotFound, "There is no checkpoint %q in thread %q.", id, thread).
		WithHint("GET /threads/{thread}/checkpoints lists those that are kept.").With("checkpointId", id)
}

func tooNew(err error) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeVersionTooNew, "This thread was written by a newer version of the server; it was left untouched.").
		WithHint("Upgrade this server.").Wrap(err)
}

func checkpointInvalid(err error) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointInvalid, "This thread's stored state has a negative counter, so it is not gone on with; it was left untouched.").
		WithHint("Operators look at it with: holdfast inspect.").Wrap(err)
}

func checkpointUnreadable(err error) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointUnreadable, "A part of this thread's stored state cannot be read; it was left untouched.").
		WithHint("Operators look at it with: holdfast check.").Wrap(err)
}

// stale is about a history that is not the one the head was written for.
func stale(has, expects int) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointStale,
		"Checkpoint is stale. Conversation has %d messages but checkpoint expects %d.", has, expects).
		WithHint("To go on with the history as it is, set forwardedProps.holdfast.allowStale to true.").
		With("actual", has).With("expected", expects)
}

const HintEmptyPost = `POST the same threadId with "messages": [] and a new runId`

// PublicText is a person's text of an error: RUN_ERROR has no place for a hint
// of its own.
func PublicText(e *holdfast.Error) string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " " + e.Hint
}

func CutOff(iteration int) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCutOff,
		"The server that ran this run died at iteration %d. Finished results are kept. To go on, %s.", iteration, HintEmptyPost)
}

func KeptChanging() *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointConflict, "The thread kept changing while this request was decided.").
		WithHint("Try again.")
}
