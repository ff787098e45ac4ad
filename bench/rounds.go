package main

// How much Redis is used for a round: an answer of 50 words with a call, and the call's
// result. The figures are counted by Redis itself.

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
)

// reportTool is the tool whose results have the length that the model asks for.
const reportTool = "report"

// reporter returns an agents file whose agent has reportTool, declared with this effect.
func reporter(effect string) string {
	return `
agents:
  - name: reporter
    model: openai/bench
    tools: [` + reportTool + `]
    limits: {maxIterations: 2000}
tools:
  - name: ` + reportTool + `
    description: Reports on the warehouse.
    effect: ` + effect + `
    http: {url: "{model}/reports/{size}", allow: [127.0.0.1]}
`
}

// serveReport answers a call of reportTool.
func serveReport(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.Atoi(r.PathValue("size"))
	if err != nil || size < 0 || size > 1<<20 {
		http.Error(w, "bad size", http.StatusBadRequest)
		return
	}
	var text strings.Builder
	for text.Len() < size {
		fmt.Fprintf(&text, "%s %d, ", word(), rand.IntN(1000))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// If the server went away, that is no concern of this program.
	_, _ = io.WriteString(w, text.String()[:size])
}

// word returns a word. They have five letters and a half on average, as in English, and are
// too many for an answer to have the same ones again and again.
func word() string {
	const consonants, vowels = "bcdfghklmnprstvw", "aeiou"
	b := make([]byte, 0, 8)
	for n := 2 + rand.IntN(8); len(b) < n; {
		b = append(b, consonants[rand.IntN(len(consonants))])
		if len(b) < n {
			b = append(b, vowels[rand.IntN(len(vowels))])
		}
	}
	return string(b)
}

// reports is one run of n rounds.
func reports(n int) func(t *target) (*result, error) {
	return func(t *target) (*result, error) {
		r, err := costs(t.redis, func() (*result, error) {
			return crowd(t, 1, 1, 0, script{
				rounds: n,
				calls:  1,
				said:   50,
				tokens: 50,
				result: 200,
			})
		})
		if err != nil {
			return nil, err
		}
		held, err := t.redis.held(t.thread(0, 0))
		r.values["memory"] = float64(held)
		for name := range r.values {
			r.values[name] /= float64(n)
		}
		return r, err
	}
}

// perRound returns the figures of reports, and the bars for commands and for bytes.
func perRound(commands, bytes float64) []figure {
	return []figure{
		{name: "commands per round", of: valueOf("commands"), limits: limits{onRedis: commands}},
		{name: "of these over the network", of: valueOf("requests")},
		{name: "bytes received per round", of: valueOf("bytes"), limits: limits{onRedis: bytes}},
		{name: "bytes of memory per round", of: valueOf("memory"), limits: limits{onRedis: bytes}},
	}
}
