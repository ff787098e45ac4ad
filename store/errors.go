package store

import "errors"

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
	// ErrUnreadable: the stored bytes cannot be trusted, because they are damaged.
	// What they belong to is left as it is; nothing is made of them.
	ErrUnreadable = errors.New("the stored data cannot be read")
	// ErrStoreLocked: another process has the store open.
	ErrStoreLocked = errors.New("the store is in use by another process")
)
