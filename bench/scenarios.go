package main

// The scenarios: how clients load a server, and the figures that each load gives.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// result is what one server did in one scenario.
type result struct {
	seen
	wall   time.Duration
	cpu    time.Duration
	values map[string]float64 // further figures, by name
	others float64            // of a processor, what programs have used that are not the bench's
}

// inSum is what all turns of a server did.
func inSum(turns []*result) *result {
	all := &result{}
	for _, r := range turns {
		all.add(r.seen)
	}
	return all
}

func (r *result) cpuPerToken() float64 { return us(r.cpu) / float64(max(r.tokens, 1)) }

func (r *result) tokensPerSecond() float64 { return float64(r.tokens) / r.wall.Seconds() }

// crowd lets clients make runs in parallel, each client one run after another. Starts are
// distributed over spread, as with independent users.
func crowd(t *target, clients, runs int, spread time.Duration, s script) (*result, error) {
	c := newClient(t.url)
	defer c.http.CloseIdleConnections()
	begun, err := t.cpu()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	r := &result{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for i := range clients {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * spread / time.Duration(clients))
			for n := range runs {
				one, err := c.run(context.Background(), t.thread(i, n), s)
				mu.Lock()
				failed = errors.Join(failed, err)
				r.add(one)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	r.wall = time.Since(start)
	ended, err := t.cpu()
	r.cpu = ended - begun
	return r, errors.Join(failed, err)
}

// saturated: 16 clients, a model that does not pause, answers of 200 tokens.
func saturated(t *target) (*result, error) {
	return crowd(t, 16, 40, 0, script{tokens: 200})
}

// paced: 20 streams of 50 tokens/s are 1,000 tokens/s; 100 are 5,000. Five turns of 20 streams
// are 30,000 tokens.
func paced(streams int) func(t *target) (*result, error) {
	return func(t *target) (*result, error) {
		every := 20 * time.Millisecond
		return crowd(t, streams, 1, every, script{tokens: 300, every: every})
	}
}

// pacedCosts is paced, with what a token has cost Redis.
func pacedCosts(streams int) func(t *target) (*result, error) {
	return func(t *target) (*result, error) {
		r, err := costs(t.redis, func() (*result, error) { return paced(streams)(t) })
		if err == nil {
			r.values = map[string]float64{"Redis commands a token": r.values["commands"] / float64(r.tokens)}
		}
		return r, err
	}
}

// tooled: 4 clients, 10 rounds of two tool calls and an answer of 20 tokens.
func tooled(t *target) (*result, error) {
	r, err := crowd(t, 4, 25, 0, script{rounds: 10, calls: 2, tokens: 20})
	if err == nil {
		iterations := float64(r.runs * 11)
		r.values = map[string]float64{
			"ms per iteration":      ms(r.wall) * 4 / iterations,
			"CPU per iteration, ms": ms(r.cpu) / iterations,
		}
	}
	return r, err
}

// quiet: one client, one token at a time. This shows what a server adds to the model's own
// time to its first token, which is the latency of a token that is sent at once.
func quiet(t *target) (*result, error) {
	return crowd(t, 1, 300, 0, script{tokens: 1})
}

// idle opens streams that get one token and then wait, and measures how much memory the
// second hundred of them take.
func idle(t *target) (*result, error) {
	c := newClient(t.url)
	defer c.http.CloseIdleConnections()
	ctx, cancel := context.WithCancel(context.Background())
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	var at [3]int64
	for hundred := range 3 {
		if hundred > 0 {
			opened := make(chan error, 100)
			for i := range 100 {
				streams.Go(func() {
					told := false
					err := c.stream(ctx, t.thread(hundred, i), script{tokens: 1, hold: time.Minute},
						func(line []byte) bool {
							if !told && bytes.Contains(line, contentMark) {
								told = true
								opened <- nil
							}
							return true
						})
					if !told {
						opened <- fmt.Errorf("a stream did not open: %w", err)
					}
				})
			}
			for range 100 {
				if err := <-opened; err != nil {
					return nil, err
				}
			}
			time.Sleep(time.Second)
		}
		var err error
		if at[hundred], err = t.memory(); err != nil {
			return nil, err
		}
	}
	return &result{values: map[string]float64{"KB per idle stream": float64(at[2]-at[1]) / 100 / 1024}}, nil
}

// rounds runs one thread of n iterations with one call each, and measures how much Redis
// is used.
func rounds(t *target, n int) (r *result, err error) {
	of := *t
	of.part += fmt.Sprintf("-%d", n)
	return costs(t.redis, func() (*result, error) {
		return crowd(&of, 1, 1, 0, script{rounds: n, calls: 1, tokens: 50})
	})
}

// costs returns a result with what it has cost Redis.
func costs(redis *redisServer, load func() (*result, error)) (r *result, err error) {
	u, err := redis.during(func() (err error) {
		r, err = load()
		return err
	})
	if err != nil {
		return nil, err
	}
	r.values = map[string]float64{"commands": u.commands, "requests": u.requests, "bytes": u.bytes}
	return r, nil
}

// growth compares iterations around the tenth with iterations around the ninetieth, by the
// difference between runs of different lengths.
func growth(t *target) (*result, error) {
	out := &result{values: map[string]float64{}}
	var got [4]*result
	for i, n := range []int{2, 22, 80, 100} {
		var err error
		if got[i], err = rounds(t, n); err != nil {
			return nil, err
		}
	}
	for _, what := range []string{"commands", "requests", "bytes"} {
		out.values[what+" per iteration at 10"] = (got[1].values[what] - got[0].values[what]) / 20
		out.values[what+" per iteration at 90"] = (got[3].values[what] - got[2].values[what]) / 20
	}
	return out, nil
}

// longRun is one run of 100 rounds of one call, with 50 tokens each, and what it has
// the server write to disk, until two seconds after it.
func longRun(t *target) (*result, error) {
	const rounds = 100
	before, err := diskWrites(t.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	r, err := crowd(t, 1, 1, 0, script{rounds: rounds, calls: 1, said: 50, tokens: 50})
	if err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second)
	after, err := diskWrites(t.cmd.Process.Pid)
	r.values = map[string]float64{
		"ms per iteration": ms(r.wall) / (rounds + 1),
		"MB to disk":       float64(after-before) / 1e6,
	}
	return r, err
}

// slow is one answer of 100 tokens that arrive one by one.
func slow(t *target) (*result, error) {
	return costs(t.redis, func() (*result, error) {
		return crowd(t, 1, 1, 0, script{tokens: 100, every: 20 * time.Millisecond})
	})
}
