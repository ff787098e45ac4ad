package boltstore

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// The buckets of the file. Numbers in keys are big-endian, so that they sort.
// Where a name is followed by something else its length comes first, so that
// no name, whatever its bytes, can be mistaken for another.
//
//	meta    "format"                                the format's version, in decimal
//	names   tenant, thread                          the thread's number
//	data    thread number, section, …               all about the thread, see below
//	chunks  a key of data, chunk number             parts of a value too large for data
//	owned   thread number                           tenant, thread, process
//	active  tenant, user, minute, thread number     the thread's name
//	children  tenant, parent thread, thread         nothing
//	ledger  tenant, section, …                      what the tenant has counted, see ledger.go
//
// A thread's number stands for its name in every other key, which keeps keys
// short and one thread's data together, apart from everyone else's. Its log
// and its head are neighbours, so that a commit of small records mostly
// rewrites one page. The active index holds the minute of the head's UpdatedAt,
// not the instant, so that a busy thread moves in it once a minute instead of
// in every commit; the order within a minute comes from the heads.
const (
	bucketMeta   = "meta"
	bucketNames  = "names"
	bucketData   = "data"
	bucketChunks = "chunks"
	bucketOwned  = "owned"
	bucketActive = "active"
	// These are made when they are missing: files of earlier versions have none.
	bucketChildren = "children"
	bucketLedger   = "ledger"
)

// The sections of a thread in the data bucket. Their numbers are in the file
// and never change.
//
//	messageIDs  message id        its running number (nothing in files of the first version)
//	messages    running number    id, parent, frame
//	state       –                 frame
//	values      kind, id          frame
//	inbox       item number       item id, frame
//	records     record number     tag, frame
//	head        –                 see hot
//	parent      –                 the parent thread's name; most threads have none
//
// A missing frame is in the chunks.
const (
	sectionMessageIDs byte = 1 + iota
	sectionMessages
	sectionState
	sectionValues
	sectionInbox
	sectionRecords
	sectionHead
	sectionParent
)

func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

func nameKey(key store.ThreadKey) []byte {
	return append(appendName(nil, key.Tenant), key.Thread...)
}

func numberKey(thread uint64) []byte { return binary.BigEndian.AppendUint64(nil, thread) }

func sectionKey(thread uint64, section byte) []byte {
	b := make([]byte, 0, 32)
	return append(binary.BigEndian.AppendUint64(b, thread), section)
}

// numberedKey is the key of a message, a record or an inbox item.
func numberedKey(thread uint64, section byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(sectionKey(thread, section), n)
}

func messageIDKey(thread uint64, id string) []byte {
	return append(sectionKey(thread, sectionMessageIDs), id...)
}

func kindPrefix(thread uint64, kind store.Kind) []byte {
	return appendName(sectionKey(thread, sectionValues), string(kind))
}

func valueKey(thread uint64, kind store.Kind, id string) []byte {
	return append(kindPrefix(thread, kind), id...)
}

// chunkKey is unambiguous although it follows a name: two keys of the same
// length differ before their last four bytes, or in them.
func chunkKey(key []byte, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(slices.Clip(key), chunk)
}

func activePrefix(owner holdfast.Principal) []byte {
	return appendName(appendName(nil, owner.Tenant), owner.User)
}

func activeKey(owner holdfast.Principal, minute int64, thread uint64) []byte {
	return binary.BigEndian.AppendUint64(appendMinute(activePrefix(owner), minute), thread)
}

func childPrefix(parent store.ThreadKey) []byte {
	return appendName(appendName(nil, parent.Tenant), parent.Thread)
}

func childKey(tenant, parent, child string) []byte {
	return append(childPrefix(store.ThreadKey{Tenant: tenant, Thread: parent}), child...)
}

// appendMinute turns the sign around, so that times before 1970 sort first.
func appendMinute(b []byte, minute int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(minute)^1<<63)
}

// minuteOf counts minutes from 1970. What matters is that a later time never
// has a smaller one.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// after returns the first key that is larger than every key with the prefix.
// No prefix of ours is all 0xff.
func after(prefix []byte) []byte {
	b := slices.Clone(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		b[i]++
		if b[i] != 0 {
			return b[:i+1]
		}
	}
	return nil
}
