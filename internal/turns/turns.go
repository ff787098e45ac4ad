// Package turns lets a few do something at a time that takes much of the processor or the
// memory, the tenants one after the other, and the users of a tenant too: the many requests of
// one do not keep those of another waiting.
package turns

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
)

// Turns has places, and lines of those who wait for one.
type Turns struct {
	perTenant int
	perUser   int
	inLine    int           // places of a tenant whose requests wait, while there are others
	patience  time.Duration // 0: those who wait do so for as long as it takes

	mu      sync.Mutex
	latest  latest
	free    int
	beyond  int               // how many were let in without a place
	late    *time.Timer       // goes off when the next one has waited for long enough; nil if nobody waits
	waits   int               // numbers what late was set for
	has     map[user]int      // places
	tenants map[string]int    // the same
	order   []string          // tenants of which somebody waits, the next one first
	lines   map[string][]line // of their users who wait, the next one first
}

// user is who has a place or waits for one.
type user struct{ tenant, name string }

// line is where the requests of a user wait, the first one first.
type line struct {
	user  user
	calls []chan struct{}
}

// New returns Turns of so many places. One tenant has all of them but one at a time, or the only
// one; of one user there are as many at a time as perUser says.
func New(places, perUser int) *Turns {
	perTenant := max(1, places-1)
	return &Turns{
		perTenant: perTenant,
		perUser:   perUser,
		inLine:    perTenant,
		free:      places,
		has:       map[user]int{},
		tenants:   map[string]int{},
		lines:     map[string][]line{},
	}
}

// NewPatient returns Turns like those of New, with two differences. While requests of a tenant wait
// and others have asked within the last second, the tenant is given no place beyond inLine: a few
// requests that come together are served together, and a crowd goes in a narrow line, beside which
// the others hardly notice it. And the next one waits for a place only so long and then goes without
// one: work that waits for something far away does not keep the processor busy, so it keeps nobody
// out.
func NewPatient(places, perUser, inLine int, patience time.Duration) *Turns {
	t := New(places, perUser)
	t.inLine = min(inLine, t.perTenant)
	t.patience = patience
	return t
}

// lately is how long the requests of a tenant show that it is there.
const lately = time.Second

// latest are the two tenants that have asked last, the last one first.
type latest [2]asked

// asked says when a tenant has asked.
type asked struct {
	tenant string
	at     clock.Moment
}

// note notes that a tenant asks now.
func (l *latest) note(tenant string) {
	if l[0].tenant != tenant {
		l[1] = l[0]
	}
	l[0] = asked{tenant, clock.Now()}
}

// others reports whether another tenant has asked lately.
func (l *latest) others(tenant string) bool {
	return slices.ContainsFunc(l[:], func(one asked) bool {
		return one.tenant != tenant && !one.at.Never() && one.at.Elapsed() < lately
	})
}

// NewHeavy returns Turns for what takes a processor for long: at most half of them do such work at a
// time, so that the other half is there for everything else.
func NewHeavy() *Turns {
	places := max(1, runtime.GOMAXPROCS(0)/2)
	return New(places, places)
}

// holds is the key in a context that has a place; the value is an *atomic.Bool, which says whether it
// still does.
type holds struct{ of *Turns }

// Hold is like Take, and returns a context with the place: until end, Take needs no second one for it.
// Another call of end does nothing.
func (t *Turns) Hold(ctx context.Context, who holdfast.Principal) (held context.Context, end func(), err error) {
	leave, err := t.Take(ctx, who)
	if err != nil {
		return nil, nil, err
	}
	has := &atomic.Bool{}
	has.Store(true)
	end = func() {
		if has.CompareAndSwap(true, false) {
			leave()
		}
	}
	return context.WithValue(ctx, holds{t}, has), end, nil
}

// Take waits for a place, which end gives back; end must be called once. The error is the cause
// of ctx's end.
func (t *Turns) Take(ctx context.Context, who holdfast.Principal) (end func(), err error) {
	if has, ok := ctx.Value(holds{t}).(*atomic.Bool); ok && has.Load() {
		return func() {}, nil
	}
	me := user{who.Tenant, who.User}
	end = func() { t.leave(me) }
	t.mu.Lock()
	t.latest.note(who.Tenant)
	if t.free > 0 && len(t.lines[me.tenant]) == 0 && t.mayHave(me) { // as most of the time
		t.free--
		t.count(me)
		t.mu.Unlock()
		return end, nil
	}
	mine := make(chan struct{})
	t.join(me, mine)
	t.next()
	t.mu.Unlock()
	select {
	case <-mine:
		return end, nil
	default:
	}
	select {
	case <-mine:
		return end, nil
	case <-ctx.Done():
	}
	if !t.withdraw(me, mine) {
		end() // it was given a place meanwhile
	}
	return nil, context.Cause(ctx)
}

// join puts a request at the end of its line. The caller holds mu.
func (t *Turns) join(me user, mine chan struct{}) {
	lines := t.lines[me.tenant]
	if len(lines) == 0 {
		t.order = append(t.order, me.tenant)
	}
	if i := slices.IndexFunc(lines, func(l line) bool { return l.user == me }); i >= 0 {
		lines[i].calls = append(lines[i].calls, mine)
		return
	}
	t.lines[me.tenant] = append(lines, line{me, []chan struct{}{mine}})
}

// leave gives a place back, and to the next in line.
func (t *Turns) leave(me user) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.beyond > 0 {
		t.beyond--
	} else {
		t.free++
	}
	if t.has[me]--; t.has[me] == 0 {
		delete(t.has, me)
	}
	if t.tenants[me.tenant]--; t.tenants[me.tenant] == 0 {
		delete(t.tenants, me.tenant)
	}
	t.next()
}

// next gives the free places to those who are next and may have one. The caller holds mu.
func (t *Turns) next() {
	for t.free > 0 && slices.ContainsFunc(t.order, t.serve) {
	}
	t.watch()
}

// watch sees to it that the next one does not wait for longer than the patience. The caller
// holds mu.
func (t *Turns) watch() {
	switch {
	case len(t.order) == 0:
		t.unwatch()
	case t.late == nil && t.patience > 0:
		t.waits++
		n := t.waits
		t.late = time.AfterFunc(t.patience, func() { t.letIn(n) })
	}
}

// unwatch ends the wait that is watched. The caller holds mu.
func (t *Turns) unwatch() {
	if t.late != nil {
		t.late.Stop()
		t.late = nil
	}
}

// letIn lets the next one in without a place, unless the wait with this number has ended: it may
// have done so while this function waited for mu.
func (t *Turns) letIn(wait int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.late == nil || wait != t.waits {
		return
	}
	t.late = nil
	t.beyond++
	t.admit(t.order[0], 0)
	t.watch()
}

// serve gives a place to a request of the tenant, whose turn comes again after all others; it
// reports false if no request of the tenant may have one. The caller holds mu.
func (t *Turns) serve(tenant string) bool {
	i := slices.IndexFunc(t.lines[tenant], func(l line) bool { return t.mayHave(l.user) })
	if i < 0 || t.tenants[tenant] >= t.inLine && t.latest.others(tenant) {
		return false
	}
	t.free--
	t.admit(tenant, i)
	t.unwatch()
	return true
}

// admit lets in the first of a line of the tenant. The caller holds mu.
func (t *Turns) admit(tenant string, i int) {
	l := t.lines[tenant][i]
	t.remove(l.user, l.calls[0], true)
	t.count(l.user)
	close(l.calls[0])
}

// mayHave reports whether a user may have one more place. The caller holds mu.
func (t *Turns) mayHave(who user) bool {
	return t.has[who] < t.perUser && t.tenants[who.tenant] < t.perTenant
}

// count counts one more place of a user. The caller holds mu.
func (t *Turns) count(who user) {
	t.has[who]++
	t.tenants[who.tenant]++
}

// remove takes a request out of its line; it reports whether it was there. If it is served, its
// user and its tenant come last from now on. The caller holds mu.
func (t *Turns) remove(who user, call chan struct{}, served bool) bool {
	lines := t.lines[who.tenant]
	i := slices.IndexFunc(lines, func(l line) bool { return l.user == who })
	if i < 0 || !slices.Contains(lines[i].calls, call) {
		return false
	}
	l := lines[i]
	l.calls = slices.DeleteFunc(slices.Clone(l.calls), func(c chan struct{}) bool { return c == call })
	switch {
	case len(l.calls) == 0:
		lines = slices.Delete(lines, i, i+1)
	case served:
		lines = append(slices.Delete(lines, i, i+1), l)
	default:
		lines[i] = l
	}
	t.lines[who.tenant] = lines
	if at := slices.Index(t.order, who.tenant); served || len(lines) == 0 {
		t.order = slices.Delete(slices.Clone(t.order), at, at+1)
	}
	switch {
	case len(lines) == 0:
		delete(t.lines, who.tenant)
	case served:
		t.order = append(t.order, who.tenant)
	}
	return true
}

// withdraw removes a request that waits; it reports whether it still did.
func (t *Turns) withdraw(me user, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.watch()
	return t.remove(me, mine, false)
}
