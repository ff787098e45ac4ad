package quota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Threads and bytes are counted in the ledger, so that all processes share the counts. An
// account only grows, so each count has two: what was added and what was removed. Threads
// are reserved before they are made, which makes their limit exact. Bytes are gathered in
// this process and written once a second, so a run costs no more commits than without
// limits; what a process that dies had gathered is put right by the next count.

const (
	// flushEvery is how often what was gathered is written to the ledger.
	flushEvery = time.Second
	// accountAge is how long the ledger keeps the accounts of a tenant that does nothing.
	accountAge = 400 * 24 * time.Hour
	// maxEntries bounds the entries of one reservation.
	maxEntries = 64
)

// total is how many threads there are and what they take.
type total struct{ threads, bytes int64 }

// usage counts threads and bytes.
type usage struct {
	Config
	// writing is locked, by a hash of the tenant, while gathered usage is written: in that
	// moment it is neither here nor in the ledger, so readers of the sum take the read lock.
	writing [64]guard
	// flushing has a place for one Flush.
	flushing chan struct{}

	mu sync.Mutex
	// gathered is what has changed and is not in the ledger yet, by account and tenant.
	gathered map[string]map[string]int64
	// kept are the reservations of threads to settle, by tenant.
	kept map[string][]settlement
	// seen are the users whose counts were asked for since the last count of everything.
	seen map[holdfast.Principal]bool
}

// settlement is what becomes of a reservation.
type settlement struct {
	id     string
	actual map[string]int64
}

func newUsage(cfg Config) *usage {
	return &usage{
		Config:   cfg,
		flushing: make(chan struct{}, 1),
		gathered: map[string]map[string]int64{},
		kept:     map[string][]settlement{},
		seen:     map[holdfast.Principal]bool{},
	}
}

// The names of the accounts: what is counted, and whether it was added or removed; for a
// user, the name is the last part.
const (
	added   = "added"
	removed = "removed"
	// maxUser is how long a user's name in an account's may be, in bytes; a longer one is
	// hashed, because the ledger bounds names.
	maxUser = 512
)

func account(resource, which, scope, user string) string {
	name := "usage/" + resource + "/" + which + "/" + scope
	if scope == ScopeUser {
		if len(user) > maxUser {
			sum := sha256.Sum256([]byte(user))
			user = hex.EncodeToString(sum[:])
		}
		name += "/" + user
	}
	return name
}

// Counts reports whether threads and bytes are counted at all.
func (l *Limiter) Counts() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.counting:
		return true
	default:
		return false
	}
}

// Await waits until threads and bytes are counted. It reports false if ctx is done before
// that, or there are no limits at all.
func (l *Limiter) Await(ctx context.Context) bool {
	if l == nil {
		return false
	}
	select {
	case <-l.counting:
		return true
	case <-ctx.Done():
		return false
	}
}

// Run writes to the ledger what is gathered, as soon as something is counted and until ctx is
// done.
func (l *Limiter) Run(ctx context.Context) {
	if !l.Await(ctx) {
		return
	}
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.Flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Admit makes sure that the limits allow a new run, or anything else that adds to what is
// stored, and, if newThread is set, that they allow a thread more. Then the caller calls
// stored when it is known whether the thread was made; only the first call counts.
func (l *Limiter) Admit(
	ctx context.Context, who holdfast.Principal, newThread bool,
) (stored func(made bool), err error) {
	if !l.Counts() {
		return func(bool) {}, nil
	}
	p := l.of(who.Tenant)
	a := admission{
		usage:  l.usage,
		who:    owner(who),
		limits: []scopeBounds{{ScopeUser, p.PerUser}, {ScopeTenant, p.PerTenant}},
	}
	over, err := a.check(ctx, newThread)
	if err != nil {
		return nil, thread.StoreError(err)
	}
	if over != nil {
		return nil, l.rejected(who, over)
	}
	return a.stored, nil
}

// scopeBounds are the bounds of a tenant or a user.
type scopeBounds struct {
	scope string
	Bounds
}

// admission is one call of Admit.
type admission struct {
	*usage
	who    holdfast.Principal
	limits []scopeBounds
	id     string // of the reservation of a thread; empty if none was made
}

// check returns the limit that is in the way, if there is one.
func (a *admission) check(ctx context.Context, newThread bool) (*reached, error) {
	var names []string
	for _, s := range a.limits {
		for _, resource := range []string{ResourceThreads, ResourceBytes} {
			names = append(names, account(resource, added, s.scope, a.who.User),
				account(resource, removed, s.scope, a.who.User))
		}
	}
	id := ""
	if newThread { // before anybody is waited for, so that ids are given in the order of requests
		id = a.NewID("usage")
	}
	used, err := a.used(ctx, a.who, names)
	if err != nil {
		return nil, err
	}
	r := &store.Reservation{Tenant: a.who.Tenant, ID: id, Now: a.Now().Time()}
	gone := map[string]int64{}
	for n, s := range a.limits {
		at := used[4*n:]
		if bytes := max(at[2]-at[3], 0); s.Bytes > 0 && bytes >= s.Bytes {
			return &reached{resource: ResourceBytes, scope: s.scope, used: bytes, limit: s.Bytes}, nil
		}
		e := store.Entry{Account: names[4*n], Amount: 1, Expires: r.Now.Add(accountAge)}
		if s.Threads > 0 {
			e.Limit = int64(s.Threads) + at[1]
		}
		gone[e.Account] = at[1]
		r.Entries = append(r.Entries, e)
	}
	if !newThread {
		return nil, nil
	}
	err = a.Ledger.Reserve(ctx, r)
	var full *store.LimitError
	if errors.As(err, &full) {
		i := slices.IndexFunc(r.Entries, func(e store.Entry) bool { return e.Account == full.Account })
		used := full.Used - gone[full.Account]
		return &reached{
			resource: ResourceThreads,
			scope:    a.limits[i].scope,
			used:     used,
			limit:    int64(a.limits[i].Threads),
		}, nil
	}
	a.id = r.ID
	return nil, err
}

// stored settles the reservation of a thread, once.
func (a *admission) stored(made bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.id == "" {
		return
	}
	s := settlement{id: a.id, actual: map[string]int64{}}
	if made {
		for _, l := range a.limits {
			s.actual[account(ResourceThreads, added, l.scope, a.who.User)] = 1
		}
	}
	a.kept[a.who.Tenant], a.id = append(a.kept[a.who.Tenant], s), ""
}

// writingOf returns the lock of a tenant: in every process the same one, so that a simulation of two
// tenants that share one goes as it went before.
func (u *usage) writingOf(tenant string) *guard {
	h := fnv.New32a()
	_, _ = io.WriteString(h, tenant)
	return &u.writing[h.Sum32()%uint32(len(u.writing))]
}

// used returns what the accounts have counted, together with what is gathered here.
func (u *usage) used(ctx context.Context, who holdfast.Principal, names []string) ([]int64, error) {
	lock := u.writingOf(who.Tenant)
	if err := lock.read(ctx); err != nil {
		return nil, err
	}
	defer lock.free()
	used, err := u.Ledger.Used(ctx, who.Tenant, names)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen[who] = true
	for i, name := range names {
		used[i] += u.gathered[who.Tenant][name]
	}
	return used, nil
}

// Wrote counts bytes that were added to a thread, or removed if it is negative.
func (l *Limiter) Wrote(who holdfast.Principal, bytes int64) {
	if l.Counts() {
		l.usage.add(who, total{bytes: bytes})
	}
}

// Deleted counts a thread that was deleted, and its bytes.
func (l *Limiter) Deleted(who holdfast.Principal, bytes int64) {
	if l.Counts() {
		l.usage.add(who, total{threads: -1, bytes: -bytes})
	}
}

// add gathers a change.
func (u *usage) add(who holdfast.Principal, change total) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.gathered[who.Tenant]
	if of == nil {
		of = map[string]int64{}
		u.gathered[who.Tenant] = of
	}
	for resource, n := range map[string]int64{ResourceThreads: change.threads, ResourceBytes: change.bytes} {
		which := added
		if n < 0 {
			which, n = removed, -n
		}
		if n == 0 {
			continue
		}
		for _, scope := range []string{ScopeTenant, ScopeUser} {
			of[account(resource, which, scope, who.User)] += n
		}
	}
}

// Flush writes to the ledger what is gathered. An amount that cannot be written, even because
// the ledger panics, stays for the next time. It waits for another call that is writing, so
// that afterwards nothing is under way.
func (l *Limiter) Flush(ctx context.Context) {
	if !l.Counts() {
		return
	}
	u := l.usage
	select {
	case u.flushing <- struct{}{}:
		defer func() { <-u.flushing }()
	case <-ctx.Done():
		return
	}
	u.mu.Lock()
	tenants, kept := slices.Sorted(maps.Keys(u.gathered)), u.kept
	u.kept = map[string][]settlement{}
	u.mu.Unlock()
	var failed error
	for _, tenant := range slices.Sorted(maps.Keys(kept)) {
		list := kept[tenant]
		for i, s := range list {
			err := routine.Caught(func() error { return u.Ledger.Settle(ctx, tenant, s.id, s.actual) })
			if err != nil {
				failed = err
				u.keep(tenant, list[i:])
				break
			}
		}
	}
	for _, tenant := range tenants {
		if err := u.flush(ctx, tenant); err != nil {
			failed = err
		}
	}
	if failed != nil {
		l.cfg.Log.Warn("what is used of the limits could not be counted yet", "error", failed)
	}
}

func (u *usage) keep(tenant string, list []settlement) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.kept[tenant] = append(list, u.kept[tenant]...)
}

// flush writes what is gathered of a tenant.
func (u *usage) flush(ctx context.Context, tenant string) error {
	lock := u.writingOf(tenant)
	if err := lock.write(ctx); err != nil {
		return err
	}
	defer lock.free()
	u.mu.Lock()
	amounts := u.gathered[tenant]
	delete(u.gathered, tenant)
	u.mu.Unlock()
	err := routine.Caught(func() error { return u.write(ctx, tenant, amounts) })
	if err != nil {
		u.regather(tenant, amounts)
	}
	return err
}

// regather gives back what could not be written.
func (u *usage) regather(tenant string, amounts map[string]int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.gathered[tenant]
	if of == nil {
		u.gathered[tenant] = amounts
		return
	}
	for name, n := range amounts {
		of[name] += n
	}
}

// write adds the amounts to the tenant's accounts, and takes what it has written out of
// them.
func (u *usage) write(ctx context.Context, tenant string, amounts map[string]int64) error {
	for len(amounts) > 0 {
		now := u.Now().Time()
		r := &store.Reservation{Tenant: tenant, ID: u.NewID("usage"), Now: now}
		actual := map[string]int64{}
		for name, n := range amounts {
			if len(r.Entries) < maxEntries {
				r.Entries = append(r.Entries, store.Entry{Account: name, Amount: n, Expires: now.Add(accountAge)})
				actual[name] = n
			}
		}
		slices.SortFunc(r.Entries, func(a, b store.Entry) int { return strings.Compare(a.Account, b.Account) })
		if err := u.Ledger.Reserve(ctx, r); err != nil {
			return fmt.Errorf("count what tenant %s uses: %w", tenant, err)
		}
		for name := range actual {
			delete(amounts, name)
		}
		if err := u.Ledger.Settle(ctx, tenant, r.ID, actual); err != nil {
			u.keep(tenant, []settlement{{r.ID, actual}})
			return fmt.Errorf("count what tenant %s uses: %w", tenant, err)
		}
	}
	return nil
}
