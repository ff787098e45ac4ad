package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// ProblemIndex means that the index did not have a thread where its head says that it is.
const ProblemIndex = "index_wrong"

// Mender compares the index of a store with the heads of its threads, and puts the index right.
type Mender struct {
	db    store.Store
	newID func(prefix string) string
}

// NewMender returns a Mender of a store.
func NewMender(db store.Store, newID func(prefix string) string) *Mender {
	return &Mender{db: db, newID: newID}
}

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
		ID:        thread.UnseenCommit(head.ETag, m.newID("c")),
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		Process:   head.Process,
		UpdatedAt: head.UpdatedAt,
	}
	thread.Relist(c, st)
	is, err := m.db.Listed(ctx, key)
	if err != nil {
		return nil, false, unlessUnreadable(err)
	}
	return c, !thread.SameListings(is, c.Listings), nil
}

// unlessUnreadable returns nil for the error of a thread that cannot be read.
func unlessUnreadable(err error) error {
	if thread.Unreadable(err) {
		return nil
	}
	return err
}
