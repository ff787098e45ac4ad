package thread

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// A commit says three things of its thread: the records that it adds, the head that it leaves, and the lists
// of the index that the thread is in afterwards.

// RecordsOf returns the records of a commit as the log has them after it.
func RecordsOf(c *store.Commit) []store.Record {
	records := make([]store.Record, len(c.Records))
	tag := c.Fence.Tag()
	for i, data := range c.Records {
		records[i] = store.Record{Cursor: store.Cursor{Number: c.Expect.Next + uint64(i), Tag: tag}, Data: data}
	}
	return records
}

// HeadAfter returns the head that a successful commit leaves.
func HeadAfter(c *store.Commit) *store.Head {
	return &store.Head{
		Key:       c.Key,
		User:      c.User,
		Fence:     c.Fence,
		Process:   c.Process,
		ETag:      c.ID,
		Next:      c.Expect.Next + uint64(len(c.Records)),
		UpdatedAt: c.UpdatedAt,
		State:     c.State,
	}
}

// EncodeEvents encodes events as the records of a log.
func EncodeEvents(events []agui.Event) [][]byte {
	records := make([][]byte, len(events))
	for i, ev := range events {
		records[i] = agui.Append(nil, ev)
	}
	return records
}

// BytesOf returns how many bytes of data a commit writes.
func BytesOf(c *store.Commit) (n int64) {
	for i := range c.Records {
		n += int64(len(c.Records[i]))
	}
	for i := range c.Messages {
		n += int64(len(c.Messages[i].Data))
	}
	for i := range c.Put {
		n += int64(len(c.Put[i].Data))
	}
	return n
}

// ClearMarks has the commit c remove the intents and the pending writes, because its
// checkpoint holds the results. A commit clears before it puts, so those that an earlier
// step put into c are taken out of it.
func ClearMarks(c *store.Commit) {
	c.Put = slices.DeleteFunc(c.Put, func(v store.Value) bool {
		return v.Kind == store.KindPending || v.Kind == store.KindIntent
	})
	c.Clear = append(c.Clear, store.KindPending, store.KindIntent)
}

// The lists of the index that a thread is in follow from what is stored of it and from nothing else.
// So a commit that stores a state says where the thread is afterwards, and a reader of the state
// can tell whether the index is right. Save is the only way to store one.

// Save has the commit c store the state, with the lists that the thread is in then. c must have all
// but the state already; its time may come when it is sent, see [Timed].
func Save(c *store.Commit, s *State) {
	c.State, c.Listings = s.Encode(), Listings(c, s)
}

// Relist has the commit c, which changes nothing else of a thread with that state, put it into the
// lists that it should be in.
func Relist(c *store.Commit, s *State) { c.Listings = Listings(c, s) }

// SameListings reports whether both are the same places in the same lists, as an index keeps them.
func SameListings(a, b []store.Listing) bool {
	places := map[store.List]int64{}
	for _, l := range a {
		places[l.List] = l.At.UnixMilli()
	}
	for _, l := range b {
		if at, is := places[l.List]; !is || at != l.At.UnixMilli() {
			return false
		}
	}
	return len(a) == len(b)
}

// Timed gives the listings of a commit that waited for its time their place.
func Timed(c *store.Commit) {
	for i := range c.Listings {
		if c.Listings[i].At.IsZero() {
			c.Listings[i].At = c.UpdatedAt
		}
	}
}

// Listings returns the lists that a thread with this state is in after the commit c, never nil.
func Listings(c *store.Commit, s *State) []store.Listing {
	listings, p := []store.Listing{}, standpoint{s, c.UpdatedAt, c.Expect.Next + uint64(len(c.Records))}
	for _, l := range StatusLists(s.Status(), c.Key.Tenant, c.User) {
		listings = append(listings, store.Listing{List: l, At: p.since()})
	}
	if s.Running() {
		listings = append(listings, store.Listing{List: RunList(c.Key.Tenant, c.User, s.run), At: p.since()})
	}
	if at, is := p.due(); is {
		listings = append(listings, store.Listing{List: store.List{Name: store.ListDue}, At: at})
	}
	return append(listings, p.tending()...)
}

// standpoint is a state that a commit stores, with what the lists have of the commit.
type standpoint struct {
	s      *State
	active time.Time
	next   uint64 // the number of the next record
}

// StatusLists returns the lists that have the threads with a status: those of the user, and those of
// the tenant. For most threads there is none: they are idle, and only the exceptions are listed.
func StatusLists(status threads.Status, tenant, user string) []store.List {
	var own, every string
	switch status {
	case threads.StatusInterrupted:
		own, every = store.ListAsking, store.ListTenantAsking
	case threads.StatusRunning:
		own, every = store.ListRunning, store.ListTenantRunning
	case threads.StatusStopped:
		own, every = store.ListStopped, store.ListTenantStopped
	default:
		return nil
	}
	return []store.List{{Name: own, Tenant: tenant, Group: user}, {Name: every, Tenant: tenant}}
}

// since returns the thread's place in the lists of its status. While it runs, that is when the thread was
// made, because the commits of a run must not move it.
func (p standpoint) since() time.Time {
	switch {
	case !p.s.Running():
		return p.active
	case p.s.CreatedAt.IsZero(): // an early version has made it
		return time.UnixMilli(0).UTC()
	}
	return p.s.CreatedAt
}

// RunList returns the list with the threads of a user that run a run with that id. Both are hashed,
// because together they may be longer than the name of a list.
func RunList(tenant, user, run string) store.List {
	const bytes = 15
	sum := sha256.Sum256([]byte(strconv.Itoa(len(user)) + ":" + user + run))
	return store.List{Name: store.ListRun, Tenant: tenant, Group: base64.RawURLEncoding.EncodeToString(sum[:bytes])}
}

// tending returns the lists in which retention finds the thread.
func (p standpoint) tending() []store.Listing {
	var listings []store.Listing
	list := func(name string, at time.Time) {
		listings = append(listings, store.Listing{List: store.List{Name: name}, At: at})
	}
	switch {
	case p.s.Running():
	case !Tidy(&p.s.Tended, p.next):
		list(store.ListEnded, p.active)
	case p.s.status == threads.StatusIdle && len(p.s.OutsideCalls()) == 0:
		list(store.ListResting, p.active)
	}
	if at, ages := Aging(&p.s.Tended, p.s.Checkpoints); ages && p.s.Tidied != 0 { // until then, no limit can be over
		list(store.ListAging, at)
	}
	return listings
}

// due returns when the thread goes on, or its run has waited for long enough; false if it does
// neither by itself.
func (p standpoint) due() (time.Time, bool) {
	if w := p.s.Waiting; w != nil {
		return w.Until, p.s.Running()
	}
	at, ends := lastExpiry(p.s.Calls)
	if !ends || !p.s.GoesOn(at) {
		return time.Time{}, false
	}
	if at.IsZero() {
		return p.active, true // it waits for no time
	}
	return at, true
}

// lastExpiry returns when the last call that waits for a result from outside expires, zero if none
// waits, and false if one never does.
func lastExpiry(calls []Call) (at time.Time, ends bool) {
	for i := range calls {
		c := &calls[i]
		switch {
		case !c.WaitsOutside():
		case c.Outside.ExpiresAt.IsZero():
			return at, false
		case c.Outside.ExpiresAt.After(at):
			at = c.Outside.ExpiresAt
		}
	}
	return at, true
}
