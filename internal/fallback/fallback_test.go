package fallback_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/fallback"
)

// row is one line of the table of failures.
type row struct {
	kind   failure.Kind
	tries  int
	others fallback.Others
	after  time.Duration
	want   string
}

// TestTable: what follows a failure, by its kind, how often the model was tried, and what
// other models there are. At most 10 tries are allowed.
func TestTable(t *testing.T) {
	none, broken, healthy := fallback.NoOthers, fallback.Broken, fallback.Healthy
	for _, r := range []row{
		// A cut is tried again at once, twice.
		{failure.Cut, 1, healthy, 0, "retry 0s"},
		{failure.Cut, 2, healthy, 0, "retry 0s"},
		{failure.Cut, 3, healthy, 0, "fallback 0s"},
		{failure.Cut, 3, broken, 0, "fallback 0s"},
		{failure.Cut, 2, none, 0, "retry 0s"},
		{failure.Cut, 3, none, 0, "retry 200ms"},
		{failure.Cut, 4, none, 0, "retry 400ms"},
		{failure.Cut, 10, none, 0, "end 0s"},
		// Overload waits longer each time, and less often if another model is healthy.
		{failure.Overloaded, 1, none, 0, "retry 200ms"},
		{failure.Overloaded, 2, none, 0, "retry 400ms"},
		{failure.Overloaded, 9, none, 0, "retry 10s"},
		{failure.Overloaded, 10, none, 0, "end 0s"},
		{failure.Overloaded, 3, broken, 0, "retry 800ms"},
		{failure.Overloaded, 4, broken, 0, "fallback 0s"},
		{failure.Overloaded, 1, healthy, 0, "retry 200ms"},
		{failure.Overloaded, 2, healthy, 0, "fallback 0s"},
		{failure.Overloaded, 1, healthy, 5 * time.Second, "fallback 0s"},
		{failure.Overloaded, 1, broken, 5 * time.Second, "retry 5s"},
		{failure.Overloaded, 1, broken, 21 * time.Second, "fallback 0s"},
		{failure.Overloaded, 1, none, 21 * time.Second, "retry 21s"},
		{failure.Overloaded, 1, none, time.Hour, "retry 2m0s"},
		{"", 2, none, 0, "retry 400ms"},
		{"", 2, healthy, 0, "fallback 0s"},
		{"new", 2, healthy, 0, "fallback 0s"},
		// A limit of the rate is waited for if that is short.
		{failure.Rate, 1, healthy, 20 * time.Second, "retry 20s"},
		{failure.Rate, 3, healthy, 20 * time.Second, "retry 20s"},
		{failure.Rate, 4, healthy, 20 * time.Second, "fallback 0s"},
		{failure.Rate, 1, healthy, 21 * time.Second, "fallback 0s"},
		{failure.Rate, 1, broken, 21 * time.Second, "fallback 0s"},
		{failure.Rate, 1, none, 21 * time.Second, "retry 21s"},
		{failure.Rate, 1, none, time.Hour, "retry 2m0s"},
		{failure.Rate, 1, healthy, 0, "retry 200ms"},
		{failure.Rate, 2, healthy, 0, "fallback 0s"},
		{failure.Rate, 2, broken, 0, "retry 400ms"},
		// No other attempt of the same model helps.
		{failure.Quota, 1, healthy, 0, "fallback 0s"},
		{failure.Quota, 1, broken, time.Second, "fallback 0s"},
		{failure.Quota, 1, none, time.Second, "end 0s"},
		{failure.Auth, 1, healthy, 0, "fallback 0s"},
		{failure.Auth, 1, none, 0, "end 0s"},
		{failure.TooLong, 1, healthy, 0, "shrink 0s"},
		{failure.TooLong, 1, none, 0, "shrink 0s"},
		{failure.Refused, 1, healthy, 0, "end 0s"},
		{failure.Invalid, 1, healthy, 0, "end 0s"},
	} {
		f := fallback.Failure{
			Kind:       r.kind,
			Retryable:  true,
			RetryAfter: r.after,
			Tries:      r.tries,
			MaxTries:   10,
			Others:     r.others,
		}
		d := fallback.Decide(f, nil)
		if got := fmt.Sprint(d.Step, " ", d.Wait); got != r.want {
			t.Errorf("%q, try %d, others %d, asked to wait %s: %s, want %s", r.kind, r.tries, r.others, r.after, got,
				r.want)
		}
	}
}

// TestSwitches: what the table leaves to a setting, or to what was tried before.
func TestSwitches(t *testing.T) {
	for name, c := range map[string]struct {
		f    fallback.Failure
		want fallback.Step
	}{
		"refused, if another may": {fallback.Failure{Kind: failure.Refused, RefusedToo: true, Others: fallback.Healthy},
			fallback.FallBack},
		"refused, if there is no other": {fallback.Failure{Kind: failure.Refused, RefusedToo: true}, fallback.End},
		"too long, shown less": {fallback.Failure{Kind: failure.TooLong, Shrunk: true, Others: fallback.Healthy},
			fallback.FallBack},
		"too long, shown less, no other": {fallback.Failure{Kind: failure.TooLong, Shrunk: true}, fallback.End},
		"the provider says not to retry": {fallback.Failure{Kind: failure.Overloaded, Tries: 1, MaxTries: 3,
			Others: fallback.Healthy},
			fallback.FallBack},
		"a mistake of a model": {fallback.Failure{Tries: 1, MaxTries: 3, Others: fallback.Healthy},
			fallback.FallBack},
		"a mistake of the only model": {fallback.Failure{Tries: 1, MaxTries: 3}, fallback.End},
		"one try is allowed, with others": {fallback.Failure{Kind: failure.Cut, Retryable: true, Tries: 1, MaxTries: 1,
			Others: fallback.Broken},
			fallback.FallBack},
		"one try is allowed, and no others": {fallback.Failure{Kind: failure.Cut, Retryable: true, Tries: 1,
			MaxTries: 1},
			fallback.End},
	} {
		if d := fallback.Decide(c.f, nil); d.Step != c.want || d.Wait != 0 {
			t.Errorf("%s: %+v, want %s", name, d, c.want)
		}
	}
}

// TestAlways: whatever happened, a model is not asked more often than allowed, nobody falls
// back to nothing, and nothing waits longer than two minutes.
func TestAlways(t *testing.T) {
	kinds := append(failure.Kinds(), "", "new")
	for _, kind := range kinds {
		for tries := 1; tries <= 6; tries++ {
			for _, others := range []fallback.Others{fallback.NoOthers, fallback.Broken, fallback.Healthy} {
				for bits := range 8 {
					for _, after := range []time.Duration{0, time.Millisecond, 20 * time.Second, time.Minute,
						time.Hour} {
						f := fallback.Failure{
							Kind: kind, Retryable: bits&1 > 0, Shrunk: bits&2 > 0, RefusedToo: bits&4 > 0,
							RetryAfter: after, Tries: tries, MaxTries: 5, Others: others,
						}
						d := fallback.Decide(f, nil)
						switch {
						case d.Step == fallback.Retry && (tries >= 5 || !f.Retryable),
							d.Step == fallback.FallBack && others == fallback.NoOthers,
							d.Step == fallback.Shrink && (f.Shrunk || kind != failure.TooLong),
							d.Step != fallback.Retry && d.Wait != 0,
							d.Wait < 0 || d.Wait > 2*time.Minute,
							!slices.Contains(fallback.Steps(), d.Step):
							t.Fatalf("%+v: %+v", f, d)
						}
					}
				}
			}
		}
	}
}

// TestJitter: many runs do not try again at the same moment; what a provider asks for is
// not shortened.
func TestJitter(t *testing.T) {
	f := fallback.Failure{Kind: failure.Overloaded, Retryable: true, Tries: 2, MaxTries: 5}
	for random, want := range map[float64]time.Duration{0: 200 * time.Millisecond, 0.5: 300 * time.Millisecond,
		1: 400 * time.Millisecond} {
		if d := fallback.Decide(f, func() float64 { return random }); d.Wait != want {
			t.Errorf("random %v: %s, want %s", random, d.Wait, want)
		}
	}
	f.RetryAfter = 3 * time.Second
	if d := fallback.Decide(f, func() float64 { return 0 }); d.Wait != 3*time.Second {
		t.Errorf("asked for 3s: %s", d.Wait)
	}
}

type named struct {
	holdfast.Model
	provider, model string
}

func (n named) ModelName() (string, string) { return n.provider, n.model }

type keyed struct {
	named
	key string
}

func (k keyed) CircuitKey() string { return k.key }

// TestChain: every model has a name of its own in its agent, and a circuit that it shares
// with no other model.
func TestChain(t *testing.T) {
	gpt := named{provider: "openai", model: "gpt"}
	chain := fallback.ChainOf(&holdfast.Agent{
		Name:  "shop",
		Model: gpt,
		Fallbacks: []holdfast.Model{
			keyed{named{provider: "anthropic", model: "opus"}, "k1"},
			gpt,
			holdfast.ModelFunc(nil),
			named{},
		},
	})
	var got []string
	for _, m := range chain {
		got = append(got, m.Name+" | "+m.Provider+" "+m.ID+" | "+m.Circuit)
	}
	want := []string{
		"openai/gpt | openai gpt | openai/gpt",
		"anthropic/opus | anthropic opus | anthropic/opus k1",
		"openai/gpt#2 | openai gpt | openai/gpt",
		"custom/shop | custom shop | custom/shop",
		"custom/shop#2 | custom shop | custom/shop#2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	for name, at := range map[string]int{"": 0, "gone/x": 0, "openai/gpt": 0, "anthropic/opus": 1, "openai/gpt#2": 2} {
		if i := chain.Find(name); i != at {
			t.Errorf("%q is at %d, want %d", name, i, at)
		}
	}
}

// TestPick: the model at hand, or the next with a closed circuit in a circle, or the one
// whose circuit half-opens first.
func TestPick(t *testing.T) {
	chain := fallback.Chain{{Circuit: "a"}, {Circuit: "b"}, {Circuit: "c"}}
	for _, c := range []struct {
		now     int
		open    map[string]int // until when, in seconds
		over    []int
		at      int
		healthy bool
	}{
		{0, nil, nil, 0, true},
		{1, nil, nil, 1, true},
		{0, map[string]int{"a": 9}, nil, 1, true},
		{1, map[string]int{"b": 9, "c": 9}, nil, 0, true},
		{0, map[string]int{"a": 9, "b": 7, "c": 8}, nil, 1, false},
		{0, map[string]int{"a": 7, "b": 7, "c": 7}, nil, 0, false},
		{2, map[string]int{"a": 7, "b": 7, "c": 7}, nil, 2, false},
		{0, map[string]int{"b": 9}, []int{0}, 2, true},
		{0, map[string]int{"b": 9}, []int{0, 2}, 1, false},
		{0, nil, []int{0, 1, 2}, -1, false},
	} {
		open := func(circuit string) (time.Time, bool) {
			s, ok := c.open[circuit]
			return time.Unix(int64(s), 0), ok
		}
		at, healthy := chain.Pick(c.now, func(i int) bool { return slices.Contains(c.over, i) }, open)
		if at != c.at || healthy != c.healthy {
			t.Errorf("at %d, open %v, over %v: %d %v, want %d %v", c.now, c.open, c.over, at, healthy, c.at, c.healthy)
		}
	}
}
