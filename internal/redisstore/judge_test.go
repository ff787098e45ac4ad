package redisstore

import (
	"slices"
	"testing"
	"time"
)

// glance is what a look at the process "p" finds, so many milliseconds after the test began.
type glance struct {
	at    int
	own   int64
	there bool
	// breaks means that a connection of this process breaks before the look, and during
	// means while it is made.
	breaks, during bool
	gone           bool // what is expected
}

// TestJudge: a process is gone if it was counted, and then missed twice, in one unbroken
// contact.
func TestJudge(t *testing.T) {
	t.Parallel()
	again := int(lookAgain / time.Millisecond)
	for name, looks := range map[string][]glance{
		"it dies": {{at: 0, own: 2, there: true}, {at: 20, own: 2},
			{at: 20 + again, own: 2, gone: true}},
		"the second look comes too early": {{at: 0, own: 2, there: true}, {at: 20, own: 2}, {at: 19 + again, own: 2},
			{at: 40, own: 2, gone: true}},
		"it was never counted": {{at: 0, own: 2}, {at: 20, own: 2}, {at: 40, own: 2}, {at: 60, own: 2}},
		"it comes back": {{at: 0, own: 2, there: true}, {at: 20, own: 2},
			{at: 25, own: 2, there: true}, {at: 40, own: 2}, {at: 60, own: 2, gone: true}},
		"nobody is there": {{at: 0, own: 2, there: true}, {at: 20}, {at: 40}, {at: 60, own: 2},
			{at: 80, own: 2}},
		"nobody is there, and it is back": {{at: 0, own: 2, there: true}, {at: 20}, {at: 40, own: 2, there: true},
			{at: 60, own: 2}, {at: 80, own: 2, gone: true}},
		"an own connection is away": {{at: 0, own: 2, there: true}, {at: 20, own: 1}, {at: 40, own: 1},
			{at: 60, own: 2}, {at: 80, own: 2, gone: true}},
		"an own connection breaks": {{at: 0, own: 2, there: true}, {at: 20, own: 2, breaks: true},
			{at: 40, own: 2}},
		"it breaks between the two looks": {{at: 0, own: 2, there: true}, {at: 20, own: 2},
			{at: 40, own: 2, breaks: true}, {at: 60, own: 2}},
		"it breaks during the second look": {{at: 0, own: 2, there: true}, {at: 20, own: 2},
			{at: 40, own: 2, during: true}, {at: 60, own: 2}},
		"it is gone once": {{at: 0, own: 2, there: true}, {at: 20, own: 2},
			{at: 40, own: 2, gone: true}, {at: 60, own: 2}, {at: 80, own: 2}},
		"it is gone twice": {
			{at: 0, own: 2, there: true}, {at: 20, own: 2}, {at: 40, own: 2, gone: true},
			{at: 60, own: 2, there: true}, {at: 80, own: 2}, {at: 100, own: 2, gone: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, begin := newJudge(), time.Now()
			j.watch("p", begin)
			for _, l := range looks {
				at := begin.Add(time.Duration(l.at) * time.Millisecond)
				if l.breaks {
					j.broken()
				}
				found := looking{
					contact: j.contact,
					began:   at,
					ended:   at,
					own:     l.own,
					there:   map[string]bool{"p": l.there},
				}
				if l.during {
					j.broken()
				}
				gone, _ := j.see(found)
				if slices.Equal(gone, []string{"p"}) != l.gone || j.isGone("p", begin) && l.there {
					t.Errorf("after %d ms: %q is gone", l.at, gone)
				}
			}
		})
	}
}

// TestJudgeForgives: a process that renews its lease lives, whatever has become of its
// connections, and is not judged again before it was counted.
func TestJudgeForgives(t *testing.T) {
	t.Parallel()
	j, now := newJudge(), time.Now()
	j.watch("p", now)
	see := func(there bool) []string {
		now = now.Add(20 * time.Millisecond)
		gone, _ := j.see(looking{contact: j.contact, began: now, ended: now, own: presences,
			there: map[string]bool{"p": there}})
		return gone
	}
	see(true)
	see(false)
	if gone := see(false); len(gone) != 1 {
		t.Fatalf("%q are gone", gone)
	}
	until := now.Add(time.Second)
	for range 3 {
		if !j.isGone("p", until) {
			t.Error("a process that has renewed nothing is alive")
		}
	}
	if j.isGone("p", until.Add(1)) || j.isGone("q", until) {
		t.Error("a process that has renewed its lease is gone, or one that nobody watches")
	}
	if gone := append(see(false), see(false)...); len(gone) > 0 {
		t.Errorf("%q are gone, which show no connection but live", gone)
	}
}

// TestJudgeWatchesOwners: those who own threads are watched, and those who have claimed one
// a moment ago.
func TestJudgeWatchesOwners(t *testing.T) {
	t.Parallel()
	j, now := newJudge(), time.Now()
	if !j.watch("claims", now) || j.watch("claims", now) {
		t.Error("who is watched first is not said once")
	}
	j.listed(map[string]bool{"owner": true}, now.Add(time.Second))
	if got := j.watched(); !slices.Equal(got, []string{"claims", "owner"}) {
		t.Errorf("%q are watched", got)
	}
	j.listed(map[string]bool{"owner": true}, now.Add(3*time.Second))
	if got := j.watched(); !slices.Equal(got, []string{"owner"}) {
		t.Errorf("%q are watched", got)
	}
	j.listed(nil, now.Add(4*time.Second))
	if got := j.watched(); len(got) > 0 {
		t.Errorf("%q are watched, who own nothing", got)
	}
}
