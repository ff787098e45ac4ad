package filestore

import (
	"log/slog"
	"time"
)

// Options are the choices of [Open]; the zero value is right for a server.
type Options struct {
	// LockTimeout is how long to wait for another process to let go of the
	// directory; 0 means one second.
	LockTimeout time.Duration
	// ReadOnly opens a store that is there for reading. Nothing in the directory changes, and
	// commits are refused. The intact parts of a damaged store can be read: Walk says if
	// something is missing.
	ReadOnly bool
	// Log is told what operators should know; nil: nobody is.
	Log *slog.Logger

	memTable uint64 // 0 means memTableSize; tests have less to write until it is full
	// unchecked leaves the comparison with the inventory out, so that a test can show what
	// becomes of a damaged folder then.
	unchecked bool
}
