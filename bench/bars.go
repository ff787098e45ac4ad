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
	// judged is the server that the bars apply to, onRedis if empty, and against the one
	// that ratios compare it with, onFloor if empty.
	judged, against string
}

// figure is a number with a bar: for the number itself, for its ratio to another
// server's, or for what it adds to the model's own time to its first token.
type figure struct {
	name         string
	of           func(r *result) float64
	limit        float64
	ratio, added bool
}

func valueOf(name string) func(r *result) float64 {
	return func(r *result) float64 { return r.values[name] }
}

func value(name string, limit float64) figure {
	return figure{name: name, of: valueOf(name), limit: limit}
}

func latencyOf(p float64) func(r *result) float64 {
	return func(r *result) float64 { return ms(percentile(r.latency, p)) }
}

func latency(p float64, limit float64) figure {
	return figure{name: fmt.Sprintf("token latency p%g, ms", p), of: latencyOf(p), limit: limit}
}

// others are the figures of streams beside a crowd: their latency, compared with the floor's.
func others() []figure {
	return []figure{
		{name: "others' token latency p99, ms", of: latencyOf(99), limit: 1.5, ratio: true},
		{name: "others' token latency p50, ms", of: latencyOf(50)},
	}
}

func firstOf(p float64) func(r *result) float64 {
	return func(r *result) float64 { return ms(percentile(r.first, p)) }
}

// added is what a server adds to the model's own time to its first token.
func added(limit float64) figure {
	return figure{name: "time to first token p50, ms", of: firstOf(50), limit: limit, added: true}
}

func perIteration(limit float64) figure {
	const name = "ms per iteration"
	return figure{name: name, of: valueOf(name), limit: limit, ratio: true}
}

func perToken(limit float64) figure {
	return figure{name: "CPU per token, µs", of: (*result).cpuPerToken, limit: limit, ratio: true}
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
			figures: []figure{perToken(2.5), {name: "tokens per second", of: (*result).tokensPerSecond}},
		},
		{
			name:    "paced1k",
			about:   "20 streams of 50 tokens/s",
			targets: all,
			run:     paced(20),
			figures: []figure{perToken(1.6), latency(50, 0), latency(99, 2)},
		},
		{
			name:    "paced5k",
			about:   "100 streams of 50 tokens/s",
			targets: all,
			run:     paced(100),
			figures: []figure{perToken(0), latency(50, 0), latency(99, 6)},
		},
		{
			name:    "quiet",
			about:   "one client, answers of one token",
			targets: all,
			run:     quiet,
			figures: []figure{added(1.2), latency(50, 0), latency(99, 0)},
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
			figures: []figure{value("KB per idle stream", 80)},
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
			figures: []figure{
				{name: "time to first token p50, ms", of: firstOf(50), limit: 1.6, ratio: true},
				{name: "time to first token p99, ms", of: firstOf(99), ratio: true},
				latency(99, 0),
			},
		},
		{
			name:    "together",
			about:   "20 streams of 50 tokens/s that start at once",
			targets: withRedis,
			run:     together,
			turns:   5,
			figures: []figure{perToken(2), latency(99, 0)},
		},
		{
			name:    "starts",
			about:   "200 runs that start at once beside 20 streams of 50 tokens/s",
			targets: withRedis,
			run:     starts,
			turns:   5,
			figures: append(others(), value("a run has begun, p50, ms", 0), value("the last run has begun, ms", 0)),
		},
		{
			name:    "storm",
			about:   "2,000 reconnects at once beside 20 streams of 50 tokens/s",
			targets: withRedis,
			run:     storm,
			turns:   5,
			figures: append(others(), value("a client is up to date, p50, ms", 0),
				value("the last client is up to date, ms", 0), value("CPU of the storm, ms", 0)),
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
			figures: []figure{perIteration(2), value("CPU per iteration, ms", 0)},
		},
		{
			name:    "long",
			about:   "one run of 100 rounds of one call, 50 tokens each",
			targets: []string{onFile, onSynced, onRedis},
			run:     longRun,
			judged:  onFile,
			against: onSynced,
			figures: []figure{perIteration(1.5), value("MB to disk", 1.2)},
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
				value("commands per iteration at 10", 5), value("commands per iteration at 90", 5),
				value("requests per iteration at 10", 0), value("requests per iteration at 90", 0),
				value("bytes per iteration at 10", 2048), value("bytes per iteration at 90", 2048),
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
			figures: perRound(8, 3072),
		},
		{
			name:    "slow",
			about:   "one answer of 100 tokens, 20 ms apart",
			targets: []string{onFloor, onRedis, onWindow},
			run:     slow,
			judged:  onWindow,
			figures: []figure{
				{name: "commands per slow answer", of: valueOf("commands"), limit: 40},
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
		figures: []figure{perToken(0), latency(50, 0), latency(99, 0)},
	}
}

// populate puts keys into Redis that belong to nobody.
func populate(t *target) error {
	return t.redis.client.Do(context.Background(), "DEBUG", "POPULATE", 1_000_000, "foreign").Err()
}
