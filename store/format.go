package store

import "context"

// FormatKeeper is a [Store] that processes of different versions may have open at the same
// time. It keeps the data format that all of them write, so that each can read what the
// others have written. Into a Store that is not one, a process writes the format of the
// version before, unless it is told that all others read a newer one.
type FormatKeeper interface {
	// AgreeFormat says what a process, which has a lease, reads, and returns the format that
	// it is to write. All of it happens at once:
	//
	//   - In a store without a format, the format is terms.Knows, or terms.Reads if that is 0.
	//   - A format that is less than terms.Knows becomes that: the store has lost what this
	//     process was told.
	//   - If terms.Wants is more than the format, it becomes the format, unless a process
	//     with a lease that lasts reads less.
	//
	// A process that reads less than the format gets a [VersionError]. It must not write.
	AgreeFormat(ctx context.Context, process string, terms FormatTerms) (Formats, error)
	// Formats returns the store's format, and what each process with a lease that lasts
	// reads.
	Formats(ctx context.Context) (Formats, error)
}

// FormatTerms is what a process says about data formats. They are numbers from 1, of which
// the larger one is the newer format.
type FormatTerms struct {
	// Reads is the newest format that the process reads. It reads every earlier one, and
	// writes Reads and the format of the version before.
	Reads int
	// Wants is the format that it asks for, at most Reads; 0 for none.
	Wants int
	// Knows is the format that it was told the last time; 0 if it never was.
	Knows int
}

// Formats is the data format of a store, and who reads which.
type Formats struct {
	// Write is the format that every process writes; 0 if none has been agreed on.
	Write int
	// Reads is the newest format that a process reads, by process; 0 for one that has yet to
	// say it. AgreeFormat has only those that hold back the format it was asked for.
	Reads map[string]int
}
