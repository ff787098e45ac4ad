package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps threads. Every implementation passes the same conformance suite,
// agenttest/storetest, and package memstore is its executable specification.
//
// A store moves bytes and compares fences; it never parses the values it is
// given. All methods may be called concurrently. Values that a store returns
// belong to the caller; values given to it must not be changed afterwards.
type Store interface {
	Committer
	Reader
	Directory
	Presence
	Notifier
	Ledger
	// Close waits for writes under way and releases the store.
	Close() error
}

// Committer writes.
type Committer interface {
	// Commit writes all of c or nothing. It returns ErrFenced if the thread's
	// fence is not c.Expect.Fence, and ErrConflict if the head has otherwise
	// moved; a commit that expects no fence holds none that it could lose, so it
	// gets ErrConflict. A commit whose ID is already the head's ETag has
	// succeeded before (its reply was lost) and returns nil without writing.
	// ErrInvalid is for a commit that no head can take: see [Commit.Validate] and
	// Commit.Messages. After any other error, that of a cancelled context
	// included, it is unknown whether c was written: try again with the same ID.
	Commit(ctx context.Context, c *Commit) error
	// Post puts an item into the thread's inbox. It is the one unfenced write:
	// a cancel or an answer, for the owner to consume. An item whose ID is
	// already there, not consumed yet, is not added again. Returns ErrNotFound
	// for an unknown thread.
	Post(ctx context.Context, key ThreadKey, item InboxItem) error
	// Delete removes everything of the thread, if its head is still at the given
	// position: ErrFenced and ErrConflict are as for Commit. A thread that is not
	// there has been deleted before, which is no error.
	Delete(ctx context.Context, key ThreadKey, at Position) error
}

// Reader reads one thread. Its methods return ErrNotFound for an unknown
// thread, run or blob.
type Reader interface {
	// Head returns where the thread stands.
	Head(ctx context.Context, key ThreadKey) (*Head, error)
	// Messages returns every message of the thread's tree in the order in which
	// they were committed: a parent before its children.
	Messages(ctx context.Context, key ThreadKey) ([]StoredMessage, error)
	// Records returns up to limit records after the cursor, in order. It returns
	// ErrCursor if the log does not hold the record that the cursor names, with
	// its tag. An empty result means that the cursor is at the end.
	Records(ctx context.Context, key ThreadKey, after Cursor, limit int) ([]Record, error)
	// Value returns the value of one kind and id: a run, a blob, a checkpoint.
	Value(ctx context.Context, key ThreadKey, kind Kind, id string) ([]byte, error)
	// Values returns up to limit values of one kind with ids before the given
	// one, newest (largest id) first; before "" is from the newest, limit 0 is
	// all of them.
	Values(ctx context.Context, key ThreadKey, kind Kind, before string, limit int) ([]Value, error)
	// Inbox returns the items that are not consumed yet, oldest first.
	Inbox(ctx context.Context, key ThreadKey) ([]InboxItem, error)
	// Size returns how many bytes the thread takes, by what they are: a Kind,
	// SizeRecords or SizeMessages; what takes none is left out. The bytes are those
	// of the values as they are stored. It may read all of the thread.
	Size(ctx context.Context, key ThreadKey) (map[string]int64, error)
}

// What [Reader.Size] tells beside the kinds of values.
const (
	SizeRecords  = "records"
	SizeMessages = "messages"
)

// Directory finds threads. Its answers are hints: the head decides.
type Directory interface {
	// Threads returns up to limit heads (without State) of a principal's
	// threads, last active first (of the same instant, by thread id), of those
	// active before the given time (zero: from the newest).
	Threads(ctx context.Context, owner Principal, before time.Time, limit int) ([]Head, error)
	// Owned returns the threads whose head names an owning process: those that
	// run, and those that a process left behind when it died.
	Owned(ctx context.Context) ([]OwnedThread, error)
	// Walk returns about limit heads (without State) of all threads of all
	// principals, in an order of the store's choice, and where the next call goes
	// on; next is "" after the last. A thread that is there during the whole walk is
	// returned at least once. A page may be empty although others follow.
	Walk(ctx context.Context, after string, limit int) (heads []Head, next string, err error)
	// Children returns up to limit threads whose first commit named this one as
	// their Parent, by their ids, those after the given id.
	Children(ctx context.Context, parent ThreadKey, after string, limit int) ([]string, error)
}

// Presence is the lease: one per process, not one per run.
type Presence interface {
	// Announce says that the process is alive for ttl from now.
	Announce(ctx context.Context, process string, ttl time.Duration) error
	// Retire ends the process's lease now.
	Retire(ctx context.Context, process string) error
	// Alive reports whether the process's lease has not run out.
	Alive(ctx context.Context, process string) (bool, error)
}

// Notifier wakes those who wait for a thread.
type Notifier interface {
	// Watch returns a channel that receives after a commit with records.
	// Several commits may be one wake-up, and a wake-up may be spurious; none is
	// lost between the call and stop. The caller must call stop.
	Watch(key ThreadKey) (wake <-chan struct{}, stop func())
	// OnPost has f called after each Post to any thread. The zero key means that
	// some may have been missed: any inbox may have items. Posts are rare and
	// runs are many, so there is one listener for all instead of one for each. f
	// must not block. The caller must call stop.
	OnPost(f func(ThreadKey)) (stop func())
}

// Head is where a thread stands. It moves in every commit.
type Head struct {
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

// Position is the head that a commit builds on. The zero Position with Next 1
// expects that the thread does not exist.
type Position struct {
	Fence Fence
	Next  uint64
	ETag  string
}

// Commit is one atomic step of a thread.
type Commit struct {
	Key ThreadKey
	// ID is random and new for each commit; it becomes the head's ETag. A retry
	// after a lost reply uses the same ID.
	ID string
	// Expect is the head this commit builds on.
	Expect Position
	// User, Fence, Process and UpdatedAt become the head's.
	User      string
	Fence     Fence
	Process   string
	UpdatedAt time.Time
	// State becomes the head's State; nil leaves it as it is.
	State []byte
	// Records are appended to the log, numbered from Expect.Next on and tagged
	// with Fence.Tag().
	Records [][]byte
	// Messages are added to the tree. Their ids are new in the thread and their
	// parents are in the tree or before them in this list; otherwise the commit
	// is ErrInvalid.
	Messages []StoredMessage
	// Forget removes messages from the tree, by their ids, before Messages are
	// added. Nothing that stays should have one of them as its parent.
	Forget []string
	// Put and Delete set and remove values, in this order.
	Put    []Value
	Delete []ValueID
	// Clear removes all values of these kinds, before Put.
	Clear []Kind
	// Keep trims kinds to their newest (largest) ids, after Delete.
	Keep map[Kind]int
	// InboxSeen removes the inbox items up to this number.
	InboxSeen uint64
	// Trim removes the records up to this number, which is the last one of a commit
	// before this one. Cursors of removed records are ErrCursor.
	Trim uint64
	// Parent is a thread of the same tenant that lists this one among its
	// children. Only the commit that creates a thread has one.
	Parent string
}

// MaxName is the length, in bytes, of the longest tenant, user, thread,
// process or id that a store keeps. Names are arbitrary bytes.
const MaxName = 1024

// ErrInvalid is what a [Store] returns for a commit or an item that it can
// never write. It is a mistake of the caller: neither a retry nor reading the
// head again helps.
var ErrInvalid = errors.New("invalid commit")

// Validate returns ErrInvalid if c has no ID or no thread, a message without
// an id, or a name that is longer than [MaxName]. Every store calls it first.
func (c *Commit) Validate() error {
	if c.ID == "" || c.Key.Thread == "" {
		return fmt.Errorf("a commit needs an id and a thread: %w", ErrInvalid)
	}
	if c.Trim >= max(c.Expect.Next, 1) {
		return fmt.Errorf("a commit trims what it follows, not itself: %w", ErrInvalid)
	}
	if c.Parent != "" && (c.Expect != Position{Next: 1} || c.Parent == c.Key.Thread) {
		return fmt.Errorf("only the first commit of a thread names its parent, which is another thread: %w", ErrInvalid)
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
			return fmt.Errorf("the name %.32q… has %d bytes, %d are allowed: %w", n, len(n), MaxName, ErrInvalid)
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

// Kinds are all kinds that the server stores. A store that keeps each kind apart
// needs them to delete a thread.
func Kinds() []Kind {
	return []Kind{KindRun, KindOutcome, KindBlob, KindCheckpoint, KindIntent, KindPending, KindLog, KindReuse}
}

// ConflictError is an ErrConflict or ErrFenced that says what the commit
// expected and what there is.
type ConflictError struct {
	Key      ThreadKey
	Expected Position
	Actual   Position
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

// Inspector is a [Store] that can say what its commits survive.
type Inspector interface {
	// Inspect looks at how the store is set up, now.
	Inspect(ctx context.Context) (Durability, error)
}

// Durability is what a commit that has returned survives.
type Durability struct {
	Level Level
	// Notes are what an operator should know: why it is not more, or what is at
	// risk.
	Notes []string
	// Evicts: the store may throw data away when it is full. It must not be used.
	Evicts bool
	// Policy is what the store calls its eviction policy, where it has one.
	Policy string
}

// Level is a level of durability; a later one includes those before it.
type Level string

// The levels.
const (
	// LevelNone: nothing survives the end of this process.
	LevelNone Level = "none"
	// LevelProcess: commits survive the end of this process, but not for sure the
	// crash of the machine, or of the store.
	LevelProcess Level = "process"
	// LevelMachine: commits survive a crash of the machine.
	LevelMachine Level = "machine"
)

// ValueID names a value.
type ValueID struct {
	Kind Kind
	ID   string
}

// Value is a value with its name.
type Value struct {
	Kind Kind
	ID   string
	Data []byte
}

// StoredMessage is a message in a thread's tree.
type StoredMessage struct {
	ID string
	// Parent is the message before it; empty for the first.
	Parent string
	Data   []byte
}

// Record is one event in a thread's log.
type Record struct {
	Cursor
	Data []byte
}

// InboxItem is a message to the owner of a thread.
type InboxItem struct {
	// ID makes posting idempotent.
	ID string
	// Number is given by the store: items are numbered from 1 as they come.
	Number uint64
	Data   []byte
}

// OwnedThread is a thread with an owner.
type OwnedThread struct {
	Key     ThreadKey
	Process string
}
