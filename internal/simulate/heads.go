package simulate

import (
	"context"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// heads are the heads of all threads, as they were read when the store had changed so often.
type heads struct {
	changes int64
	list    []headOf
}

// headOf is the head of a thread.
type headOf struct {
	id, process string
	st          *thread.State
	err         error
}

// read returns the heads of threads, in order, as they are after so many changes.
func (h *heads) read(base store.Store, threads map[string]*known, changes int64) []headOf {
	if h.changes == changes && changes > 0 {
		return h.list
	}
	*h = heads{changes: changes}
	for _, id := range slices.Sorted(maps.Keys(threads)) {
		if threads[id].position.ETag == "" {
			continue
		}
		one := headOf{id: id}
		head, err := base.Head(context.Background(), keyOf(id))
		if one.err = err; err == nil {
			one.process = head.Process
			one.st, one.err = thread.DecodeState(head.State)
		}
		h.list = append(h.list, one)
	}
	return h.list
}
