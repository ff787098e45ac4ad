package store

import (
	"errors"
	"fmt"
	"time"
)

// A commit says which head it builds on, what becomes of the head, and what is written beside
// it. The rules that hold for every store are checked here, so that all stores refuse the same
// commits.

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
	// Unreadable is why the rest of the head cannot be read; nil if it can. It wraps
	// ErrUnreadable or ErrVersionTooNew. Only the lists of a [Directory] set it.
	Unreadable error
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
	Messages []Message
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
	// Listings become the lists of the [Index] that the thread is in, all of them, each once. Nil
	// leaves those that it is in, and an empty slice, not nil, takes it out of all.
	Listings []Listing
}

// MaxName is the maximum length, in bytes, of a tenant, user, thread, process or id
// in a store. Names are arbitrary bytes.
const MaxName = 1024

// ErrInvalid is what a [Store] returns for a commit or an item that it can never
// write. It is a mistake of the caller: neither retrying nor reading the head again
// helps.
var ErrInvalid = errors.New("invalid commit")

// Validate returns ErrInvalid if c has no ID or no thread, has a message without an
// id or a name longer than [MaxName], trims its own records, has a Parent without
// creating a thread, or has listings that no index can have. Every store calls it first.
func (c *Commit) Validate() error {
	if c.ID == "" || c.Key.Thread == "" {
		return fmt.Errorf("a commit needs an id and a thread: %w", ErrInvalid)
	}
	if c.Trim >= max(c.Expect.Next, 1) {
		return fmt.Errorf("a commit can trim only records of earlier commits: %w", ErrInvalid)
	}
	if c.Parent != "" && (c.Expect != Position{Next: 1} || c.Parent == c.Key.Thread) {
		return fmt.Errorf("only the first commit of a thread may name a parent, which must be another thread: %w",
			ErrInvalid)
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
	if err := validateListings(c.Listings); err != nil {
		return err
	}
	return validateNames(names...)
}

// Validate returns ErrInvalid if the item's ID is longer than [MaxName]. Every
// store calls it.
func (i *InboxItem) Validate() error { return validateNames(i.ID) }

func validateNames(names ...string) error {
	for _, n := range names {
		if len(n) > MaxName {
			return fmt.Errorf("the name %.32q… has %d bytes, but only %d are allowed: %w", n, len(n), MaxName,
				ErrInvalid)
		}
	}
	return nil
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
	return fmt.Sprintf("commit to thread %s: expected ETag %q, actual ETag %q: %v", e.Key, e.Expected.ETag,
		e.Actual.ETag, e.Unwrap())
}

// Unwrap returns ErrFenced if the fence has moved and the commit named one, else
// ErrConflict.
func (e *ConflictError) Unwrap() error {
	if e.Expected.Fence != e.Actual.Fence && e.Expected.Fence != (Fence{}) {
		return ErrFenced
	}
	return ErrConflict
}
