package redisstore

import (
	"slices"
	"time"
)

// The conclusions from the numbers of subscribers. A process is gone if it was counted, and
// then was not in two looks or more, as far apart as it needs to come back (link.go), while
// this process itself was there all the time: if its own connections have broken in between,
// Redis may have been away, and the others may only be slower to come back. A process that was
// never counted is not judged: it may be of a version that shows nothing.

// lookAgain is how long after a look that misses a process the next one comes. A process
// whose connections all broke at once is back by then, unless its link is slow.
const lookAgain = 12 * time.Millisecond

const (
	// presences is how many connections show that a process lives, so that one that breaks
	// does not look like a death.
	presences = 2
	// claimsEvery is how often a process says at most that it claims threads.
	claimsEvery = time.Second
	// goneFor is how long a process that is gone is remembered.
	goneFor = 10 * time.Minute
)

// judge knows the processes that are watched. It is not safe for concurrent use.
type judge struct {
	// contact counts the times of unbroken contact, from 1.
	contact int
	others  map[string]*other
}

// other is another process.
type other struct {
	heard   time.Time // when it was last known to claim threads
	counted int       // the contact in which it was last counted; 0 if it never was
	missing time.Time // when a look missed it first; zero if the last one counted it
	// needs is how long it must have been missing, as it said itself.
	needs time.Duration
	// absent means that the last look did not count it, even if none ever has.
	absent bool
	gone   bool
	until  time.Time // when its lease ends, as it was first read after it was gone
}

// looking is a look: what was counted, and when.
type looking struct {
	contact      int // at its beginning
	began, ended time.Time
	own          int64           // this process's own connections
	there        map[string]bool // the others that were asked for
	// needs is how long those that are not there need to come back.
	needs map[string]time.Duration
}

func newJudge() judge { return judge{contact: 1, others: map[string]*other{}} }

// broken notes that a connection of this process has broken.
func (j *judge) broken() { j.contact++ }

// watched returns the processes to look for, in order.
func (j *judge) watched() []string {
	names := make([]string, 0, len(j.others))
	for name := range j.others {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// watch has a process watched; it reports whether it was not before.
func (j *judge) watch(name string, now time.Time) bool {
	o := j.others[name]
	if o != nil {
		o.heard = now
		return false
	}
	j.others[name] = &other{heard: now}
	return true
}

// listed has those who have a lease watched, and forgets who has none, unless it was heard of so
// recently that the list may not have it, or was judged to be gone not long ago.
func (j *judge) listed(living map[string]bool, now time.Time) {
	for name := range living {
		if j.others[name] == nil {
			j.others[name] = &other{}
		}
	}
	for name, o := range j.others {
		if !living[name] && now.Sub(o.heard) > 2*claimsEvery && (!o.gone || now.Sub(o.missing) > goneFor) {
			delete(j.others, name)
		}
	}
}

// see takes in a look. It returns who is gone since, and whether somebody is missing, so
// that the next look should come soon.
func (j *judge) see(l looking) (gone []string, doubt bool) {
	right := l.own >= presences && l.contact == j.contact
	if l.own == 0 {
		j.broken()
	}
	for name, o := range j.others {
		there, asked := l.there[name]
		o.absent = asked && !there
		switch {
		case !asked:
		case there && right:
			*o = other{heard: o.heard, counted: l.contact}
		case there || !right:
			o.missing = time.Time{}
		case o.gone || o.counted != l.contact:
		case o.missing.IsZero():
			o.missing, o.needs, doubt = l.ended, lookAgain+l.needs[name], true
		case l.began.Sub(o.missing) < o.needs:
			doubt = true
		default:
			o.gone = true
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone, doubt
}

// isGone reports whether the process is gone; until is when its lease ends. If it has
// renewed the lease, it lives, and only its connections are gone.
func (j *judge) isGone(name string, until time.Time) bool {
	o := j.others[name]
	switch {
	case o == nil || !o.gone:
		return false
	case o.until.IsZero():
		o.until = until
	case until.After(o.until):
		*o = other{heard: o.heard}
		return false
	}
	return true
}
