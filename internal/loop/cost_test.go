package loop_test

// The cost of a round, in figures that no busy machine bends: commits are counted while time
// stands still, and what Redis executes, receives and holds for them is counted by Redis.

import (
	"bytes"
	"context"
	"iter"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// recording is a store that remembers what is committed to it. A commit takes a moment, as
// Redis does, so that the words that come meanwhile are stored together.
type recording struct {
	store.Store
	commits []*store.Commit
}

func (r *recording) Commit(ctx context.Context, c *store.Commit) error {
	time.Sleep(time.Millisecond)
	err := r.Store.Commit(ctx, c)
	if err == nil {
		copied := *c
		r.commits = append(r.commits, &copied)
	}
	return err
}

// spoken returns a text of n words as long as those of English, which are not the same ones
// again and again.
func spoken(random *rand.Rand, n int) (words []string) {
	const consonants, vowels = "bcdfghklmnprstvw", "aeiou"
	for range n {
		var b bytes.Buffer
		for length := 2 + random.IntN(8); b.Len() < length; {
			b.WriteByte(consonants[random.IntN(len(consonants))])
			b.WriteByte(vowels[random.IntN(len(vowels))])
		}
		words = append(words, b.String()+" ")
	}
	return words
}

// madeBy runs an agent on a new thread, while time stands still, and returns the commits.
func madeBy(t *testing.T, agent holdfast.Agent, change func(*looptest.Config)) (commits []*store.Commit) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := &recording{Store: memstore.New()}
		looptest.Succeeded(t, looptest.Started(t, looptest.Start(t, db, change, agent), "t"))
		commits = db.commits
	})
	return commits
}

// reporter is an agent that says 50 words and calls a tool, whose result has 200 characters,
// n times over; then it says 50 words more.
func reporter(n int, effect holdfast.Effect) holdfast.Agent {
	random, next := rand.New(rand.NewPCG(1, 1)), 0
	model := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		next++
		return func(yield func(holdfast.Delta, error) bool) {
			for _, word := range spoken(random, 50) {
				if !yield(holdfast.Delta{Text: word}, nil) {
					return
				}
			}
			if next <= n {
				yield(looptest.Calls("report", "{}"), nil)
			} else {
				yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
			}
		}
	})
	report := looptest.Tool("report", effect, func(context.Context) (string, error) {
		return strings.Join(spoken(random, 100), "")[:200], nil
	})
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{report}}
}

// onRedis is a store on a Redis of its own, with what the commits of a test cost there.
type onRedis struct {
	*testing.T
	client *redis.Client
	db     store.Store
}

func openRedis(t *testing.T) *onRedis {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, Protocol: 2})
	db, err := redisstore.New(t.Context(), client, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := db.Lease(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	terms := store.FormatTerms{Reads: thread.Format, Wants: thread.Format, Knows: thread.Format}
	if _, err := db.AgreeFormat(t.Context(), "p", terms); err != nil {
		t.Fatal(err)
	}
	return &onRedis{t, client, db}
}

// commit makes the commits, and returns what Redis executed and received for them.
func (r *onRedis) commit(commits []*store.Commit) (commands, received float64) {
	r.Helper()
	commands, received = r.usage()
	for _, c := range commits {
		if err := r.db.Commit(r.Context(), c); err != nil {
			r.Fatal(err)
		}
	}
	after, afterBytes := r.usage()
	return after - commands, afterBytes - received
}

// atMost fails if a figure is above its limit.
func (r *onRedis) atMost(limit, figure float64, what string) {
	r.Helper()
	r.Logf("%.2f %s, at most %g", figure, what, limit)
	if figure > limit {
		r.Errorf("%.2f %s are more than %g", figure, what, limit)
	}
}

// TestRedisPerRound: what Redis executes, receives and holds for a round, of which every
// 16th moves checkpoints; and a late round costs what an early one does.
func TestRedisPerRound(t *testing.T) {
	t.Parallel()
	const rounds = 100
	for _, c := range []struct {
		effect                    holdfast.Effect
		commands, received, holds float64
	}{
		{holdfast.EffectPure, 4.2, 1840, 1480},
		{holdfast.EffectIdempotent, 7.8, 2450, 1530},
	} {
		t.Run(string(c.effect), func(t *testing.T) {
			t.Parallel()
			commits := madeBy(t, reporter(rounds, c.effect), nil)
			r, half := openRedis(t), len(commits)/2
			early, earlyBytes := r.commit(commits[:half])
			late, lateBytes := r.commit(commits[half:])
			r.atMost(c.commands, (early+late)/rounds, "commands a round")
			r.atMost(c.received, (earlyBytes+lateBytes)/rounds, "bytes received a round")
			r.atMost(1.1, late/early, "times the commands in the second half")
			r.atMost(1.1, lateBytes/earlyBytes, "times the bytes in the second half")
			r.atMost(c.holds, r.memory("*")/rounds, "bytes of memory a round")
		})
	}
}

// TestRedisPerWord: what Redis executes for an answer of a hundred words, 10 ms apart, that
// is shown word by word or once a second.
func TestRedisPerWord(t *testing.T) {
	t.Parallel()
	turn := make([]holdfast.Delta, 0, 101)
	for _, word := range spoken(rand.New(rand.NewPCG(1, 1)), 100) {
		turn = append(turn, holdfast.Delta{Text: word})
	}
	turn = append(turn, holdfast.Delta{Finish: holdfast.FinishStop})
	for window, limit := range map[time.Duration]float64{0: 390, time.Second: 30} {
		t.Run(window.String(), func(t *testing.T) {
			t.Parallel()
			commits := madeBy(t, holdfast.Agent{Name: "a", Model: looptest.Slowly(turn)}, func(c *looptest.Config) {
				c.DeltaWindow = window
			})
			r := openRedis(t)
			commands, _ := r.commit(commits)
			r.atMost(limit, commands, "commands an answer")
		})
	}
}

// usage is what Redis has executed and received until now.
func (r *onRedis) usage() (commands, received float64) {
	r.Helper()
	text, err := r.client.Info(r.Context(), "stats", "commandstats").Result()
	if err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		switch n, err := strconv.ParseFloat(calls, 64); {
		case err != nil:
		case name == "total_net_input_bytes":
			received = n
		case strings.HasPrefix(name, "cmdstat_"):
			commands += n
		}
	}
	return commands, received
}

// memory is what Redis holds in the keys that match.
func (r *onRedis) memory(keys string) (sum float64) {
	r.Helper()
	for keys := r.client.Scan(r.Context(), 0, keys, 1000).Iterator(); keys.Next(r.Context()); {
		n, err := r.client.MemoryUsage(r.Context(), keys.Val(), 0).Result()
		if err != nil {
			r.Fatal(err)
		}
		sum += float64(n)
	}
	return sum
}

// TestShortThreadIsSmall: what Redis holds of a thread with two messages whose log is archived.
func TestShortThreadIsSmall(t *testing.T) {
	t.Parallel()
	r := openRedis(t)
	var commits []*store.Commit
	synctest.Test(t, func(t *testing.T) {
		db := &recording{Store: memstore.New()}
		turn := []holdfast.Delta{{Finish: holdfast.FinishStop}}
		for _, word := range spoken(rand.New(rand.NewPCG(1, 1)), 16) {
			turn = append([]holdfast.Delta{{Text: word}}, turn...)
		}
		e := looptest.Start(t, db, nil, holdfast.Agent{Name: "a", Model: looptest.Slowly(turn)})
		looptest.Succeeded(t, looptest.Started(t, e, "t"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		commits = db.commits
	})
	r.commit(commits)
	if n := r.client.Exists(r.Context(), "hf:{acme/t}:l").Val(); n > 0 {
		t.Error("a stream is left of the log, which is archived")
	}
	r.atMost(2800, r.memory("*{acme/t}*"), "bytes of memory for a thread with two messages")
}

// TestMemoryPerWord: how often, and how much, is allocated for a word that is stored and
// shown by itself. A short run is subtracted from a long one, which leaves the words. Nothing is collected
// meanwhile: a collection empties pools, and when one comes depends on what else the machine does.
func TestMemoryPerWord(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	run := func(words int) (allocations, size float64) {
		synctest.Test(t, func(t *testing.T) {
			turn := make([]holdfast.Delta, words, words+1)
			for i := range turn {
				turn[i].Text = "word "
			}
			e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
				Name: "a", Model: looptest.Slowly(append(turn, holdfast.Delta{Finish: holdfast.FinishStop})),
			})
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, err := range reply.Whole() {
				if err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			allocations, size = float64(after.Mallocs-before.Mallocs), float64(after.TotalAlloc-before.TotalAlloc)
		})
		return allocations, size
	}
	run(10)
	fewCalls, few := run(100)
	manyCalls, many := run(1100)
	if calls, size := (manyCalls-fewCalls)/1000, (many-few)/1000; calls > 12 || size > 1600 {
		t.Errorf("a word takes %.1f allocations of %.0f bytes together, more than 12 of 1,600", calls, size)
	}
}
