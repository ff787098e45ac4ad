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
	"time"
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

// reports is one run of n rounds, with this time between two words.
func reports(n int, every time.Duration) func(t *target) (*result, error) {
	return func(t *target) (*result, error) {
		rounds := float64(n)
		before, err := t.redis.usage()
		if err != nil {
			return nil, err
		}
		r, err := crowd(t, 1, 1, 0, script{
			rounds: n,
			calls:  1,
			said:   50,
			tokens: 50,
			every:  every,
			result: 200,
		})
		if err != nil {
			return nil, err
		}
		after, err := t.redis.usage()
		if err != nil {
			return nil, err
		}
		held, err := t.redis.held(t.thread(0, 0))
		r.values = map[string]float64{
			commandsPerRound: float64(after.commands-before.commands) / rounds,
			"requests":       float64(after.requests-before.requests) / rounds,
			bytesPerRound:    float64(after.bytes-before.bytes) / rounds,
			memoryPerRound:   float64(held) / rounds,
		}
		return r, err
	}
}

const (
	commandsPerRound = "commands per round"
	bytesPerRound    = "bytes received per round"
	memoryPerRound   = "bytes of memory per round"
)

// perRound returns the figures of reports with what they were before rounds were made
// cheaper, and the bars for commands and for bytes.
func perRound(before [4]float64, commands, bytes float64) []figure {
	figures := []figure{
		value(commandsPerRound, commands),
		{name: "of these over the network", of: func(r *result) float64 { return r.values["requests"] }},
		value(bytesPerRound, bytes),
		value(memoryPerRound, bytes),
	}
	for i := range figures {
		figures[i].before = before[i]
	}
	return figures
}
