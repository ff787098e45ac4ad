package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSteady: a clock that is put back goes on at half its speed until it is right again, and
// one that is put forward is right at once.
func TestSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		off := time.Duration(0)
		now := Steady(func() time.Time { return time.Now().Add(off) })
		start := time.Now()
		for _, step := range []struct{ after, off, want time.Duration }{
			{0, 0, 0},
			{10 * time.Second, 0, 10 * time.Second},
			{0, -6 * time.Second, 10 * time.Second},
			{time.Second, -6 * time.Second, 10500 * time.Millisecond},
			{5 * time.Second, -6 * time.Second, 13 * time.Second},
			{6 * time.Second, -6 * time.Second, 16 * time.Second}, // 22 − 6: it is right
			{time.Second, -6 * time.Second, 17 * time.Second},
			{time.Second, time.Hour, time.Hour + 24*time.Second},
			{time.Minute, 0, time.Hour + 54*time.Second},
		} {
			time.Sleep(step.after)
			off = step.off
			if got := now().Time().Sub(start); got != step.want {
				t.Errorf("%+v: it shows %s", step, got)
			}
		}
	})
}

// TestStampsMeasureNothing: a stamp has no monotonic reading that would make a duration of two.
func TestStampsMeasureNothing(t *testing.T) {
	at := time.Now()
	for name, s := range map[string]Stamp{"wall": Wall(), "at": At(at), "steady": Steady(time.Now)(),
		"plain": Plain(time.Now)(), "added": At(at).Add(time.Second)} {
		if s.Time() != s.Time().Round(0) {
			t.Errorf("%s has a monotonic reading", name)
		}
	}
}

// TestMoment: what has passed is what passed by the monotonic clock or on the wall, whichever
// is more.
func TestMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Now()
		time.Sleep(time.Second)
		if m.Elapsed() != time.Second || m.Ran() != time.Second || !m.Before(Now()) || m.Never() ||
			!(Moment{}).Never() {
			t.Errorf("after a second %s and %s", m.Elapsed(), m.Ran())
		}
	})
	at := time.Now()
	here, wall := Moment{at}, Moment{at.Round(0)}
	if d := here.To(Moment{wall.at.Add(time.Hour)}); d != time.Hour {
		t.Errorf("a machine that slept for an hour: %s", d)
	}
	if (Moment{}).Elapsed() < 1000*time.Hour {
		t.Error("the zero Moment was not long ago")
	}
}
