// Package store is the contract between Holdfast and what keeps its threads. [Store] is the
// interface, divided into roles; the types beside it are what its methods take and return.
// Authors of a store need this package and the suite in agenttest/storetest, which tests
// everything that the comments here promise.
package store

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Store keeps threads. Every implementation passes the same conformance suite,
// agenttest/storetest, and package memstore is its executable specification.
//
// A store moves bytes and compares fences; it never parses the values it is given.
// All methods may be called concurrently. Values returned by a store belong to the
// caller; values passed to it must not be changed afterwards.
type Store interface {
	Committer
	Reader
	Directory
	Index
	Presence
	Notifier
	Ledger
	Hints
	// Close waits for writes in progress and releases the store.
	Close() error
}

// Committer writes.
type Committer interface {
	// Commit writes all of c or nothing. It returns ErrFenced if the thread's
	// fence is not c.Expect.Fence, and ErrConflict if the head has otherwise
	// moved; a commit that expects no fence has none to lose, so it gets
	// ErrConflict. A commit whose ID is already the head's ETag has succeeded
	// before (its reply was lost) and returns nil without writing. ErrInvalid is
	// for a commit that no head can take: see [Commit.Validate] and
	// Commit.Messages. After any other error, including that of a cancelled
	// context, it is unknown whether c was written: try again with the same ID.
	Commit(ctx context.Context, c *Commit) error
	// Post puts an item into the thread's inbox: a cancel or an answer, for the
	// owner to consume. It is the one unfenced write. An item whose ID is already
	// in the inbox is not added again. Returns ErrNotFound for an unknown thread.
	Post(ctx context.Context, key ThreadKey, item InboxItem) error
	// Delete removes the thread with everything in it, if its head is still at the
	// given position; ErrFenced and ErrConflict are as for Commit. A missing thread
	// has been deleted before, which is not an error. The zero Position, which no
	// readable head has, removes a thread whose head cannot be read.
	Delete(ctx context.Context, key ThreadKey, at Position) error
}

// Reader reads one thread. Its methods return ErrNotFound for an unknown
// thread, run or blob.
type Reader interface {
	// Head returns where the thread stands. If that cannot be read, the error wraps
	// ErrUnreadable or ErrVersionTooNew, and the Head has everything that is known: everything
	// but State if only that cannot be read, else the Key and the User. It is nil if it cannot
	// be told whose thread it is.
	Head(ctx context.Context, key ThreadKey) (*Head, error)
	// Messages returns every message of the thread's tree in commit order: a
	// parent before its children.
	Messages(ctx context.Context, key ThreadKey) ([]Message, error)
	// MessagesOf returns the messages of the thread's tree with these ids, in the order of
	// the ids. It returns ErrNotFound if one of them is not there. Long histories are read
	// in pieces with it, so it reads nothing else.
	MessagesOf(ctx context.Context, key ThreadKey, ids []string) ([]Message, error)
	// Records returns up to limit records after the cursor, in order. It returns
	// ErrCursor if the log has no record with the cursor's number and tag. An empty
	// result means that the cursor is at the end.
	Records(ctx context.Context, key ThreadKey, after Cursor, limit int) ([]Record, error)
	// Value returns the value of one kind and id: a run, a blob, a checkpoint.
	Value(ctx context.Context, key ThreadKey, kind Kind, id string) ([]byte, error)
	// ValuesOf returns the values of one kind with these ids, in the order of the ids, all as of
	// one moment. Those that are not there are left out.
	ValuesOf(ctx context.Context, key ThreadKey, kind Kind, ids []string) ([]Value, error)
	// Values returns up to limit values of one kind with ids before the given
	// one, newest (largest id) first. An empty before starts at the newest; limit 0
	// means no limit.
	Values(ctx context.Context, key ThreadKey, kind Kind, before string, limit int) ([]Value, error)
	// Inbox returns the items that are not consumed yet, oldest first.
	Inbox(ctx context.Context, key ThreadKey) ([]InboxItem, error)
	// Size returns how many bytes the thread takes in stored form, by what they are: a Kind,
	// SizeRecords or SizeMessages. Kinds that take none are left out. It may read the whole
	// thread.
	Size(ctx context.Context, key ThreadKey) (map[string]int64, error)
}

// The keys of [Reader.Size]'s result that are not kinds of values.
const (
	SizeRecords  = "records"
	SizeMessages = "messages"
)

// Directory finds threads. Its answers are hints: the head decides.
type Directory interface {
	// Threads returns up to limit heads (without State) of a principal's threads that were
	// last active before the given time (zero: all), the most recently active first, and those
	// of the same instant by thread id. A head that cannot be read has only its Key, its User,
	// the minute in which it was last active, and Unreadable. It is left out if it cannot be
	// told whose it is. An error that wraps ErrUnreadable says that threads are missing,
	// because the list is damaged; the others are still good.
	Threads(ctx context.Context, owner holdfast.Principal, before time.Time, limit int) ([]Head, error)
	// Owned returns the threads whose head names an owning process: those that
	// are running, and those that a process left behind when it died.
	Owned(ctx context.Context) ([]OwnedThread, error)
	// Walk returns about limit heads (without State) of all threads of all principals, in an
	// order of the store's choice, and the position from which the next call continues; next
	// is "" after the last. A thread that exists during the whole walk is returned at least
	// once. A page may be empty even if more follow. A head that cannot be read has only its
	// Key and Unreadable. An error that wraps ErrUnreadable says that threads are missing
	// whose names cannot be read; the page is still good.
	Walk(ctx context.Context, after string, limit int) (heads []Head, next string, err error)
	// Children returns the ids of up to limit threads whose first commit named this
	// one as their Parent, in order, starting after the given id.
	Children(ctx context.Context, parent ThreadKey, after string, limit int) ([]string, error)
}

// Presence says which processes live. Each has one lease, not one for each run. A store that
// can tell the death of a process from its silence says so before the lease ends.
type Presence interface {
	// Announce grants the process a lease of ttl from now, or extends its lease.
	Announce(ctx context.Context, process string, ttl time.Duration) error
	// Retire ends the process's lease now, and says that the process is gone. A process
	// that the store does not know is not an error.
	Retire(ctx context.Context, process string) error
	// Lease returns what the store knows of the process; the zero Lease if it knows
	// nothing.
	Lease(ctx context.Context, process string) (Lease, error)
	// HandOver tells the other processes that this one, whose lease has not ended, never
	// writes to the thread again, although the head still names it as the owner: one of
	// them is to take the thread over. It stores nothing. Nobody may hear it.
	HandOver(ctx context.Context, process string, key ThreadKey) error
	// OnDeparture calls f soon after another process than this one has left. Some
	// departures may be missed: then the head and the lease tell. f must not block. The
	// caller must call stop.
	OnDeparture(process string, f func(Departure)) (stop func())
}

// Departure says that a process has left one thread, or all that it owned.
type Departure struct {
	// Process is the process that has left.
	Process string
	// Thread is the thread that it has handed over. It is the zero key if the process is
	// gone, as its Lease says then.
	Thread ThreadKey
	// Retired means that the process has retired, instead of dying: it has handed over what
	// it ran.
	Retired bool
	// Heir means that the receiver is the one that is to take the thread over. At most one
	// process is the heir. The others do it only if it does not.
	Heir bool
}

// Lease is what a store knows of a process, by the store's clock.
type Lease struct {
	// Until is when the lease ends, or has ended. Each renewal moves it. It is zero if
	// there is none.
	Until time.Time
	// Left is how long the lease still lasts: zero or less if it has expired, or if there
	// is none.
	Left time.Duration
	// Gone means that the process is gone: it has retired, nobody but the caller can have
	// the store open, or the process had connections to the store and has none any more. A
	// lease that has only expired says less: the process was silent, perhaps because it
	// could not reach the store.
	Gone bool
}

// Alive reports whether the process counts as alive: the lease has not expired, and the
// process is not gone.
func (l Lease) Alive() bool { return l.Left > 0 && !l.Gone }

// Notifier wakes those who wait for a thread.
type Notifier interface {
	// Watch returns a channel that receives after a commit with records. One
	// wake-up may stand for several commits, and a wake-up may be spurious, but none
	// is lost between the call and stop. The caller must call stop.
	Watch(key ThreadKey) (wake <-chan struct{}, stop func())
	// OnPost calls f after each Post to any thread. The zero key means that posts
	// may have been missed, so any inbox may have items. Posts are rare and runs are
	// many, hence one listener for all threads instead of one for each. f must not
	// block. The caller must call stop.
	OnPost(f func(ThreadKey)) (stop func())
}
