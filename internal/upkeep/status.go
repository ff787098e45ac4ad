package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Threads by their status. The index has lists of those that run, are stopped or wait for a person, so a
// page of these costs what is on it. Nearly all others are idle, so they are found among all threads by
// their last activity, as everything is until the index is complete: a page at a time, and a bounded
// number for a request.

const (
	// statusPage is how many threads are looked at at a time, and maxLooked for one request.
	statusPage = 100
	maxLooked  = 1000
)

// Mine lists the threads of one user by their status.
type Mine struct{ Keeper *Keeper }

// ThreadsIn lists the caller's threads with a status: about limit of those before the given time (zero: all).
func (m Mine) ThreadsIn(
	ctx context.Context, who holdfast.Principal, status threads.Status, before time.Time, limit int,
) (*threads.List, error) {
	s := selection{k: m.Keeper, tenant: who.Tenant, user: who.User, status: status}
	s.dated = func(ctx context.Context, before time.Time, limit int) ([]store.Head, error) {
		return m.Keeper.cfg.Store.Threads(ctx, who, before, limit)
	}
	return s.page(ctx, before, limit)
}

// ThreadsIn lists the tenant's threads with a status, each with its user.
func (e Everybody) ThreadsIn(
	ctx context.Context, tenant string, status threads.Status, before time.Time, limit int,
) (*threads.List, error) {
	s := selection{k: e.Keeper, tenant: tenant, all: true, status: status}
	s.dated = func(ctx context.Context, before time.Time, limit int) ([]store.Head, error) {
		return e.heads(ctx, tenant, before, limit)
	}
	return s.page(ctx, before, limit)
}

// selection is which threads are looked for.
type selection struct {
	k            *Keeper
	tenant, user string
	all          bool // those of all users of the tenant
	status       threads.Status
	// dated returns threads by their last activity, whatever they do.
	dated func(ctx context.Context, before time.Time, limit int) ([]store.Head, error)
}

// candidate is a thread that may have the status.
type candidate struct {
	store.Head           // as far as it is known: its key at least
	at         time.Time // its place among the others
}

// page returns one page. It ends between two places, so that the next one can begin there.
func (s *selection) page(ctx context.Context, before time.Time, limit int) (*threads.List, error) {
	list := &threads.List{Threads: []threads.Info{}}
	for looked := 0; looked < maxLooked; {
		found, more, err := s.candidates(ctx, before, min(limit-len(list.Threads)+1, statusPage))
		if err != nil {
			return nil, thread.ReadError(store.ThreadKey{}, err)
		}
		infos, err := s.read(ctx, found)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if len(list.Threads) >= limit && !found[i].at.Equal(before) {
				list.Next = before
				return list, nil
			}
			looked, before = looked+1, found[i].at
			if infos[i] != nil && infos[i].Status == s.status {
				list.Threads = append(list.Threads, *infos[i])
			}
		}
		if !more {
			return list, nil
		}
	}
	list.Next = before
	return list, nil
}

// candidates returns threads before a time, the latest first: at least one, if there is any, and all of
// those at the last one's place. more reports whether there may be others.
func (s *selection) candidates(
	ctx context.Context, before time.Time, limit int,
) (found []candidate, more bool, err error) {
	lists := thread.StatusLists(s.status, s.tenant, s.user)
	if len(lists) == 0 || !s.k.Index().Complete {
		size := statusPage
		if s.all && !s.k.Index().Complete {
			size = maxLooked // each page is a walk past all threads
		}
		heads, err := s.dated(ctx, before, size)
		for i := range heads {
			found = append(found, candidate{heads[i], heads[i].UpdatedAt.UTC()})
		}
		return found, len(heads) == size, err
	}
	list := lists[0]
	if s.all {
		list = lists[1]
	}
	listed, more, err := thread.FindWhole(ctx, s.k.cfg.Store,
		store.Query{List: list, Before: before, Newest: true, Limit: limit})
	for _, f := range listed {
		found = append(found, candidate{store.Head{Key: f.Key}, f.At})
	}
	return found, more, err
}

// read describes the threads; nil are those that are not there, or not whose they should be.
func (s *selection) read(ctx context.Context, found []candidate) ([]*threads.Info, error) {
	infos, failed := make([]*threads.Info, len(found)), make([]error, len(found))
	routine.Each(len(found), readsAtOnce, func(i int) {
		failed[i] = routine.Caught(func() (err error) {
			infos[i], err = s.info(ctx, &found[i])
			return err
		})
	})
	return infos, errors.Join(failed...)
}

// info describes one thread.
func (s *selection) info(ctx context.Context, c *candidate) (*threads.Info, error) {
	var t *thread.Thread
	err := c.Unreadable
	if err == nil {
		t, err = s.k.read.Head(ctx, c.Key)
	}
	switch {
	case err != nil && c.Key.Tenant == s.tenant && (c.User == s.user || s.all && c.User != ""):
		info, err := inList(&c.Head, err)
		if info != nil && s.all {
			info.User = c.User
		}
		return info, err
	case err != nil && (thread.Unreadable(err) || errors.Is(err, store.ErrNotFound)):
		return nil, nil // whose it is cannot be told
	case err != nil:
		return nil, thread.ReadError(c.Key, err)
	case s.all:
		info := t.Info()
		info.User = t.Head.User
		return info, nil
	case t.Head.User != s.user:
		return nil, nil
	}
	return t.Info(), nil
}
