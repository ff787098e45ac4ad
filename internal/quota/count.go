package quota

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Counting everything: what the ledger says is compared with all threads, and put right.
// It is off when a process has died before it wrote what it had gathered, when threads were
// imported or lost, and where limits are new.
//
// Threads change while they are counted, and the ledger learns that a little later. So it
// is read before the first thread of a tenant or a user, and again some time after the
// last one: what lies between the two is not wrong.

const (
	// countEvery is how often one of the processes counts everything.
	countEvery = time.Hour
	// tolerance is the part of a count, as a divisor, that may be wrong without being put
	// right.
	tolerance = 100
	// lag is how long it may take until the ledger has what a thread has, unless the
	// configuration says so.
	lag = 2 * flushEvery
)

// CountDue reports whether this process is the one to count everything now. It claims
// that for itself, so it is true for one process in an hour.
func (l *Limiter) CountDue(ctx context.Context) (bool, error) {
	if !l.Counts() {
		return false, nil
	}
	now := l.cfg.Now().Time()
	begin := now.Truncate(countEvery)
	err := l.cfg.Ledger.Reserve(ctx, &store.Reservation{
		ID:  l.cfg.NewID("count"),
		Now: now,
		Entries: []store.Entry{
			{
				Account: "usage/count/" + begin.UTC().Format(time.RFC3339),
				Amount:  1,
				Limit:   1,
				Expires: begin.Add(countEvery),
			},
		},
	})
	var taken *store.LimitError
	if errors.As(err, &taken) {
		return false, nil
	}
	return err == nil, err
}

// Count is a count of all threads.
type Count struct {
	usage   *usage
	tallies map[holder]*tally
}

// holder is a tenant, or one of its users.
type holder struct {
	scope string
	who   holdfast.Principal
}

// byName orders users, so that the ledger is asked in the same order each time.
func byName(a, b holdfast.Principal) int {
	return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.User, b.User))
}

// holdersOf returns who has the threads of a user.
func holdersOf(who holdfast.Principal) [2]holder {
	return [2]holder{{ScopeTenant, holdfast.Principal{Tenant: who.Tenant}}, {ScopeUser, owner(who)}}
}

// tally is what was counted of a holder, and what the ledger had before.
type tally struct{ is, before total }

// NewCount begins to count everything, after Flush: what is gathered here and written later
// would count as what changes meanwhile. Those who were seen lately and have no thread count
// as 0. It must not be called if nothing is counted.
func (l *Limiter) NewCount(ctx context.Context) (*Count, error) {
	c := &Count{usage: l.usage, tallies: map[holder]*tally{}}
	l.usage.mu.Lock()
	seen := slices.SortedFunc(maps.Keys(l.usage.seen), byName)
	l.usage.seen = map[holdfast.Principal]bool{}
	l.usage.mu.Unlock()
	for _, who := range seen {
		if err := c.Begin(ctx, who); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Begin must be called before a thread is read that is somebody's.
func (c *Count) Begin(ctx context.Context, who holdfast.Principal) error {
	for _, h := range holdersOf(who) {
		if c.tallies[h] != nil {
			continue
		}
		before, err := c.usage.counted(ctx, h)
		if err != nil {
			return err
		}
		c.tallies[h] = &tally{before: before}
	}
	return nil
}

// Thread counts one thread, after Begin, and what it takes.
func (c *Count) Thread(who holdfast.Principal, bytes int64) {
	for _, h := range holdersOf(who) {
		is := &c.tallies[h].is
		is.threads, is.bytes = is.threads+1, is.bytes+bytes
	}
}

// Correct puts the ledger right. It returns how many counts were wrong.
func (c *Count) Correct(ctx context.Context) (wrong int, err error) {
	waited := false
	for _, h := range slices.SortedFunc(maps.Keys(c.tallies), func(a, b holder) int {
		return cmp.Or(strings.Compare(a.scope, b.scope), byName(a.who, b.who))
	}) {
		t := c.tallies[h]
		change, err := c.off(ctx, h, t)
		if len(change) > 0 && !waited {
			waited = true
			select {
			case <-time.After(cmp.Or(c.usage.Lag, lag)):
				change, err = c.off(ctx, h, t)
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			return wrong, err
		}
		wrong += len(change)
		if err := c.usage.write(ctx, h.who.Tenant, change); err != nil {
			return wrong, err
		}
	}
	return wrong, nil
}

// off returns what to add to the accounts of a holder.
func (c *Count) off(ctx context.Context, h holder, t *tally) (change map[string]int64, err error) {
	after, err := c.usage.counted(ctx, h)
	if err != nil {
		return nil, err
	}
	change = map[string]int64{}
	for _, r := range []struct {
		resource          string
		is, before, after int64
	}{{ResourceThreads, t.is.threads, t.before.threads, after.threads},
		{ResourceBytes, t.is.bytes, t.before.bytes, after.bytes}} {
		if off := r.is - max(r.before, r.after); off > r.is/tolerance {
			change[account(r.resource, added, h.scope, h.who.User)] = off
		}
		if off := min(r.before, r.after) - r.is; off > r.is/tolerance {
			change[account(r.resource, removed, h.scope, h.who.User)] = off
		}
	}
	return change, nil
}

// counted returns what the ledger has counted for a holder.
func (u *usage) counted(ctx context.Context, h holder) (total, error) {
	var names []string
	for _, resource := range []string{ResourceThreads, ResourceBytes} {
		names = append(names, account(resource, added, h.scope, h.who.User),
			account(resource, removed, h.scope, h.who.User))
	}
	used, err := u.Ledger.Used(ctx, h.who.Tenant, names)
	if err != nil {
		return total{}, err
	}
	return total{used[0] - used[1], used[2] - used[3]}, nil
}
