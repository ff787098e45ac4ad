package quota

import (
	"sync"

	"github.com/holdfast-agents/holdfast"
)

// Counts of this process, and how places are shared where nobody has configured a limit.
// There, three quarters of the places are first come, first served, so that a user who is
// alone has most of them. Of the last quarter one may take something only while one has less
// than is free: each who comes takes at most half of what is left, and somebody who has
// nothing finds room. Nothing is taken away from anybody.

// gate counts what is open in this process, by tenant and by user.
type gate struct {
	resource string
	most     int64 // of all together; 0: any number

	mu      sync.Mutex
	all     int64
	tenants map[string]int64
	users   map[holdfast.Principal]int64
}

func newGate(resource string, most int64) *gate {
	return &gate{resource: resource, most: most, tenants: map[string]int64{}, users: map[holdfast.Principal]int64{}}
}

// bounds are what is allowed to somebody. 0 means that nothing is configured.
type bounds struct {
	perTenant, perUser int64
	// tenants and users report whether there are others to whom something must be left.
	tenants, users bool
}

// take counts n more unless a limit is in the way, which it then returns.
func (g *gate) take(who holdfast.Principal, n int64, b bounds) *reached {
	who = owner(who)
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.reached(who, n, b); r != nil {
		return r
	}
	g.add(who, n)
	return nil
}

// fitting returns what n counts for: what is larger than one may have counts as all of that,
// or it could never be let in.
func (g *gate) fitting(n int64) int64 {
	if g.most == 0 {
		return n
	}
	return min(n, g.most-part{most: g.most}.kept())
}

// hold counts n more, whatever the limits are.
func (g *gate) hold(who holdfast.Principal, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(owner(who), n)
}

// free counts n less.
func (g *gate) free(who holdfast.Principal, n int64) {
	who = owner(who)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.add(who, -n); g.tenants[who.Tenant] == 0 {
		delete(g.tenants, who.Tenant)
	}
	if g.users[who] == 0 {
		delete(g.users, who)
	}
}

// add counts n more. The caller holds mu.
func (g *gate) add(who holdfast.Principal, n int64) {
	g.all += n
	g.tenants[who.Tenant] += n
	g.users[who] += n
}

// reached returns the limit that is in the way of n more. The caller holds mu.
func (g *gate) reached(who holdfast.Principal, n int64, b bounds) *reached {
	user, tenant := g.users[who], g.tenants[who.Tenant]
	at := func(scope string, used, limit int64, shared bool) *reached {
		return &reached{
			resource: g.resource,
			scope:    scope,
			used:     used,
			limit:    limit,
			shared:   shared,
		}
	}
	if b.perUser > 0 && user+n > b.perUser {
		return at(ScopeUser, user, b.perUser, false)
	}
	if b.perTenant > 0 && tenant+n > b.perTenant {
		return at(ScopeTenant, tenant, b.perTenant, false)
	}
	if g.most == 0 && b.perTenant == 0 {
		return nil
	}
	all := part{most: g.most, used: g.all}
	of := part{most: b.perTenant, used: tenant}
	if g.most > 0 {
		if all.free() < n {
			return at(ScopeServer, g.all, g.most, false)
		}
		if b.perTenant == 0 && b.tenants && !all.leaves(tenant, n) {
			return at(ScopeTenant, tenant, tenant, true)
		}
		of = all.within(of, b.tenants)
	}
	if b.perUser == 0 && b.users && !of.leaves(user, n) {
		return at(ScopeUser, user, user, true)
	}
	return nil
}

// part is what some share.
type part struct{ most, used int64 }

func (p part) free() int64 { return p.most - p.used }

// kept returns how much is only for those who have little.
func (p part) kept() int64 { return max(p.most/4, min(1, p.most/2)) }

// more returns how much somebody who has used so much may still take, one by one.
func (p part) more(used int64) int64 {
	return max(0, p.free()-p.kept(), (p.free()-used+1)/2)
}

// leaves reports whether somebody who has used so much may take n more.
func (p part) leaves(used, n int64) bool {
	return p.free()-n >= p.kept() || used+n <= p.free()
}

// within returns what the users of a tenant share, which is not more than there is. Without a
// limit the tenant has all or, beside others, what these leave it.
func (p part) within(tenant part, others bool) part {
	switch {
	case tenant.most > 0:
		tenant.most = min(tenant.most, tenant.used+p.free())
	case others:
		tenant.most = tenant.used + p.more(tenant.used)
	default:
		return p
	}
	return tenant
}
