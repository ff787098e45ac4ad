package quota

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Counting everything: what the ledger says is compared with all threads, and put right.
// It is off when a process has died before it wrote what it had gathered, when threads were
// imported or lost, and where limits are new.

const (
	// countEvery is how often one of the processes counts everything.
	countEvery = time.Hour
	// tolerance is the part of a count, as a divisor, that may be wrong without being put
	// right: threads change while they are counted.
	tolerance = 100
)

// CountDue reports whether this process is the one to count everything now. It claims
// that for itself, so it is true for one process in an hour.
func (l *Limiter) CountDue(ctx context.Context) (bool, error) {
	if !l.Counts() {
		return false, nil
	}
	now := l.cfg.Now()
	begin := now.Truncate(countEvery)
	err := l.cfg.Ledger.Reserve(ctx, &store.Reservation{
		ID: l.cfg.NewID("count"), Now: now,
		Entries: []store.Entry{{Account: "usage/count/" + begin.UTC().Format(time.RFC3339), Amount: 1, Limit: 1, Expires: begin.Add(countEvery)}},
	})
	var taken *store.LimitError
	if errors.As(err, &taken) {
		return false, nil
	}
	return err == nil, err
}

// Count is a count of all threads.
type Count struct {
	usage *usage
	// users and tenants have their totals; those who were seen lately and have no thread
	// have 0.
	users   map[holdfast.Principal]total
	tenants map[string]total
}

// NewCount begins to count everything. It must not be called if nothing is counted.
func (l *Limiter) NewCount() *Count {
	c := &Count{usage: l.usage, users: map[holdfast.Principal]total{}, tenants: map[string]total{}}
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	for who := range l.usage.seen {
		c.users[who], c.tenants[who.Tenant] = total{}, total{}
	}
	l.usage.seen = map[holdfast.Principal]bool{}
	return c
}

// Thread counts one thread and what it takes.
func (c *Count) Thread(who holdfast.Principal, bytes int64) {
	who = owner(who)
	add := func(t total) total { return total{t.threads + 1, t.bytes + bytes} }
	c.users[who], c.tenants[who.Tenant] = add(c.users[who]), add(c.tenants[who.Tenant])
}

// Correct puts the ledger right. It returns how many counts were wrong.
func (c *Count) Correct(ctx context.Context) (wrong int, err error) {
	for tenant, is := range c.tenants {
		n, err := c.correct(ctx, holdfast.Principal{Tenant: tenant}, ScopeTenant, is)
		if err != nil {
			return wrong, err
		}
		wrong += n
	}
	for who, is := range c.users {
		n, err := c.correct(ctx, who, ScopeUser, is)
		if err != nil {
			return wrong, err
		}
		wrong += n
	}
	return wrong, nil
}

// correct compares the counts of one tenant or user with what there is.
func (c *Count) correct(ctx context.Context, who holdfast.Principal, scope string, is total) (wrong int, err error) {
	change := map[string]int64{}
	for _, r := range []struct {
		resource string
		is       int64
	}{{ResourceThreads, is.threads}, {ResourceBytes, is.bytes}} {
		names := []string{account(r.resource, added, scope, who.User), account(r.resource, removed, scope, who.User)}
		used, err := c.usage.Ledger.Used(ctx, who.Tenant, names)
		if err != nil {
			return 0, err
		}
		switch off := r.is - (used[0] - used[1]); {
		case off > r.is/tolerance:
			change[names[0]] = off
		case -off > r.is/tolerance:
			change[names[1]] = -off
		}
	}
	if len(change) == 0 {
		return 0, nil
	}
	return len(change), c.usage.write(ctx, who.Tenant, change)
}
