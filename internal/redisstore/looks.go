package redisstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// When processes look who is there. All of them subscribe to one channel besides their own, so that
// one number tells whether anybody has come or gone: most looks ask for no more. When it has changed,
// a look asks for each process, and the first one to miss another tells the others to look, too. So
// the fleet looks as often as it needs to, and each look costs as little as with one process.
//
// A process of the version before is not on the channel of all. Then what is counted there is not the
// sum of the others, and every look asks for each process.
//
// Nobody looks while nobody else owns threads. Each process that does says so when it claims one, and
// from time to time while it owns any; and every list of the threads that they own corrects that.

const (
	// lookEvery is how often a process looks who is there; see pace.
	lookEvery = 20 * time.Millisecond
	// wholeEvery is how often one of the processes asks for each of them although the number is the
	// same: one may have come as another one went.
	wholeEvery = 200 * time.Millisecond
	// listEvery is how often a process lists who has a lease, at most, unless it hears of one.
	listEvery = time.Second
	// hurryEvery is how often a process looks because others say that they miss one, at most.
	hurryEvery = 100 * time.Millisecond
)

// crowd is what a process knows of all processes together. The lock of peers guards it.
type crowd struct {
	// living is how many have a lease, with this one.
	living int
	// count is what the last whole look counted on the channel of all, and contact the time of
	// unbroken contact in which it did.
	count   int64
	contact int
	// summed means that this was the sum of what it counted for each process.
	summed bool
	// doubt means that it missed somebody.
	doubt bool
	whole time.Time // when it was
	// listed is when the processes were listed; stale means that there may be others by now.
	listed time.Time
	stale  bool
	// owning is until when another process may own threads.
	owning  time.Time
	hurried time.Time // when others last said that they miss somebody
}

// watch looks who is there, while there is somebody to watch.
func (p *peers) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.changed:
		case <-timer.C:
		}
		if next := p.look(); next > 0 {
			timer.Reset(next)
		}
	}
}

// look looks once, and tells of those that are gone. It returns when to look again; 0 if
// there is nobody to watch.
func (p *peers) look() time.Duration {
	p.mu.Lock()
	now, pace := time.Now(), p.pace()
	c := p.crowd
	own := p.own
	whole := c.stale || c.doubt || !c.summed || c.contact != p.judge.contact ||
		now.Sub(c.whole) >= max(listEvery, wholeEvery*time.Duration(c.living))
	p.mu.Unlock()
	if now.After(c.owning) || !p.watchers.HeardDepartures() {
		return 0
	}
	doubt, err := false, error(nil)
	if !whole {
		whole, err = p.changedSince(&c, own)
	}
	if whole && err == nil {
		doubt, err = p.lookAtEach(own)
	}
	switch {
	case p.ctx.Err() != nil:
		return 0
	case err != nil && connection.Forbidden(err):
		p.refused(err)
		return refusedPause
	case doubt:
		return lookAgain
	}
	return p.untilTurn(pace) // after an error, contact is broken, which the connections notice themselves
}

// untilTurn returns how long it is until this process looks again. Each has its place within the pace, by the
// order of their names and the clock that they share: if all of them looked at the same moment, as they do once
// one is missed, a death after that would go unnoticed until the next one.
func (p *peers) untilTurn(pace time.Duration) time.Duration {
	now := time.Duration(p.clock.Stamp().Time().UnixNano())
	p.mu.Lock()
	defer p.mu.Unlock()
	before, all := 0, 1
	for name, o := range p.judge.others {
		switch {
		case o.gone:
			continue
		case name < p.own:
			before++
		}
		all++
	}
	d := (pace*time.Duration(before)/time.Duration(all) - now%pace + pace) % pace
	if d < pace/2 { // it has just looked
		d += pace
	}
	return d
}

// changedSince reports whether there are not as many as there were, or this process itself is not to
// be seen.
func (p *peers) changedSince(c *crowd, own string) (bool, error) {
	counts, err := p.count(p.ctx, p.keys.shown(own))
	if err != nil {
		return false, err
	}
	changed := counts[p.keys.allPresent()] != c.count
	if changed {
		p.mu.Lock()
		p.crowd.stale = true
		p.mu.Unlock()
	}
	return changed || counts[p.keys.presence(own)] < presences, nil
}

// lookAtEach asks for each process, and tells of those that are gone. It reports whether somebody is
// missing, so that the next look should come soon.
func (p *peers) lookAtEach(own string) (doubt bool, err error) {
	if err := p.list(own); err != nil {
		return false, err
	}
	p.mu.Lock()
	names := p.judge.watched()
	l := looking{contact: p.judge.contact, began: time.Now()}
	p.mu.Unlock()
	channels := p.keys.shown(own)
	for _, name := range names {
		channels = append(channels, p.keys.presence(name))
	}
	counts, err := p.count(p.ctx, channels)
	if err != nil {
		return false, err
	}
	l.own, l.ended = counts[channels[0]], time.Now()
	l.there = make(map[string]bool, len(names))
	sum := l.own
	var missing []string
	for i, name := range names {
		n := counts[channels[i+2]]
		sum += n
		if l.there[name] = n > 0; !l.there[name] && !p.isGone(name) {
			missing = append(missing, name)
		}
	}
	if l.needs, err = p.roster.needs(p.ctx, missing); err != nil {
		return false, err
	}
	p.mu.Lock()
	gone, doubt := p.judge.see(l)
	first := doubt && !p.crowd.doubt && l.ended.Sub(p.crowd.hurried) > hurryEvery
	p.crowd.count, p.crowd.contact = counts[channels[1]], l.contact
	p.crowd.summed = sum == p.crowd.count
	p.crowd.doubt, p.crowd.whole = doubt, l.ended
	if first {
		p.crowd.hurried = l.ended // this process need not look because of itself
	}
	p.mu.Unlock()
	if first {
		p.tell(newsMissing)
	}
	for _, name := range gone {
		p.log.Info("another server is gone: it has no connection to Redis any more", "process", name)
		p.watchers.Departed(store.Departure{Process: name}, "")
	}
	return doubt, nil
}

// isGone reports whether the process was judged to be gone.
func (p *peers) isGone(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.judge.others[name]
	return o != nil && o.gone
}

// list lists the processes that have a lease, if there may be others than before.
func (p *peers) list(own string) error {
	p.mu.Lock()
	c := p.crowd
	p.crowd.stale = false
	p.mu.Unlock()
	if !c.stale && time.Since(c.listed) < listEvery {
		return nil
	}
	now := p.clock.Stamp().Time().UnixMicro()
	by := &redis.ZRangeBy{Min: "(" + strconv.FormatInt(now, 10), Max: "+inf"}
	names, err := p.client.ZRangeByScore(p.ctx, p.keys.leases(), by).Result()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.crowd.stale = true
		return err
	}
	others := map[string]bool{}
	for _, name := range names {
		if name != own {
			others[name] = true
		}
	}
	p.judge.listed(others, time.Now())
	p.crowd.listed, p.crowd.living = time.Now(), len(others)+1
	return nil
}

// pace returns how often to look. The first process to miss another one tells the rest, so of many
// processes each needs to look less often; together they look at most 200 times a second. The
// caller holds mu.
func (p *peers) pace() time.Duration { return lookEvery * time.Duration(max(p.crowd.living, 4)) / 4 }

// hurry has this process look at each, because another one has said that it misses one.
func (p *peers) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.crowd.hurried) > hurryEvery {
		p.crowd.hurried, p.crowd.stale = now, true
		p.change()
	}
}

// listed notes whether others own threads, as a list of the threads that are owned says.
func (p *peers) listed(owners map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(owners, p.own)
	if p.crowd.owning = (time.Time{}); len(owners) > 0 {
		p.othersOwn()
	}
}

// othersOwn notes that another process owns threads. The caller holds mu.
func (p *peers) othersOwn() {
	before := p.crowd.owning
	now := time.Now()
	p.crowd.owning = now.Add(3 * max(p.sayEvery(), p.lease))
	if now.After(before) {
		p.crowd.stale = true
		p.change()
	}
}

// sayEvery is how often the process says at most that it claims threads, or has any: in a large fleet
// less often, because everybody hears it. The caller holds mu.
func (p *peers) sayEvery() time.Duration {
	return max(claimsEvery, time.Duration(p.crowd.living)*claimsEvery/10)
}

// goneNow returns those that were judged to be gone although their leases may last.
func (p *peers) goneNow() (names []string) {
	now := p.clock.Stamp()
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, o := range p.judge.others {
		if o.gone && (o.until.IsZero() || now.Before(o.until)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// remind counts the processes, and says that this one owns threads if it does. It is called now and
// then while the lease is renewed.
func (p *peers) remind(ctx context.Context) {
	p.mu.Lock()
	own := p.own
	p.mu.Unlock()
	now := strconv.FormatInt(p.clock.Stamp().Time().UnixMicro(), 10)
	pipe := p.client.Pipeline()
	owned := pipe.ZCard(ctx, p.keys.owned(own))
	living := pipe.ZCount(ctx, p.keys.leases(), "("+now, "+inf")
	if _, err := pipe.Exec(ctx); err != nil {
		return // the next time
	}
	p.mu.Lock()
	p.crowd.living = int(living.Val())
	p.mu.Unlock()
	if owned.Val() > 0 && p.claims(own) {
		p.tell(newsClaims + own)
	}
}

// census returns how many processes have a lease, as far as this one knows, and whether the last look
// did not count one of them.
func (p *peers) census() (living int, absent func(process string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	missing := map[string]bool{}
	for name, o := range p.judge.others {
		missing[name] = o.absent || o.gone
	}
	return p.crowd.living, func(process string) bool { return missing[process] }
}
