package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// ProblemIndex means that the index did not have a thread where its head says that it is.
const ProblemIndex = "index_wrong"

// Mender compares the index of a store with the heads of its threads, and puts the index right.
type Mender struct {
	db    store.Store
	newID func(prefix string) string
	lists map[store.List]map[store.ThreadKey]time.Time // those that were read
}

// NewMender returns a Mender of a store.
func NewMender(db store.Store, newID func(prefix string) string) *Mender {
	return &Mender{db: db, newID: newID, lists: map[store.List]map[store.ThreadKey]time.Time{}}
}

// maxListed is how many threads of a list are compared.
const maxListed = 1 << 24

// Mend compares one thread, and returns what was wrong with its place in the index. A thread that
// runs, and one that cannot be read, is only entered where its head says without its state.
func (m *Mender) Mend(ctx context.Context, key store.ThreadKey) ([]Problem, error) {
	var problems []Problem
	missing, err := m.db.Mend(ctx, key)
	if err != nil && !thread.Unreadable(err) {
		return nil, err
	}
	if missing > 0 {
		problems = append(problems, Problem{Key: key, What: ProblemIndex,
			Detail: fmt.Sprintf("it was missing in %d places; it was entered again", missing)})
	}
	c, wrong, err := m.compare(ctx, key)
	if wrong { // or the list was read before the thread moved
		clear(m.lists)
		c, wrong, err = m.compare(ctx, key)
	}
	if err != nil || !wrong {
		return problems, err
	}
	if err := m.db.Commit(ctx, c); err != nil {
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) {
			return problems, nil // it has moved, and its commit says where it is
		}
		return problems, err
	}
	return append(problems, Problem{Key: key, What: ProblemIndex,
		Detail: "it was not in the lists that its state names; it is now"}), nil
}

// compare returns the commit that lists the thread where its state says, and whether it is needed.
func (m *Mender) compare(ctx context.Context, key store.ThreadKey) (c *store.Commit, wrong bool, err error) {
	head, err := m.db.Head(ctx, key)
	if err != nil {
		return nil, false, unlessUnreadable(err)
	}
	st, err := thread.DecodeState(head.State)
	if err != nil || st.Running() {
		return nil, false, nil
	}
	c = &store.Commit{
		Key:       key,
		ID:        m.newID("c"),
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		Process:   head.Process,
		UpdatedAt: head.UpdatedAt,
	}
	thread.Relist(c, st)
	want := map[store.List]int64{}
	for _, l := range c.Listings {
		want[l.List] = l.At.UnixMilli()
	}
	for _, list := range []store.List{
		{Name: store.ListDue},
		{Name: store.ListAsking, Tenant: key.Tenant, Group: head.User},
	} {
		threads, err := m.list(ctx, list)
		if err != nil {
			return nil, false, err
		}
		at, has := threads[key]
		place, should := want[list]
		if has != should || has && at.UnixMilli() != place {
			return c, true, nil
		}
	}
	return nil, false, nil
}

// list reads a list, once.
func (m *Mender) list(ctx context.Context, list store.List) (map[store.ThreadKey]time.Time, error) {
	if threads, read := m.lists[list]; read {
		return threads, nil
	}
	found, err := m.db.Find(ctx, store.Query{List: list, Limit: maxListed})
	if err != nil {
		return nil, err
	}
	threads := make(map[store.ThreadKey]time.Time, len(found))
	for _, f := range found {
		threads[f.Key] = f.At
	}
	m.lists[list] = threads
	return threads, nil
}

// unlessUnreadable returns nil for the error of a thread that cannot be read.
func unlessUnreadable(err error) error {
	if thread.Unreadable(err) {
		return nil
	}
	return err
}
