package remote_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/remote"
)

// piece is a message of a run, with its calls, whose results follow: its words, the calls, and the lines of
// the stream.
type piece struct {
	words string
	calls []string
}

// drawRun draws a run, and returns its pieces and its stream, one event on each line.
func drawRun(r *rand.Rand, run int) (pieces []piece, stream string) {
	stream = started
	for n := range 1 + r.IntN(4) {
		p := piece{words: fmt.Sprintf("%d.%d", run, n)}
		stream += says("m-"+p.words, p.words)
		var came string
		for c := range r.IntN(3) {
			name, id := []string{"search", "charge"}[r.IntN(2)], fmt.Sprintf("c-%s-%d", p.words, c)
			p.calls = append(p.calls, name+`{"id":"`+id+`"}`)
			stream += calls(id, name, `{"id":"`+id+`"}`)
			came += results(id, "came of "+id)
		}
		stream, pieces = stream+came, append(pieces, p)
	}
	return pieces, stream + strings.TrimSpace(finished) + "\n"
}

// take takes what stands of a run from a history, and returns how many of its pieces are whole.
func take(left []string, pieces []piece) (rest []string, whole int) {
	for _, p := range pieces {
		if len(left) == 0 {
			return left, whole
		}
		said, made, _ := strings.Cut(left[0], " ")
		if said != "a:"+p.words {
			return left, whole
		}
		left = left[1:]
		complete := made == strings.Join(p.calls, " ")
		for _, call := range strings.Fields(made) {
			_, id, _ := strings.Cut(strings.TrimSuffix(call, `"}`), `{"id":"`)
			switch {
			case len(left) == 0:
				return left, whole
			case left[0] == "t:came of "+id:
			case left[0] == unknown, left[0] == lost:
				complete = false
			default:
				return left, whole
			}
			left = left[1:]
		}
		if !complete {
			return left, whole
		}
		whole++
	}
	return left, whole
}

// TestRandomKills kills the agent or this server at random, up to twice, in a run of random messages and
// calls. Each run of the agent leaves a beginning of itself, and the last one all of it: nothing is lost,
// and nothing said or done twice. HOLDFAST_REMOTE_KILLS says how many runs are tried.
func TestRandomKills(t *testing.T) {
	n, seed := 12, uint64(time.Now().UnixNano())
	if all, err := strconv.Atoi(os.Getenv("HOLDFAST_REMOTE_KILLS")); err == nil {
		n = all
	}
	if given, err := strconv.ParseUint(os.Getenv("HOLDFAST_REMOTE_SEED"), 10, 64); err == nil {
		n, seed = 1, given
	}
	kills := 0
	for i := range n {
		kills += randomKills(t, seed+uint64(i))
	}
	t.Logf("%d runs were killed %d times", n, kills)
}

func randomKills(t *testing.T, seed uint64) (kills int) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, seed))
		var runs [][]piece
		var streams []string
		for run := range 1 + r.IntN(3) {
			pieces, stream := drawRun(r, run)
			runs, streams = append(runs, pieces), append(streams, stream)
		}
		for i := range streams[:len(streams)-1] {
			lines := strings.Split(strings.TrimSpace(streams[i]), "\n")
			streams[i] = strings.Join(lines[:r.IntN(len(lines))], "\n") + "\n"
			if r.IntN(2) == 0 {
				streams[i] += "[die]\n"
			}
		}
		kills = len(streams) - 1
		s := newScript(t, streams...)
		o := remote.Options{OnCut: "retry", Effects: map[string]holdfast.Effect{"search": holdfast.EffectPure}}
		h := start(t, s, o)
		over := make(chan struct{})
		die := make(chan struct{})
		go func() {
			defer close(die)
			for {
				select {
				case <-s.reached:
					time.Sleep(time.Second)
					h.Crash()
				case <-over:
					return
				}
			}
		}()
		got := h.Run("go")
		for got.Outcome == agenttest.Cut {
			h.Restart()
			got = h.Resume()
		}
		close(over)
		<-die
		left := strings.Split(history(got.Messages), " | ")[1:]
		whole := 0
		for _, pieces := range runs {
			left, whole = take(left, pieces)
		}
		last := runs[len(runs)-1]
		emptyEnd := len(left) == 1 && left[0] == "a:" && len(last[len(last)-1].calls) > 0
		if got.Outcome != agenttest.Success || len(left) > 0 && !emptyEnd || whole != len(last) {
			t.Errorf("seed %d: %s %s: %d of %d messages of the last run are whole, and what is left is %q of\n%s",
				seed, got.Outcome, got.Hint, whole, len(last), left, history(got.Messages))
		}
	})
	return kills
}
