package holdfast

// The storage contract: Store and the six roles it is made of, the Commit that is the
// only way to change a thread, and the values that go in and come out. An
// implementation is correct if it passes agenttest/storetest.

import (
	"context"
	"errors"
	"fmt"
	"time"
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
	Presence
	Notifier
	Ledger
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
	// has been deleted before, which is not an error.
	Delete(ctx context.Context, key ThreadKey, at Position) error
}

// Reader reads one thread. Its methods return ErrNotFound for an unknown
// thread, run or blob.
type Reader interface {
	// Head returns where the thread stands.
	Head(ctx context.Context, key ThreadKey) (*Head, error)
	// Messages returns every message of the thread's tree in commit order: a
	// parent before its children.
	Messages(ctx context.Context, key ThreadKey) ([]StoredMessage, error)
	// Records returns up to limit records after the cursor, in order. It returns
	// ErrCursor if the log has no record with the cursor's number and tag. An empty
	// result means that the cursor is at the end.
	Records(ctx context.Context, key ThreadKey, after Cursor, limit int) ([]Record, error)
	// Value returns the value of one kind and id: a run, a blob, a checkpoint.
	Value(ctx context.Context, key ThreadKey, kind Kind, id string) ([]byte, error)
	// Values returns up to limit values of one kind with ids before the given
	// one, newest (largest id) first. An empty before starts at the newest; limit 0
	// means no limit.
	Values(ctx context.Context, key ThreadKey, kind Kind, before string, limit int) ([]Value, error)
	// Inbox returns the items that are not consumed yet, oldest first.
	Inbox(ctx context.Context, key ThreadKey) ([]InboxItem, error)
	// Size returns how many bytes the thread takes in stored form, by what they are:
	// a Kind, SizeRecords or SizeMessages. What takes none is left out. It may read
	// the whole thread.
	Size(ctx context.Context, key ThreadKey) (map[string]int64, error)
}

// The keys of [Reader.Size]'s result that are not kinds of values.
const (
	SizeRecords  = "records"
	SizeMessages = "messages"
)

// Directory finds threads. Its answers are hints: the head decides.
type Directory interface {
	// Threads returns up to limit heads (without State) of a principal's threads
	// that were last active before the given time (zero: all), the most recently
	// active first, and those of the same instant by thread id.
	Threads(ctx context.Context, owner Principal, before time.Time, limit int) ([]Head, error)
	// Owned returns the threads whose head names an owning process: those that
	// are running, and those that a process left behind when it died.
	Owned(ctx context.Context) ([]OwnedThread, error)
	// Walk returns about limit heads (without State) of all threads of all
	// principals, in an order of the store's choice, and the position from which the
	// next call continues; next is "" after the last. A thread that exists during the
	// whole walk is returned at least once. A page may be empty even if more follow.
	Walk(ctx context.Context, after string, limit int) (heads []Head, next string, err error)
	// Children returns the ids of up to limit threads whose first commit named this
	// one as their Parent, in order, starting after the given id.
	Children(ctx context.Context, parent ThreadKey, after string, limit int) ([]string, error)
}

// Presence is the lease: one per process, not one per run.
type Presence interface {
	// Announce grants the process a lease of ttl from now, or extends its lease.
	Announce(ctx context.Context, process string, ttl time.Duration) error
	// Retire ends the process's lease now.
	Retire(ctx context.Context, process string) error
	// Alive reports whether the process holds a lease that has not expired.
	Alive(ctx context.Context, process string) (bool, error)
}

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

// Head is where a thread stands. It moves in every commit.
type Head struct {
	// Key names the thread.
	Key ThreadKey
	// User owns the thread within its tenant.
	User string
	// Fence says who may write.
	Fence Fence
	// Process is the owner's process id; empty when nobody runs the thread.
	Process string
	// ETag is the id of the last commit.
	ETag string
	// Next is the number that the next record will get; 1 in a new thread.
	Next uint64
	// UpdatedAt is when the last commit was made, by the committer's clock.
	UpdatedAt time.Time
	// State is the rest, opaque to the store: leaf message, phase, iteration,
	// middleware state.
	State []byte
}

// Position returns what a commit that follows this head must expect.
func (h *Head) Position() Position {
	return Position{Fence: h.Fence, Next: h.Next, ETag: h.ETag}
}

// Position is the head that a commit builds on. A Position with only Next set, to 1,
// expects that the thread does not exist.
type Position struct {
	// Fence is the head's fence; any other means that the thread has a new owner.
	Fence Fence
	// Next is the head's next record number.
	Next uint64
	// ETag is the id of the head's last commit.
	ETag string
}

// Commit is one atomic step of a thread.
type Commit struct {
	// Key names the thread.
	Key ThreadKey
	// ID is random and new for each commit; it becomes the head's ETag. A retry
	// after a lost reply uses the same ID.
	ID string
	// Expect is the head this commit builds on.
	Expect Position
	// User becomes the head's: the owner of the thread within its tenant.
	User string
	// Fence becomes the head's: Expect.Fence, or a new one to take the thread over.
	Fence Fence
	// Process becomes the head's; empty to release the thread.
	Process string
	// UpdatedAt becomes the head's.
	UpdatedAt time.Time
	// State becomes the head's State; nil leaves it as it is.
	State []byte
	// Records are appended to the log, numbered from Expect.Next and tagged with
	// Fence.Tag().
	Records [][]byte
	// Messages are added to the tree. Their ids must be new in the thread, and their
	// parents in the tree or earlier in this list; otherwise the commit fails with
	// ErrInvalid.
	Messages []StoredMessage
	// Forget removes messages from the tree, by id, before Messages are added. No
	// remaining message should have one of them as its parent.
	Forget []string
	// Put sets values. The order is Clear, Put, Delete, Keep.
	Put []Value
	// Delete removes values, after Put.
	Delete []ValueID
	// Clear removes all values of these kinds, before Put.
	Clear []Kind
	// Keep trims a kind to this many of its newest (largest) ids, after Delete.
	Keep map[Kind]int
	// InboxSeen removes the inbox items up to and including this number.
	InboxSeen uint64
	// Trim removes the records up to and including this number, which must be the
	// last one of an earlier commit. A cursor of a removed record gets ErrCursor.
	Trim uint64
	// Parent is a thread of the same tenant that lists this one among its
	// children. Only the commit that creates a thread has one.
	Parent string
}

// MaxName is the maximum length, in bytes, of a tenant, user, thread, process or id
// in a store. Names are arbitrary bytes.
const MaxName = 1024

// ErrInvalid is what a [Store] returns for a commit or an item that it can never
// write. It is a mistake of the caller: neither retrying nor reading the head again
// helps.
var ErrInvalid = errors.New("invalid commit")

// Validate returns ErrInvalid if c has no ID or no thread, has a message without an
// id or a name longer than [MaxName], trims its own records, or has a Parent without
// creating a thread. Every store calls it first.
func (c *Commit) Validate() error {
	if c.ID == "" || c.Key.Thread == "" {
		return fmt.Errorf("a commit needs an id and a thread: %w", ErrInvalid)
	}
	if c.Trim >= max(c.Expect.Next, 1) {
		return fmt.Errorf("a commit can trim only records of earlier commits: %w", ErrInvalid)
	}
	if c.Parent != "" && (c.Expect != Position{Next: 1} || c.Parent == c.Key.Thread) {
		return fmt.Errorf("only the first commit of a thread may name a parent, which must be another thread: %w", ErrInvalid)
	}
	names := []string{c.Key.Tenant, c.Key.Thread, c.ID, c.User, c.Process, c.Fence.Nonce, c.Parent}
	for i := range c.Messages {
		if c.Messages[i].ID == "" {
			return fmt.Errorf("a message needs an id: %w", ErrInvalid)
		}
		names = append(names, c.Messages[i].ID, c.Messages[i].Parent)
	}
	for i := range c.Put {
		names = append(names, string(c.Put[i].Kind), c.Put[i].ID)
	}
	return validateNames(names...)
}

// Validate returns ErrInvalid if the item's ID is longer than [MaxName]. Every
// store calls it.
func (i *InboxItem) Validate() error { return validateNames(i.ID) }

func validateNames(names ...string) error {
	for _, n := range names {
		if len(n) > MaxName {
			return fmt.Errorf("the name %.32q… has %d bytes, but only %d are allowed: %w", n, len(n), MaxName, ErrInvalid)
		}
	}
	return nil
}

// Kind is a family of values of a thread.
type Kind string

// The kinds of values that the server stores.
const (
	KindRun        Kind = "run"        // how a run began, by run id
	KindOutcome    Kind = "outcome"    // how a run ended, by run id
	KindBlob       Kind = "blob"       // immutable content the head refers to
	KindCheckpoint Kind = "checkpoint" // by a fixed-width number
	KindIntent     Kind = "intent"     // by tool call id
	KindPending    Kind = "pending"    // pending writes, by tool call id
	KindLog        Kind = "log"        // the log of a run that has ended, by run id
	KindReuse      Kind = "reuse"      // results that calls may get instead of running
)

// Kinds returns all kinds that the server stores. A store that keeps each kind
// separately needs them to delete a thread.
func Kinds() []Kind {
	return []Kind{KindRun, KindOutcome, KindBlob, KindCheckpoint, KindIntent, KindPending, KindLog, KindReuse}
}

// ConflictError is an ErrConflict or ErrFenced that says what the commit expected
// and what it found.
type ConflictError struct {
	// Key names the thread.
	Key ThreadKey
	// Expected is the head that the commit builds on.
	Expected Position
	// Actual is where the head stands; if the thread does not exist, the Position
	// with only Next set, to 1.
	Actual Position
}

// Error names both ETags.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("commit to thread %s: expected ETag %q, actual ETag %q: %v", e.Key, e.Expected.ETag, e.Actual.ETag, e.Unwrap())
}

// Unwrap returns ErrFenced if the fence has moved and the commit named one, else
// ErrConflict.
func (e *ConflictError) Unwrap() error {
	if e.Expected.Fence != e.Actual.Fence && e.Expected.Fence != (Fence{}) {
		return ErrFenced
	}
	return ErrConflict
}

// Durable is a [Store] that can say what its commits survive.
type Durable interface {
	// Inspect looks at how the store is currently set up.
	Durability(ctx context.Context) (Durability, error)
}

// Durability is what a commit that has returned survives.
type Durability struct {
	// Level is the strongest level that holds.
	Level Level
	// Notes are what an operator should know: why the level is not higher, or what is
	// at risk.
	Notes []string
	// Evicts: the store may discard data when it is full, so it must not be used.
	Evicts bool
	// Policy is the store's own name for its eviction policy; empty if it has none.
	Policy string
}

// Level is a level of durability; each one includes those before it.
type Level string

// The levels.
const (
	// LevelNone: nothing survives the end of this process.
	LevelNone Level = "none"
	// LevelProcess: commits survive the end of this process, but not necessarily a
	// crash of the machine or of the store.
	LevelProcess Level = "process"
	// LevelMachine: commits survive a crash of the machine.
	LevelMachine Level = "machine"
)

// ValueID names a value.
type ValueID struct {
	// Kind is the family of the value.
	Kind Kind
	// ID is unique within the thread and the kind.
	ID string
}

// Value is a value with its name.
type Value struct {
	// Kind is the family of the value.
	Kind Kind
	// ID is unique within the thread and the kind.
	ID string
	// Data is the value itself, opaque to the store.
	Data []byte
}

// StoredMessage is a message in a thread's tree.
type StoredMessage struct {
	// ID is unique within the thread.
	ID string
	// Parent is the id of the message before it; empty for the first.
	Parent string
	// Data is the message itself, opaque to the store.
	Data []byte
}

// Record is one event in a thread's log.
type Record struct {
	Cursor
	// Data is the event itself, opaque to the store.
	Data []byte
}

// InboxItem is a message to the owner of a thread.
type InboxItem struct {
	// ID makes posting idempotent.
	ID string
	// Number is assigned by the store: items are numbered from 1 in order of arrival.
	Number uint64
	// Data is the message itself, opaque to the store.
	Data []byte
}

// OwnedThread is a thread with an owner.
type OwnedThread struct {
	// Key names the thread.
	Key ThreadKey
	// Process is the id of the process that owns it, whether or not it is alive.
	Process string
}
