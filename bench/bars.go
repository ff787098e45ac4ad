package main

import (
	"context"
	"fmt"
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
	before       float64 // what it was once, for comparison; 0 if that is not known
	ratio, added bool
}

func value(name string, limit float64) figure {
	return figure{name: name, of: func(r *result) float64 { return r.values[name] }, limit: limit}
}

func latency(p float64, limit float64) figure {
	return figure{
		name:  fmt.Sprintf("token latency p%g, ms", p),
		of:    func(r *result) float64 { return ms(percentile(r.latency, p)) },
		limit: limit,
	}
}

func perToken(limit float64) figure {
	return figure{name: "CPU per token, µs", of: (*result).cpuPerToken, limit: limit, ratio: true}
}

// scenarios returns all scenarios with their bars.
func scenarios() []scenario {
	all := []string{onFloor, onRedis, onFile}
	redis := []string{onFloor, onRedis}
	return []scenario{
		{
			name:    "saturated",
			about:   "16 clients, 200 tokens a run, a model without pauses",
			targets: all,
			run:     saturated,
			figures: []figure{
				perToken(2.5),
				{
					name: "tokens per second",
					of:   func(r *result) float64 { return float64(r.tokens) / r.wall.Seconds() },
				},
			},
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
			name:    "burst",
			about:   "100 runs that start at once, 100 tokens of 50/s each",
			targets: redis,
			run:     burst,
			turns:   5,
			figures: []figure{
				{
					name:  "time to first token p50, ms",
					of:    func(r *result) float64 { return ms(percentile(r.first, 50)) },
					limit: 1.6,
					ratio: true,
				},
				{
					name:  "time to first token p99, ms",
					of:    func(r *result) float64 { return ms(percentile(r.first, 99)) },
					ratio: true,
				},
				latency(99, 0),
			},
		},
		{
			name:    "together",
			about:   "20 streams of 50 tokens/s that start at once",
			targets: redis,
			run:     together,
			turns:   5,
			figures: []figure{perToken(2), latency(99, 0)},
		},
		{
			name:    "starts",
			about:   "200 runs that start at once beside 20 streams of 50 tokens/s",
			targets: redis,
			run:     starts,
			turns:   5,
			figures: []figure{
				{
					name:  "others' token latency p99, ms",
					of:    func(r *result) float64 { return ms(percentile(r.latency, 99)) },
					limit: 1.5,
					ratio: true,
				},
				{
					name: "others' token latency p50, ms",
					of:   func(r *result) float64 { return ms(percentile(r.latency, 50)) },
				},
				value("a run has begun, p50, ms", 0),
				value("the last run has begun, ms", 0),
			},
		},
		{
			name:    "storm",
			about:   "2,000 reconnects at once beside 20 streams of 50 tokens/s",
			targets: redis,
			run:     storm,
			turns:   5,
			figures: []figure{
				{
					name:  "others' token latency p99, ms",
					of:    func(r *result) float64 { return ms(percentile(r.latency, 99)) },
					limit: 1.5,
					ratio: true,
				},
				{
					name: "others' token latency p50, ms",
					of:   func(r *result) float64 { return ms(percentile(r.latency, 50)) },
				},
				value(
					"a client is up to date, p50, ms",
					0,
				),
				value("the last client is up to date, ms", 0),
				value("CPU of the storm, ms", 0),
			},
		},
		{
			name:    "tools",
			about:   "4 clients, 10 rounds of two tool calls, then 20 tokens",
			targets: all,
			run:     tooled,
			figures: []figure{
				{
					name:  "ms per iteration",
					of:    func(r *result) float64 { return r.values["ms per iteration"] },
					limit: 2,
					ratio: true,
				},
				{name: "CPU per iteration, ms", of: func(r *result) float64 { return ms(r.cpu) / float64(r.runs*11) }},
			},
		},
		{
			name:    "quiet",
			about:   "one client, answers of one token",
			targets: all,
			run:     quiet,
			figures: []figure{
				{
					name:  "time to first token p50, ms",
					of:    func(r *result) float64 { return ms(percentile(r.first, 50)) },
					limit: 1.2,
					added: true,
				},
				latency(50, 0),
				latency(99, 0),
			},
		},
		{
			name:    "full",
			about:   "the same with 1,000,000 foreign keys in Redis",
			targets: redis,
			before:  populate,
			run:     quiet,
			figures: []figure{
				{
					name:  "time to first token p50, ms",
					of:    func(r *result) float64 { return ms(percentile(r.first, 50)) },
					limit: 1.2,
					added: true,
				},
			},
		},
		{
			name:    "growth",
			about:   "one thread, one call an iteration",
			targets: redis,
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
			targets: redis,
			agents:  reporter("pure"),
			run:     reports(100, 0),
			figures: perRound([4]float64{6.4, 1.1, 2769, 2336}, 5, 2560),
		},
		{
			name:    "effects",
			about:   "the same with a tool that has effects",
			targets: redis,
			agents:  reporter("idempotent"),
			run:     reports(100, 0),
			figures: perRound([4]float64{12.4, 2.1, 4242, 2515}, 8, 3072),
		},
		{
			name:    "words",
			about:   "10 rounds with a pure tool, and words 10 ms apart",
			targets: redis,
			agents:  reporter("pure"),
			run:     reports(10, 10*time.Millisecond),
			figures: perRound([4]float64{}, 0, 0),
		},
		{
			name:    "long",
			about:   "one run of 100 rounds of one call, 50 tokens each",
			targets: []string{onFile, onSynced, onRedis},
			run:     longRun,
			judged:  onFile,
			against: onSynced,
			figures: []figure{
				{
					name:  "ms per iteration",
					of:    func(r *result) float64 { return r.values["ms per iteration"] },
					limit: 1.5,
					ratio: true,
				},
				value("MB to disk", 1.2),
			},
		},
		{
			name:    "slow",
			about:   "one answer of 100 tokens, 20 ms apart",
			targets: []string{onFloor, onRedis, onWindow},
			run:     slow,
			judged:  onWindow,
			figures: []figure{
				value(
					"commands per slow answer",
					40,
				),
				value("requests per slow answer", 0),
				value("bytes per slow answer", 0),
			},
		},
		{
			name:    "idle",
			about:   "streams that wait",
			targets: all,
			run:     idle,
			figures: []figure{value("KB per idle stream", 80)},
			turns:   7,
		}, // the memory of a process grows in steps
	}
}

// custom returns a load of the user's choice, for five seconds, without bars.
func custom(runs, rate int) scenario {
	every := time.Second / time.Duration(max(rate, 1))
	return scenario{
		name:    "custom",
		about:   fmt.Sprintf("%d runs of %d tokens/s", runs, rate),
		targets: []string{onFloor, onRedis, onFile},
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
