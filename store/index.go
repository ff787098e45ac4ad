package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Index finds threads by what their commits said of them, without looking at any other. It is
// a hint where the two are stored apart: a list may have a thread whose head does not confirm it,
// which is left out, and removed, when it is read. A thread is never missing in a list that its
// head names, unless it was last written by a version without an index: Mend enters it again.
type Index interface {
	// Find returns up to q.Limit of the threads in a list, as their heads confirm it.
	Find(ctx context.Context, q Query) ([]Found, error)
	// Everybody is Threads of a [Directory] for all users of a tenant.
	Everybody(ctx context.Context, tenant string, before time.Time, limit int) ([]Head, error)
	// Owners returns processes that may own threads, each with its lease, as Lease of [Presence]
	// returns it: all that do not live and may have left threads behind, and of those that live at
	// least the one whose lease ends first.
	Owners(ctx context.Context) ([]Owner, error)
	// Mend enters a thread in all lists in which its head says that it is, and returns in how
	// many of them it was missing. A thread that does not exist is missing in none.
	Mend(ctx context.Context, key ThreadKey) (missing int, err error)
	// Listed returns the lists that the thread's last commit with Listings named, in its order; those
	// that Mend would enter the thread in, except for what follows from the head.
	Listed(ctx context.Context, key ThreadKey) ([]Listing, error)
	// Progress returns what the last call with a value has left in the store, nil at first: how
	// far the walk has come that enters the threads of versions without an index.
	Progress(ctx context.Context, put []byte) ([]byte, error)
}

// List names a list of the index.
type List struct {
	// Name says what the list is of.
	Name string
	// Tenant is whose threads it has; empty for a list of all tenants, or of a tenant without
	// a name.
	Tenant string
	// Group divides the lists of one name further: a user, or a process.
	Group string
}

// The lists.
const (
	// ListDue has the threads, of all tenants, for which something is to be done at a time.
	ListDue = "due"
	// ListEnded has the threads, of all tenants, that do not run and that retention has not seen
	// since, by when they were last active.
	ListEnded = "ended"
	// ListResting has the other threads that may be deleted for their age, by the same time.
	ListResting = "resting"
	// ListAging has the threads with checkpoints that may be removed for their age, by when the
	// oldest was taken, or by a time before that.
	ListAging = "aging"
	// ListAsking has the threads of one user that wait for a person, by when they began to.
	ListAsking = "asking"
	// ListRunning has the threads of one user that run, by when they were made.
	ListRunning = "running"
	// ListStopped has the threads of one user that are stopped, by when they became so.
	ListStopped = "stopped"
	// ListTenantAsking, ListTenantRunning and ListTenantStopped have those of all users of one tenant.
	ListTenantAsking  = "tenant-asking"
	ListTenantRunning = "tenant-running"
	ListTenantStopped = "tenant-stopped"
	// ListRun has the threads of one user whose run has an id, while it runs, by when they were made.
	ListRun = "run"
	// ListOwned has the threads that one process owns: those that Owned of a [Directory]
	// returns, by no particular time. It follows from [Commit].Process, so no commit names it.
	ListOwned = "owned"
)

// Owned returns the list of the threads that a process owns.
func Owned(process string) List { return List{Name: ListOwned, Group: process} }

// Listing is where a thread is in the index.
type Listing struct {
	List
	// At is its place in the list, kept to the millisecond.
	At time.Time
}

// Query is what Find looks for.
type Query struct {
	List
	// Since leaves out the threads at an earlier place; zero: none.
	Since time.Time
	// Before leaves out the threads at that place or a later one; zero: none.
	Before time.Time
	// Newest returns the latest first, instead of the earliest. Those at the same place come in
	// the order of tenants and threads, either way.
	Newest bool
	// Limit is how many threads to return at most.
	Limit int
	// Only leaves out the threads for which it is false; nil: none. It is called for each thread that
	// the list may have, before anything of the thread is read. Only the list of the threads that a
	// process owns heeds it.
	Only func(ThreadKey) bool
}

// Found is a thread that a list has.
type Found struct {
	// Key names the thread.
	Key ThreadKey
	// At is its place in the list.
	At time.Time
}

// Owner is a process that may own threads.
type Owner struct {
	// Process is its id.
	Process string
	// Lease is what the store knows of it.
	Lease Lease
}

// MaxListings is in how many lists a thread may be.
const MaxListings = 64

// MaxProgress is how long the value of [Index].Progress may be, in bytes.
const MaxProgress = 4096

// validateListings returns ErrInvalid for listings that no index can have.
func validateListings(listings []Listing) error {
	if len(listings) > MaxListings {
		return fmt.Errorf("a thread cannot be in %d lists: %w", len(listings), ErrInvalid)
	}
	for i := range listings {
		l := &listings[i]
		same := func(other Listing) bool { return other.List == l.List }
		if l.Name == "" || l.Name == ListOwned || slices.ContainsFunc(listings[:i], same) {
			return fmt.Errorf("a commit cannot put a thread into the list %q, or not twice: %w", l.Name, ErrInvalid)
		}
		if err := validateNames(l.Name, l.Tenant, l.Group); err != nil {
			return err
		}
	}
	return nil
}
