package thread

import (
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/store"
)

// The failure of reading a thread, as its owner may be told: which thread and which
// checkpoint, why, and what to do next. Which errors say that a thread cannot be read at all
// is decided here, for everybody who goes on with the next one.

// ReadUnlessMoved is ReadError for the error of a commit. It returns ErrConflict and
// ErrFenced as they are, so that the caller can decide again.
func ReadUnlessMoved(key store.ThreadKey, err error) error {
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) {
		return err
	}
	if errors.Is(err, store.ErrInvalid) && !isPublic(err) {
		return holdfast.Errorf(codes.InvalidInput,
			"These messages cannot be stored: an id is empty, too long or taken.").
			WithHint("Give each message an id of its own.").
			Wrap(err)
	}
	return ReadError(key, err)
}

// isPublic reports whether the error is safe to show as it is.
func isPublic(err error) bool {
	var pub *holdfast.Error
	return errors.As(err, &pub)
}

// ReadError turns an error of reading the thread into one that is safe to show: damaged
// data, a newer format and a thread that was deleted meanwhile each have a code; anything
// else counts as a store that does not answer. An error that is safe to show stays as it
// is. The key is zero where the error is about no single thread.
func ReadError(key store.ThreadKey, err error) error {
	switch {
	case isPublic(err):
		return err
	case errors.Is(err, store.ErrVersionTooNew):
		return tooNew(key, err)
	case errors.Is(err, ErrNegative):
		return checkpointInvalid(key, err)
	case Unreadable(err) && key == store.ThreadKey{}:
		return shareUnreadable(err)
	case Unreadable(err):
		return checkpointUnreadable(key, err)
	case errors.Is(err, store.ErrNotFound):
		return NotFound(key.Thread).Wrap(err)
	}
	return StoreError(err)
}

var (
	// ErrHole means that a message on the path is missing.
	ErrHole = errors.New("the message tree has a hole")
	// ErrNoBlob means that a blob that something refers to is missing.
	ErrNoBlob = errors.New("a blob is missing")
)

// Unreadable reports whether an error says that a stored thread, or a part of it, cannot
// be read by this version: it is damaged, cannot be right, or was written by a newer one.
// Asking again does not help, and other threads are not affected.
func Unreadable(err error) bool {
	for _, e := range []error{ErrUnreadable, store.ErrUnreadable, store.ErrVersionTooNew, ErrNegative, ErrHole,
		ErrNoBlob} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// atCheckpoint is an error of reading a checkpoint.
type atCheckpoint struct {
	id  string
	err error
}

func (e *atCheckpoint) Error() string { return "checkpoint " + e.id + ": " + e.err.Error() }

func (e *atCheckpoint) Unwrap() error { return e.err }

// AtCheckpoint says at which checkpoint an error occurred, so that ReadError can name it.
func AtCheckpoint(id string, err error) error {
	if err == nil {
		return nil
	}
	return &atCheckpoint{id, err}
}

// CounterError is an ErrNegative that says which counter it is.
type CounterError struct {
	Counter string // its name in the stored state
	Value   int    // that was found
}

// Error names the counter and the value.
func (e *CounterError) Error() string {
	return fmt.Sprintf("%v: %s is %d", ErrNegative, e.Counter, e.Value)
}

// Unwrap returns ErrNegative.
func (e *CounterError) Unwrap() error { return ErrNegative }

// StoreError says that the store does not answer, or that it cannot be read.
func StoreError(err error) error {
	if errors.Is(err, store.ErrUnreadable) && !isPublic(err) {
		return shareUnreadable(err)
	}
	return holdfast.Errorf(codes.StoreUnavailable, "The store cannot be reached at the moment.").
		WithHint("Try again; nothing was started.").Wrap(fmt.Errorf("store: %w", err))
}

// affected returns how a sentence about the thread begins that err was read from, and the
// error's details. what is the part of the thread that is meant.
func affected(key store.ThreadKey, what string, err error) (subject string, details map[string]any) {
	subject, details = "this thread", map[string]any{}
	if key.Thread != "" {
		subject, details["threadId"] = fmt.Sprintf("thread %q", key.Thread), key.Thread
	}
	var at *atCheckpoint
	if errors.As(err, &at) {
		what, details["checkpointId"] = fmt.Sprintf("Checkpoint %q", at.id), at.id
	}
	return what + " of " + subject, details
}

// hintUnreadable says what can be done about a thread that cannot be read.
const hintUnreadable = "Operators find out more with: holdfast check. DELETE /threads/{thread} removes the thread."

// tooNew says that only a newer version can read the thread.
func tooNew(key store.ThreadKey, err error) *holdfast.Error {
	subject, details := affected(key, "A part", err)
	versions := ""
	var newer *store.VersionError
	if errors.As(err, &newer) {
		versions = fmt.Sprintf(" (version %d, this server knows %d)", newer.Stored, newer.Known)
		details["version"], details["known"] = newer.Stored, newer.Known
	}
	e := holdfast.Errorf(codes.VersionTooNew,
		"%s was written by a newer version of the server%s; it was left untouched.", subject, versions).
		WithHint("Upgrade this server.").
		Wrap(err)
	e.Details = details
	return e
}

// checkpointInvalid says that the state can be read but cannot be right.
func checkpointInvalid(key store.ThreadKey, err error) *holdfast.Error {
	subject, details := affected(key, "The stored state", err)
	which := "a negative counter"
	var counter *CounterError
	if errors.As(err, &counter) {
		which = fmt.Sprintf("an invalid counter, %s: %d", counter.Counter, counter.Value)
		details["counter"], details["value"] = counter.Counter, counter.Value
	}
	e := holdfast.Errorf(codes.CheckpointInvalid, "%s has %s; no run can continue from it, and it was left untouched.",
		subject, which).
		WithHint(hintUnreadable).
		Wrap(err)
	e.Details = details
	return e
}

// checkpointUnreadable says that a stored value is damaged.
func checkpointUnreadable(key store.ThreadKey, err error) *holdfast.Error {
	subject, details := affected(key, "A part", err)
	e := holdfast.Errorf(codes.CheckpointUnreadable, "%s cannot be read; it was left untouched.", subject).
		WithHint(hintUnreadable).Wrap(err)
	e.Details = details
	return e
}

// stale says that the history is not the one that the head was written for.
func stale(key store.ThreadKey, has, expects int) *holdfast.Error {
	return holdfast.Errorf(codes.CheckpointStale,
		"Checkpoint is stale. Conversation has %d messages but checkpoint expects %d.", has, expects).
		WithHint("To go on with the history as it is, set forwardedProps.holdfast.allowStale to true.").
		With("actual", has).With("expected", expects).With("threadId", key.Thread)
}

// HintEmptyPost says how to continue a run that has stopped.
const HintEmptyPost = `POST the same threadId with "messages": [] and a new runId`

// CutOff says that a run ended because its server died, at the given iteration.
func CutOff(iteration int) *holdfast.Error {
	return holdfast.Errorf(codes.CutOff,
		"The server that ran this run died at iteration %d. Finished results are kept. To go on, %s.", iteration,
		HintEmptyPost)
}

// KeptChanging says that the thread moved each time a request was decided.
func KeptChanging() *holdfast.Error {
	return holdfast.Errorf(codes.CheckpointConflict, "The thread kept changing while this request was decided.").
		WithHint("Try again.")
}
