package inspector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The index has a user's threads that ask something, so a page costs what is on it. Until the index is
// complete, the heads of the user's threads are looked at, the last active first: a page at a time, and
// a bounded number for a request.

const (
	headsAtOnce = 100
	maxHeads    = 1000
	// readsAtOnce is how many of the threads that the index has found are read at a time: a store may be
	// far away.
	readsAtOnce = 16
)

// Questions returns the open questions of the caller's threads, those of the thread that was
// last active first: of about limit threads that were last active before the given time
// (zero: any time).
func (in *Inspector) Questions(
	ctx context.Context, who holdfast.Principal, before time.Time, limit int,
) (*threads.QuestionList, error) {
	page := in.recent
	if in.cfg.Indexed() {
		page = in.asking
	}
	list := &threads.QuestionList{Questions: []threads.Question{}}
	asking := 0
	for looked := 0; looked < maxHeads && asking < limit; {
		heads, more, err := page(ctx, who, before, min(limit-asking+1, headsAtOnce))
		if err != nil {
			return nil, thread.ReadError(store.ThreadKey{}, err)
		}
		for i := 0; i < len(heads) && asking < limit; i++ {
			open, err := in.questionsOf(ctx, who, &heads[i])
			if err != nil {
				return nil, err
			}
			if list.Questions = append(list.Questions, open...); len(open) > 0 {
				asking++
			}
			looked++
			before = heads[i].UpdatedAt // an unreadable head sorts last within its minute, so this is the minute
			if i == len(heads)-1 && !more {
				return list, nil
			}
		}
		if len(heads) == 0 {
			return list, nil
		}
	}
	list.Next = before.UTC()
	return list, nil
}

// recent returns threads of a user that were last active before a time, the newest first, and whether
// there may be more.
func (in *Inspector) recent(
	ctx context.Context, who holdfast.Principal, before time.Time, _ int,
) (heads []store.Head, more bool, err error) {
	heads, err = in.cfg.Store.Threads(ctx, who, before, headsAtOnce)
	return heads, len(heads) >= headsAtOnce, err
}

// asking returns those of them that ask something, at least limit if there are as many. Their places
// in the index are the milliseconds in which they were last active.
func (in *Inspector) asking(
	ctx context.Context, who holdfast.Principal, before time.Time, limit int,
) (heads []store.Head, more bool, err error) {
	q := store.Query{
		List:   store.List{Name: store.ListAsking, Tenant: who.Tenant, Group: who.User},
		Before: before,
		Newest: true,
		Limit:  limit,
	}
	for ; ; q.Limit *= 4 {
		found, more, err := thread.FindWhole(ctx, in.cfg.Store, q)
		if err != nil {
			return nil, false, err
		}
		heads, err := in.headsOf(ctx, found, before)
		if err != nil || !more || len(heads) >= limit {
			return heads, more, err
		}
	}
}

// headsOf reads the heads of threads that were found, and returns those that were last active before
// the time, in that order. One that cannot be read asks nothing.
func (in *Inspector) headsOf(ctx context.Context, found []store.Found, before time.Time) ([]store.Head, error) {
	read, failed := make([]*store.Head, len(found)), make([]error, len(found))
	routine.Each(len(found), readsAtOnce, func(i int) {
		failed[i] = routine.Caught(func() (err error) {
			read[i], err = in.cfg.Store.Head(ctx, found[i].Key)
			return err
		})
	})
	heads := make([]store.Head, 0, len(found))
	for i, h := range read {
		switch err := failed[i]; {
		case err != nil && (thread.Unreadable(err) || errors.Is(err, store.ErrNotFound)):
		case err != nil:
			return nil, err
		case before.IsZero() || h.UpdatedAt.Before(before):
			heads = append(heads, *h)
		}
	}
	slices.SortStableFunc(heads, func(a, b store.Head) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	return heads, nil
}

// questionsOf returns the open questions of a thread. One that is gone, or that cannot be
// read, asks nothing: the list of threads says what is wrong with it.
func (in *Inspector) questionsOf(
	ctx context.Context, who holdfast.Principal, h *store.Head,
) ([]threads.Question, error) {
	if h.Unreadable != nil {
		return nil, nil
	}
	st, at, err := in.stateOf(ctx, who, h)
	switch {
	case err != nil && (thread.Unreadable(err) || holdfast.AsError(err).Code == codes.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case st.Status() != threads.StatusInterrupted:
		return nil, nil
	}
	var open []threads.Question
	for _, q := range st.Questions() {
		open = append(open, threads.Question{
			Thread: threads.QuestionThread{
				ID:     h.Key.Thread,
				Title:  st.Title,
				Agent:  st.Agent,
				Hidden: st.Hidden,
			},
			Run:       st.Run(),
			Interrupt: q,
			AskedAt:   at.UTC(),
		})
	}
	return open, nil
}

// stateOf returns a thread's state, and when it was last active. Lists of threads have heads without it.
func (in *Inspector) stateOf(
	ctx context.Context, who holdfast.Principal, h *store.Head,
) (*thread.State, time.Time, error) {
	if h.State != nil && h.User == who.User {
		st, err := thread.DecodeState(h.State)
		return st, h.UpdatedAt, err
	}
	t, err := in.read.Existing(ctx, who, h.Key.Thread)
	if err != nil {
		return nil, time.Time{}, err
	}
	return t.State, t.Head.UpdatedAt, nil
}
