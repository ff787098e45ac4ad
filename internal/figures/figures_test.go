package figures

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/observe"
)

// handset is a clock that is set by hand.
type handset struct{ at time.Time }

func (c *handset) now() time.Time { return c.at }

func newRing() (*Ring, observe.Observer, *handset) {
	c := &handset{time.Date(2026, 1, 31, 12, 0, 3, 0, time.UTC)}
	r := New(clock.Plain(c.now))
	return r, r.Observer(), c
}

var nowhere holdfast.Iteration

// TestFigures: everything that is reported is counted, in all and in the step of its moment.
func TestFigures(t *testing.T) {
	r, o, c := newRing()
	in, cached, out, wrong := int64(100), int64(40), int64(7), int64(-5)
	for _, outcome := range []holdfast.Outcome{holdfast.OutcomeSuccess, holdfast.OutcomeInterrupt,
		holdfast.OutcomeCancelled, observe.OutcomeLeft} {
		o.RunStarted(nowhere, false, 0)
		o.RunEnded(nowhere, outcome, "", time.Second)
	}
	c.at = c.at.Add(10 * time.Second)
	o.RunStarted(nowhere, true, 0)
	o.RunStarted(nowhere, false, 0)
	o.RunEnded(nowhere, holdfast.OutcomeError, "model_failed", 2*time.Second)
	o.TakenOver(nowhere, observe.TakeoverDone, "")
	o.TakenOver(nowhere, observe.TakeoverLost, "")
	c.at = c.at.Add(time.Second)
	o.TakenOver(nowhere, observe.TakeoverCut, "recovery_gave_up")
	o.ModelCalled(nowhere, observe.ModelSuccess, 300*time.Millisecond, time.Second,
		&holdfast.Usage{InputTokens: &in, CachedInput: &cached, OutputTokens: &out})
	o.ModelCalled(nowhere, observe.ModelFailed, -1, time.Second, nil)
	o.ModelCalled(nowhere, observe.ModelSuccess, -1, time.Second, &holdfast.Usage{InputTokens: &wrong})
	o.Committed(nowhere, nil, 5*time.Millisecond, nil)
	o.Committed(nowhere, nil, time.Hour, holdfast.Errorf("store_unavailable", "no"))

	got := r.Figures()
	if want := (Runs{Running: 1, Started: 6, Finished: 1, Waiting: 1, Cancelled: 1, Failed: 2, Left: 1,
		TakenOver: 1}); got.Runs != want {
		t.Errorf("runs: %+v", got.Runs)
	}
	if len(got.Errors) != 2 || got.Errors[0] != (ErrorCount{"recovery_gave_up", 1, c.at}) ||
		got.Errors[1].Code != "model_failed" {
		t.Errorf("errors: %+v", got.Errors)
	}
	if got.Series.StepSeconds != 10 || len(got.Series.Points) != 2 {
		t.Fatalf("series: %+v", got.Series)
	}
	first, last := got.Series.Points[0], got.Series.Points[1]
	if first.At.Second() != 0 || first.Started != 4 || first.Finished != 1 || first.Waiting != 1 ||
		first.Cancelled != 1 || first.Run.Count != 3 || first.Running != 1 {
		t.Errorf("the first step: %+v", first)
	}
	if last.At.Second() != 10 || last.Started != 2 || last.Failed != 2 || last.Running != 2 || last.TokensIn != 100 ||
		last.TokensCached != 40 || last.TokensOut != 7 || last.FirstToken.Count != 1 || last.Commit.Count != 1 ||
		last.Run.Count != 1 {
		t.Errorf("the last step: %+v", last)
	}
	for name, c := range map[string]struct {
		got  *Spread
		want float64
	}{"first token": {last.FirstToken, 300}, "run": {last.Run, 2000}, "commit": {last.Commit, 5}} {
		if math.Abs(c.got.P50-c.want) > 0.06*c.want || c.got.P95 != c.got.P50 {
			t.Errorf("%s: %+v, want about %v", name, c.got, c.want)
		}
	}
}

// TestHour: the points are those of an hour without holes, whatever is reported when, and a
// clock that goes back does no harm.
func TestHour(t *testing.T) {
	for name, waits := range map[string][]time.Duration{
		"steadily":           slices.Repeat([]time.Duration{10 * time.Second}, 500),
		"often":              slices.Repeat([]time.Duration{time.Second}, 4000),
		"rarely":             slices.Repeat([]time.Duration{7 * time.Minute}, 20),
		"after a day":        {10 * time.Second, 24 * time.Hour},
		"just an hour":       {time.Hour - 10*time.Second},
		"more than an hour":  {time.Hour},
		"a clock goes back":  {time.Hour, -30 * time.Minute, time.Hour, -time.Second},
		"after some minutes": {2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r, o, c := newRing()
			began, latest := c.at, c.at
			for _, wait := range waits {
				o.RunStarted(nowhere, false, 0)
				if c.at = c.at.Add(wait); c.at.After(latest) {
					latest = c.at
				}
			}
			points := r.Figures().Series.Points
			want := min(int(latest.Truncate(step).Sub(began.Truncate(step))/step)+1, steps)
			if len(points) != want {
				t.Fatalf("%d points, want %d", len(points), want)
			}
			if last := points[len(points)-1]; !last.At.Equal(latest.Truncate(step)) {
				t.Errorf("the last point is of %s", last.At)
			}
			for i := range points[1:] {
				if points[i+1].At.Sub(points[i].At) != step {
					t.Fatalf("there is a hole after %s", points[i].At)
				}
			}
		})
	}
}

// TestCodesAreBounded: codes that somebody invents do not fill the memory.
func TestCodesAreBounded(t *testing.T) {
	r, o, _ := newRing()
	for i := range 1000 {
		o.RunStarted(nowhere, false, 0)
		o.RunEnded(nowhere, holdfast.OutcomeError, string(rune('a'+i)), 0)
	}
	if f := r.Figures(); len(f.Errors) != maxCodes || f.Runs.Failed != 1000 {
		t.Errorf("%d codes, %d failed", len(f.Errors), f.Runs.Failed)
	}
}

// TestSpread: what is said of many times is near to what it is.
func TestSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var counted times
		var all []time.Duration
		most := math.Exp2(random.Float64() * 30)
		for range 1 + random.IntN(500) {
			d := shortest + time.Duration(random.Float64()*most*float64(shortest))
			all = append(all, d)
			counted.add(d)
		}
		slices.Sort(all)
		s := counted.spread()
		for share, got := range map[float64]float64{0.50: s.P50, 0.95: s.P95} {
			exact := float64(all[int(math.Ceil(share*float64(len(all))))-1]) / float64(time.Millisecond)
			if math.Abs(got-exact) > 0.06*exact+0.01 {
				t.Fatalf("%v of %d times: %v, want %v", share, len(all), got, exact)
			}
		}
	}
	var odd times
	odd.add(-time.Second)
	odd.add(1000 * time.Hour)
	if s := odd.spread(); s.Count != 2 || s.P50 > 0.02 || s.P95 < 80_000_000 {
		t.Errorf("%+v", s)
	}
}

func BenchmarkReport(b *testing.B) {
	r := New(clock.Wall)
	o := r.Observer()
	b.ReportAllocs()
	for b.Loop() {
		o.Committed(nowhere, nil, time.Millisecond, nil)
	}
}
