package store

import "context"

// Roster is a [Store] in which processes that have it open at the same time say what they can do, so
// that one which cannot go on with a run leaves it to one that can. Into a Store that is not one,
// nothing is said, and no process knows of any other that could.
type Roster interface {
	// Describe keeps what a process, which has a lease, says of itself, until it says something
	// else or has no lease any more. It returns [ErrInvalid] for more than [MaxDescription] bytes.
	Describe(ctx context.Context, process string, about []byte) error
	// Described returns what each process with a lease that lasts, and that is not gone, has said
	// of itself; nil for one that has said nothing, because it is of a version that does not.
	Described(ctx context.Context) (map[string][]byte, error)
}

// Census is a [Store] that knows how many processes have it open, without asking for each.
type Census interface {
	// Census returns how many processes have a lease that lasts, as far as that is known, and 0 if it
	// is not; and whether one of them is not to be seen. That one may be dead, or of a kind that is
	// never seen.
	Census() (living int, absent func(process string) bool)
}

// MaxDescription is how long what a process says of itself may be, in bytes.
const MaxDescription = 1 << 20
