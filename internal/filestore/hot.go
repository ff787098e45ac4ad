package filestore

import (
	"slices"

	"github.com/holdfast-agents/holdfast/store"
)

const (
	// maxHot is how many threads are remembered, twice at most.
	maxHot = 1024
	// maxHotIDs is how many ids of a kind are remembered.
	maxHotIDs = 256
)

// hot is what the committer remembers of threads that were written lately. It is the only one
// that writes, so what it remembers is what is stored; after a write that failed it forgets
// everything. Entries that are not looked up again fall out.
type hot struct {
	young, old map[store.ThreadKey]*thread
}

// thread is what is remembered of a thread.
type thread struct {
	number uint64
	head   *head
	// ids has the ids of all values of some kinds, sorted. Without it, trimming a kind would
	// step over everything that was ever removed from it.
	ids map[store.Kind][]string
	// listings are the lists that it is in; nil if they are not remembered.
	listings *[]store.Listing
}

// get returns a thread, or nil if it is not remembered.
func (h *hot) get(key store.ThreadKey) *thread {
	t := h.young[key]
	if t == nil && h.old[key] != nil {
		t = h.old[key]
		h.put(key, t)
	}
	return t
}

func (h *hot) put(key store.ThreadKey, t *thread) {
	if len(h.young) >= maxHot || h.young == nil {
		h.old, h.young = h.young, make(map[store.ThreadKey]*thread)
	}
	h.young[key] = t
}

func (h *hot) forget(key store.ThreadKey) {
	delete(h.young, key)
	delete(h.old, key)
}

func (h *hot) forgetAll() { h.young, h.old = nil, nil }

// remember has the ids of all values of a kind.
func (t *thread) remember(kind store.Kind, ids []string) {
	if len(ids) > maxHotIDs {
		delete(t.ids, kind)
		return
	}
	if t.ids == nil {
		t.ids = map[store.Kind][]string{}
	}
	t.ids[kind] = ids
}

// note remembers that a value was put, if the ids of its kind are remembered.
func (t *thread) note(kind store.Kind, id string) {
	ids, known := t.ids[kind]
	if !known {
		return
	}
	at, there := slices.BinarySearch(ids, id)
	switch {
	case there:
	case len(ids) >= maxHotIDs:
		delete(t.ids, kind)
	default:
		t.ids[kind] = slices.Insert(ids, at, id)
	}
}

// drop remembers that a value was removed.
func (t *thread) drop(kind store.Kind, id string) {
	ids := t.ids[kind]
	if at, there := slices.BinarySearch(ids, id); there {
		t.ids[kind] = slices.Delete(ids, at, at+1)
	}
}
