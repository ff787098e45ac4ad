package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The loads of the bench, and the bars that their figures are held to.

// scenario is a load, and the figures that are taken from it.
type scenario struct {
	name, about string
	targets     []string
	agents      string // an agents file for Holdfast, in which {model} is the model's URL
	before      func(t *target) error
	run         func(t *target) (*result, error)
	figures     []figure
	// turns, if more than -repeat, is how often each server is measured.
	turns int
	// against is the server that ratios compare with, onFloor if empty.
	against string
}

// figure is a number with bars: for the number itself, for its ratio to another server's, or
// for what it adds to the model's own time to its first token. None may be worse than that of
// the build before.
type figure struct {
	name         string
	of           func(r *result) float64
	limits       limits
	ratio, added bool
	pooled       bool // it is taken from all turns together, as rare events must be
	rare         bool // it is one event, so it is only shown
	more         bool // more is better
}

// limits are the bars of the targets that have one.
type limits map[string]float64

// value is the figure of a target: the median of its turns, or what all of them give.
func (f figure) value(turns []*result) float64 {
	if f.pooled {
		return f.of(inSum(turns))
	}
	var all []float64
	for _, r := range turns {
		all = append(all, f.of(r))
	}
	return median(all)
}

// times compares a figure of two targets. Other work of the machine affects both servers
// of a turn, so the spread is that of the turns' ratios.
func (f figure) times(of, other []*result) (t times) {
	var all []float64
	for i := range min(len(of), len(other)) {
		all = append(all, f.of(of[i])/f.of(other[i]))
	}
	if len(all) == 0 {
		return t
	}
	t = times{middle: median(all), least: slices.Min(all), most: slices.Max(all)}
	if f.pooled {
		t.middle = f.value(of) / f.value(other)
	}
	return t
}

// times are ratios: the one that counts, and the least and the most of the turns.
type times struct{ middle, least, most float64 }

func valueOf(name string) func(r *result) float64 {
	return func(r *result) float64 { return r.values[name] }
}

func value(name string, bars limits) figure {
	return figure{name: name, of: valueOf(name), limits: bars}
}

func latencyOf(p float64) func(r *result) float64 {
	return func(r *result) float64 { return ms(percentile(r.latency, p)) }
}

// latency is how old tokens are when they come, compared with the floor's if there is a bar.
func latency(p float64, bars limits) figure {
	name := fmt.Sprintf("token latency p%g, ms", p)
	return figure{
		name:   name,
		of:     latencyOf(p),
		limits: bars,
		ratio:  true,
		pooled: true,
	}
}

// latencies are the usual figures of streams.
func latencies(p99 limits) []figure {
	longest := figure{name: "longest wait of a token, ms", of: latencyOf(100), pooled: true, rare: true}
	return []figure{latency(50, nil), latency(99, p99), longest}
}

// others are the figures of streams beside a crowd: their latency, compared with the floor's.
func others() []figure {
	return []figure{
		{name: "others' token latency p99, ms", of: latencyOf(99), limits: limits{onRedis: 1.5}, ratio: true},
		{name: "others' token latency p50, ms", of: latencyOf(50)},
	}
}

func firstOf(p float64) func(r *result) float64 {
	return func(r *result) float64 { return ms(percentile(r.first, p)) }
}

// first is the time to the first token, compared with the floor's.
func first(p float64, bars limits) figure {
	return figure{name: fmt.Sprintf("time to first token p%g, ms", p), of: firstOf(p), limits: bars, ratio: true}
}

// added is what a server adds to the model's own time to its first token.
func added(limit float64) figure {
	f := first(50, limits{onRedis: limit})
	f.ratio, f.added = false, true
	return f
}

func perToken(bars limits) figure {
	return figure{name: "CPU per token, µs", of: (*result).cpuPerToken, limits: bars, ratio: true}
}

// scenarios returns all scenarios with their bars.
func scenarios() []scenario { return slices.Concat(streams(), crowds(), iterations(), costsOfRedis()) }

var (
	all       = []string{onFloor, onRedis, onFile}
	withRedis = []string{onFloor, onRedis}
)

// streams are about what a token costs, and how soon it is shown.
func streams() []scenario {
	return []scenario{
		{
			name:    "saturated",
			about:   "16 clients, 200 tokens a run, a model without pauses",
			targets: all,
			run:     saturated,
			figures: []figure{
				perToken(limits{onRedis: 2.5}),
				{name: "tokens per second", of: (*result).tokensPerSecond, more: true},
			},
		},
		{
			name:    "paced1k",
			about:   "20 streams of 50 tokens/s",
			targets: all,
			run:     paced(20),
			figures: append(latencies(nil), perToken(limits{onRedis: 1.8, onFile: 2.2})),
		},
		{
			name:    "paced5k",
			about:   "100 streams of 50 tokens/s",
			targets: all,
			run:     pacedCosts(100),
			figures: append(latencies(limits{onRedis: 1.5, onFile: 2.5}), perToken(limits{onRedis: 1.5, onFile: 1.8}),
				value("Redis commands a token", limits{onRedis: 3})),
		},
		{
			name:    "quiet",
			about:   "one client, answers of one token",
			targets: all,
			run:     quiet,
			figures: append(latencies(nil), added(1.2)),
		},
		{
			name:    "full",
			about:   "the same with 1,000,000 foreign keys in Redis",
			targets: withRedis,
			before:  populate,
			run:     quiet,
			figures: []figure{added(1.2)},
		},
		{
			name:    "idle",
			about:   "streams that wait",
			targets: all,
			run:     idle,
			figures: []figure{value("KB per idle stream", limits{onRedis: 61})},
			turns:   7, // the memory of a process grows in steps
		},
	}
}

// crowds are about many at once.
func crowds() []scenario {
	return []scenario{
		{
			name:    "burst",
			about:   "100 runs that start at once, 100 tokens of 50/s each",
			targets: withRedis,
			run:     burst,
			turns:   5,
			figures: append(latencies(nil), first(50, limits{onRedis: 1.8}), first(99, nil)),
		},
		{
			name:    "together",
			about:   "20 streams of 50 tokens/s that start at once",
			targets: withRedis,
			run:     together,
			turns:   5,
			figures: append(latencies(nil), perToken(limits{onRedis: 2}), first(50, limits{onRedis: 1.6})),
		},
		{
			name:    "starts",
			about:   "200 runs that start at once beside 20 streams of 50 tokens/s",
			targets: withRedis,
			run:     starts,
			turns:   5,
			figures: append(others(), value("a run has begun, p50, ms", nil), value("the last run has begun, ms", nil)),
		},
		{
			name:    "storm",
			about:   "2,000 reconnects at once beside 20 streams of 50 tokens/s",
			targets: withRedis,
			run:     storm,
			turns:   5,
			figures: append(others(), value("a client is up to date, p50, ms", nil),
				value("the last client is up to date, ms", nil), value("CPU of the storm, ms", nil)),
		},
	}
}

// iterations are about the time that an iteration takes.
func iterations() []scenario {
	return []scenario{
		{
			name:    "tools",
			about:   "4 clients, 10 rounds of two tool calls, then 20 tokens",
			targets: all,
			run:     tooled,
			figures: []figure{
				value("ms per iteration", limits{onRedis: 1.7, onFile: 2.2}),
				value("CPU per iteration, ms", limits{onRedis: 0.4, onFile: 0.5}),
			},
		},
		{
			name:    "long",
			about:   "one run of 100 rounds of one call, 50 tokens each",
			targets: []string{onFile, onSynced, onRedis},
			run:     longRun,
			against: onSynced,
			figures: []figure{
				{name: "ms per iteration", of: valueOf("ms per iteration"), limits: limits{onFile: 1.5}, ratio: true},
				value("MB to disk", limits{onFile: 1.2}),
			},
		},
	}
}

// costsOfRedis are about how much Redis is used.
func costsOfRedis() []scenario {
	return []scenario{
		{
			name:    "growth",
			about:   "one thread, one call an iteration",
			targets: withRedis,
			run:     growth,
			figures: []figure{
				value("commands per iteration at 10", limits{onRedis: 5}),
				value("commands per iteration at 90", limits{onRedis: 5}),
				value("requests per iteration at 10", nil),
				value("requests per iteration at 90", nil),
				value("bytes per iteration at 10", limits{onRedis: 2048}),
				value("bytes per iteration at 90", limits{onRedis: 2048}),
			},
		},
		{
			name:    "rounds",
			about:   "one run of 100 rounds of one call of a pure tool, results of 200 characters, 50 words each",
			targets: withRedis,
			agents:  reporter("pure"),
			run:     reports(100),
			figures: perRound(5, 2560),
		},
		{
			name:    "effects",
			about:   "the same with a tool that has effects",
			targets: withRedis,
			agents:  reporter("idempotent"),
			run:     reports(100),
			figures: perRound(7.5, 3072),
		},
		{
			name:    "slow",
			about:   "one answer of 100 tokens, 20 ms apart",
			targets: []string{onFloor, onRedis, onWindow},
			run:     slow,
			figures: []figure{
				{name: "commands per slow answer", of: valueOf("commands"), limits: limits{onWindow: 40}},
				{name: "requests per slow answer", of: valueOf("requests")},
				{name: "bytes per slow answer", of: valueOf("bytes")},
			},
		},
	}
}

// custom returns a load of the user's choice, for five seconds, without bars.
func custom(runs, rate int) scenario {
	every := time.Second / time.Duration(max(rate, 1))
	return scenario{
		name:    "custom",
		about:   fmt.Sprintf("%d runs of %d tokens/s", runs, rate),
		targets: all,
		run: func(t *target) (*result, error) {
			return crowd(t, runs, 1, every, script{tokens: 5 * rate, every: every})
		},
		figures: append(latencies(nil), perToken(nil)),
	}
}

// populate puts keys into Redis that belong to nobody.
func populate(t *target) error {
	return t.redis.client.Do(context.Background(), "DEBUG", "POPULATE", 1_000_000, "foreign").Err()
}
