package redisstore

import (
	"testing"
	"time"
)

// TestLinkNeeds: a process asks for as long as its link needs, whatever else was slow at times.
func TestLinkNeeds(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		trips, connects []time.Duration
		want            time.Duration
	}{
		"nothing is known":           {nil, []time.Duration{3 * ms}, 0},
		"it has not connected again": {[]time.Duration{10 * ms}, nil, 35 * ms},
		"a plain link":               {[]time.Duration{10 * ms, 12 * ms}, []time.Duration{31 * ms, 45 * ms}, 36 * ms},
		"with TLS":                   {[]time.Duration{10 * ms}, []time.Duration{52 * ms}, 57 * ms},
		"a connection that was slow": {[]time.Duration{1 * ms}, []time.Duration{300 * ms}, 7500 * time.Microsecond},
		"renewals that were broken":  {[]time.Duration{900 * ms, 10 * ms, 800 * ms}, []time.Duration{30 * ms}, 35 * ms},
		"a link that is slow by now": {[]time.Duration{1 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms}, nil,
			140 * ms},
		"a link that is fast by now":  {[]time.Duration{40 * ms, 2 * ms}, []time.Duration{120 * ms, 6 * ms}, 7 * ms},
		"greeted before it was there": {[]time.Duration{20 * ms}, []time.Duration{1 * ms}, 70 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l link
			for _, d := range c.trips {
				l.tripped(d)
			}
			for _, d := range c.connects {
				l.connected(d)
			}
			if got := l.needs(); got != c.want {
				t.Errorf("it needs %s, want %s", got, c.want)
			}
		})
	}
}

// TestJudgeWaitsForSlowLinks: a process that says that it needs long is missed for that long before
// it is gone, and is not if it comes back in time.
func TestJudgeWaitsForSlowLinks(t *testing.T) {
	t.Parallel()
	j, begin := newJudge(), time.Now()
	j.watch("p", begin)
	needs := map[string]time.Duration{"p": 200 * time.Millisecond}
	look := func(at int, there bool, want ...string) {
		t.Helper()
		when := begin.Add(time.Duration(at) * time.Millisecond)
		gone, _ := j.see(looking{
			contact: j.contact,
			began:   when,
			ended:   when,
			own:     2,
			there:   map[string]bool{"p": there},
			needs:   needs,
		})
		if len(gone) != len(want) {
			t.Errorf("after %d ms %q is gone, want %q", at, gone, want)
		}
	}
	look(0, true)
	look(20, false)
	look(230, false)
	look(231, true)
	look(240, false)
	look(451, false)
	look(452, false, "p")
}
