package store

import (
	"errors"
	"fmt"
)

// The errors a [Store] returns. Test for them with [errors.Is].
var (
	// ErrNotFound: there is no such thread, run, blob or checkpoint.
	ErrNotFound = errors.New("not found")
	// ErrFenced: the thread's fence is not the one the commit names, so somebody
	// else owns the thread now. The writer must stop and never retry.
	ErrFenced = errors.New("fenced: the thread has another owner")
	// ErrConflict: the fence is right (or both are new), but the head has moved
	// since it was read. Read it again and decide again.
	ErrConflict = errors.New("conflict: the head has moved")
	// ErrCursor: the log has no record with the cursor's number and tag. The reader
	// must resynchronize.
	ErrCursor = errors.New("the log does not hold this cursor")
	// ErrVersionTooNew: the data was written by a newer version of Holdfast.
	ErrVersionTooNew = errors.New("written by a newer version")
	// ErrUnreadable: the stored bytes cannot be trusted, because they are damaged. Their
	// thread is left as it is; nothing is made of them.
	ErrUnreadable = errors.New("the stored data cannot be read")
	// ErrRefused: the store answers, but writes nothing at the moment, for example because it
	// is full, or a replica. The same commit may succeed later. Stored data can be read,
	// unless reading says otherwise.
	ErrRefused = errors.New("the store refuses writes")
	// ErrStoreLocked: another process has the store open.
	ErrStoreLocked = errors.New("the store is in use by another process")
)

// VersionError is an ErrVersionTooNew that says which versions of what: a format, a codec
// or a layout, each of which counts on its own.
type VersionError struct {
	// The thing written by a newer version, such as "the head".
	What string
	// Stored is the version that was found, and Known the newest one that this program
	// reads.
	Stored, Known int
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s has version %d, this program reads up to %d: %v", e.What, e.Stored, e.Known,
		ErrVersionTooNew)
}

// Unwrap returns ErrVersionTooNew.
func (e *VersionError) Unwrap() error { return ErrVersionTooNew }
