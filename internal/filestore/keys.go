package filestore

import (
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Every key of the store, and how its parts are put together. These keys are in users' stores
// and stay readable.

// Every key begins with a byte that says what it is about. Numbers in keys are
// big-endian, so that they sort. Where a name is followed by something else its
// length comes first, so that no name, whatever its bytes, can be mistaken for
// another.
//
//	meta      name                                    the store's own, see below
//	names     tenant, thread                          the thread's number
//	threads   thread number, section, …               all about the thread, see below
//	owned     thread number                           tenant, thread, process
//	active    tenant, user, ^minute, thread number    the thread's name
//	children  tenant, parent thread, thread           nothing
//	ledger    tenant, section, …                      what the tenant has counted, see ledger.go
//	lists     list, tenant, group, ms, thread number  tenant, thread
//	tenants   tenant, ^minute, thread number          user, the thread's name
//
// A thread's number stands for its name in every other key, which keeps keys short
// and one thread's data together. A number is never used twice. The active index
// holds the minute of the head's UpdatedAt, not the instant, so that a busy thread
// moves in it once a minute instead of in every commit; the order within a minute
// comes from the heads. The minute is complemented: what was active last is first.
const (
	spaceMeta byte = 1 + iota
	spaceNames
	spaceThreads
	spaceOwned
	spaceActive
	spaceChildren
	spaceLedger
	spaceLists
	spaceTenants
)

// The keys of the meta space.
const (
	metaThreads  = "threads"  // the last number that a thread got
	metaAccounts = "accounts" // the last number that an account of the ledger got
	// metaSteps is followed by the number of a thread that has no name yet; see steps.go.
	metaSteps    = "steps/"
	metaProgress = "index" // see [store.Index]
)

// The sections of a thread. Their numbers are stored and never change.
//
//	head        –                 see head.go
//	state       –                 frame
//	records     record number     tag, frame
//	messages    running number    id, parent, frame
//	messageIDs  message id        its running number
//	values      kind, id          frame
//	inbox       item number       item id, frame
//	parent      –                 the parent thread's name; most threads have none
//	listings    –                 the lists of the index that the thread is in
const (
	sectionHead byte = 1 + iota
	sectionState
	sectionRecords
	sectionMessages
	sectionMessageIDs
	sectionValues
	sectionInbox
	sectionParent
	sectionListings
)

// The names that go into the checksums of frames. Messages and inbox items have their
// ids before the frame.
const (
	stateName   = "state"
	messageName = "message"
	inboxName   = "inbox"
)

func recordName(n uint64) string { return "record " + strconv.FormatUint(n, 10) }

func valueName(kind store.Kind, id string) string { return string(kind) + "/" + id }

func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

func metaKey(name string) []byte { return append([]byte{spaceMeta}, name...) }

func stepsKey(thread uint64) []byte {
	return binary.BigEndian.AppendUint64(metaKey(metaSteps), thread)
}

func nameKey(key store.ThreadKey) []byte {
	return append(appendName([]byte{spaceNames}, key.Tenant), key.Thread...)
}

func numbered(space byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{space}, n)
}

func ownedKey(thread uint64) []byte { return numbered(spaceOwned, thread) }

func threadPrefix(thread uint64) []byte { return numbered(spaceThreads, thread) }

func sectionKey(thread uint64, section byte) []byte {
	b := make([]byte, 0, 40)
	return append(binary.BigEndian.AppendUint64(append(b, spaceThreads), thread), section)
}

// placeKey is the key of a message, a record or an inbox item.
func placeKey(thread uint64, section byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(sectionKey(thread, section), n)
}

// placeOf is the number that a placeKey ends with.
func placeOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

func messageIDKey(thread uint64, id string) []byte {
	return append(sectionKey(thread, sectionMessageIDs), id...)
}

func kindPrefix(thread uint64, kind store.Kind) []byte {
	return appendName(sectionKey(thread, sectionValues), string(kind))
}

func valueKey(thread uint64, kind store.Kind, id string) []byte {
	return append(kindPrefix(thread, kind), id...)
}

func activePrefix(owner holdfast.Principal) []byte {
	return appendName(appendName([]byte{spaceActive}, owner.Tenant), owner.User)
}

func activeKey(owner holdfast.Principal, minute int64, thread uint64) []byte {
	return binary.BigEndian.AppendUint64(appendMinute(activePrefix(owner), minute), thread)
}

// tenantPrefix begins the list of all threads of a tenant, which is like that of a user.
func tenantPrefix(tenant string) []byte { return appendName([]byte{spaceTenants}, tenant) }

func tenantKey(tenant string, minute int64, thread uint64) []byte {
	return binary.BigEndian.AppendUint64(appendMinute(tenantPrefix(tenant), minute), thread)
}

func tenantValue(key store.ThreadKey, user string) []byte {
	return append(appendName(nil, user), key.Thread...)
}

func listPrefix(l store.List) []byte {
	return appendName(appendName(appendName([]byte{spaceLists}, l.Name), l.Tenant), l.Group)
}

func listKey(l store.Listing, thread uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPlace(listPrefix(l.List), l.At), thread)
}

// appendPlace writes a place in a list, so that earlier ones sort first.
func appendPlace(b []byte, at time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(at.UnixMilli())^1<<63)
}

// placeIn is the reverse of appendPlace.
func placeIn(b []byte) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b) ^ 1<<63)).UTC()
}

// fullName is the value of a list of all tenants.
func fullName(key store.ThreadKey) []byte { return append(appendName(nil, key.Tenant), key.Thread...) }

func childPrefix(parent store.ThreadKey) []byte {
	return appendName(appendName([]byte{spaceChildren}, parent.Tenant), parent.Thread)
}

func childKey(tenant, parent, child string) []byte {
	return append(childPrefix(store.ThreadKey{Tenant: tenant, Thread: parent}), child...)
}

// appendMinute complements the minute, so that later ones sort first; the sign is
// turned around, so that times before 1970 sort last.
func appendMinute(b []byte, minute int64) []byte {
	return binary.BigEndian.AppendUint64(b, ^(uint64(minute) ^ 1<<63))
}

// minuteOf counts minutes from 1970. It only matters that a later time never has a smaller
// one.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// timeOf returns when the minute that appendMinute has written began.
func timeOf(complement uint64) time.Time {
	return time.Unix(int64(^complement^1<<63)*60, 0).UTC()
}

// end returns the first key that is larger than every key with the prefix. No
// prefix of ours is all 0xff.
func end(prefix []byte) []byte {
	b := slices.Clone(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		b[i]++
		if b[i] != 0 {
			return b[:i+1]
		}
	}
	return nil
}
