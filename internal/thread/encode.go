package thread

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/store"
)

var (
	// ErrUnreadable means that the bytes are not what any version has written.
	ErrUnreadable = errors.New("a stored value cannot be read")
	// ErrNegative means that a counter is negative.
	ErrNegative = errors.New("a checkpoint has a negative counter")
)

// MustJSON encodes one of this package's own stored values, which can always be encoded.
func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("thread: encode %T: %v", v, err))
	}
	return b
}

// Decode reads one of this package's stored values into v. It returns ErrUnreadable, or
// [store.ErrVersionTooNew] for a format that this version does not know.
func Decode(b []byte, v any) error {
	var f struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("read a stored value: %w: %w", ErrUnreadable, err)
	}
	if f.Format > Format {
		return &store.VersionError{What: "a value", Stored: f.Format, Known: Format}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read a stored value: %w: %w", ErrUnreadable, err)
	}
	return nil
}

// Format is the version of the values that this package stores. Data of every earlier
// format is read; a newer format is refused and left untouched. Format 2 stores the logs
// of finished runs apart (log.go), which a reader of format 1 would take for lost.
// Format 3 adds the states of the middleware, which a reader of format 2 would drop when
// it writes. Format 4 is stored in frames with a checksum (package frame), which a reader
// of format 3 refuses as a codec it does not know. Format 5 adds incarnations (key.go),
// without which a reader of format 4 would give calls other idempotency keys. Format 6 adds
// what happened before a history branched by itself (happened.go), without which a reader of
// format 5 would make calls again, and the titles of threads, which it would drop. Format 7
// adds the model that a run has fallen back to, which a reader of format 6 would drop, so
// that the run would change its provider in the middle, and recorded summaries and cuts,
// which it would not know for what they are, so that it would send a model again what that
// has refused as too long. It also adds an answer that was taken back because it does not
// have its form, and which message is the result (misfit.go), which a reader of format 6
// would drop, so that the model would be asked as if for the first time and the run shown
// without its result, and images that a model made (media.go), which it would not send back.
// Format 8 adds calls that are finished from outside (outside.go), and that a call has kept
// something, is in doubt in a living process, or is to be told that its question was declined
// (call.go): a reader of format 7 would make all of these calls again, and drop what is known
// of them. It also adds what intents say of their tools, and the trace of a run (run.go).
// Format 9 adds the revision of the agent that a run began with (run.go): a reader of format
// 8 would take over a run that waits for a process with that revision. Format 10 changes only how
// Redis holds a thread (package redisstore, layout 2) and has no new members. Format 11 adds
// answers that have failed (failed.go), which a reader of format 10 would show to models.
//
// What is written says the format that it needs. A state, its checkpoints and its run have
// the format that all processes agreed to write when the run began or was taken over
// (package dataformat); what no newer format has changed is written as FormatBefore.
const Format = 11

// FormatBefore is the format of the version before. This one can write it, and those between.
const FormatBefore = 8
