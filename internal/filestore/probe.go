package filestore

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// probe looks, at a start, whether every table can be opened: whether its footer, its index
// and its first block can be read. Of a table that cannot, nobody knows which threads it has,
// so a list without them must not pass for a whole one. It costs a few reads for each table.
// It returns the first damage of what all threads share.
func (e *engine) probe() (damage error) {
	levels, err := e.db.SSTables()
	if err != nil {
		return folder.Unreadable(err)
	}
	for _, tables := range levels {
		for i := range tables {
			first, last := tables[i].Smallest.UserKey, tables[i].Largest.UserKey
			err := e.first(first)
			onlyThreads := first[0] == spaceThreads && last[0] == spaceThreads
			if damage == nil && errors.Is(err, store.ErrUnreadable) && !onlyThreads {
				damage = err
			}
		}
	}
	return damage
}

// first reads what is under a key, in all tables that may have it.
func (e *engine) first(key []byte) error {
	return folder.Guard(func() error {
		it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: key, UpperBound: append(key[:len(key):len(key)], 0)})
		if err != nil {
			return err
		}
		it.First()
		return it.Close()
	})
}
