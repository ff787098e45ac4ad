package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/store"
)

// survivor is a script with its necessary outcome, whatever dies meanwhile.
type survivor struct {
	text string
	// calls are those that are started, as tool/iteration; answers is how often the
	// model answers.
	calls   []string
	answers int
	// code is how the run ends, questions how often each kind is asked.
	code      string
	questions map[string]int
	// last are the moments of the last iteration, which ends early.
	last []string
}

// survivors: in one the breaker opens at the third identical call, with others in
// between and a permission that is remembered; in the other three failures in a row
// are one too many, after two that were forgiven.
var survivors = map[string]survivor{
	"breaker": {
		text: "delicate 0, work 1, fail 2, fail 3, work 4 + delicate 4, same x, work 6 + delicate 6, same x, " +
			"work 8 + same x, work 9",
		calls: []string{
			"delicate/0",
			"work/1",
			"fail/2",
			"fail/3",
			"work/4",
			"delicate/4",
			"same/5",
			"work/6",
			"delicate/6",
			"same/7",
		},
		answers:   9,
		code:      codes.CircuitOpen,
		questions: map[string]int{"tool_call": 1, "holdfast:continuation": 1},
		last:      []string{"before", "model", "said", "settled", "batch"},
	},
	"errors": {
		text:    "work 0, fail 1, fail 2, work 3, fail 4, fail 5, fail 6, work 7",
		calls:   []string{"work/0", "fail/1", "fail/2", "work/3", "fail/4", "fail/5", "fail/6"},
		answers: 7, code: codes.TooManyErrors,
		questions: map[string]int{"holdfast:continuation": 1},
		last:      []string{"before"},
	},
}

// TestMiddlewareStateSurvives kills the worker again and again, and another one goes
// on: the breaker opens at the same call as if nothing had happened, failures are
// counted to the same number, what was permitted is not asked again, a person is
// asked to go on at the same iteration, and the budget has counted what the model
// has said.
func TestMiddlewareStateSurvives(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		for name, s := range survivors {
			random := rand.New(rand.NewPCG(seed, uint64(len(name))))
			t.Run(name+" at each moment", func(t *testing.T) {
				t.Parallel()
				s.survive(t, newStore(t), name+"-at-each-moment", func(k *talk) func() {
					return killAtMoments(k, s, random)
				})
			})
		}
		t.Run("breaker at random", func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			// On a busy machine a run can be over before so many have died: then there is another one.
			for runs, kills := 0, 0; kills < randomKills; runs++ {
				if runs == randomKills {
					t.Fatalf("killed %d times in %d runs, want %d", kills, runs, randomKills)
				}
				survivors["breaker"].survive(t, newStore(t), fmt.Sprintf("breaker-at-random-%d", runs),
					func(k *talk) func() { return killAtRandom(k, &kills, random) })
			}
		})
	})
}

// deathMoments are where a worker can be killed in an iteration, in their order: before
// it, while the model works, when it has said what it used, when that is settled,
// before and after it is decided about the calls, in a call, after it, and before the
// iteration's checkpoint.
var deathMoments = []string{"before", "model", "said", "settled", "batch", "decided", "tool", "result", "after"}

// killAtMoments has every iteration killed once, each at another moment.
func killAtMoments(k *talk, s survivor, random *rand.Rand) (check func()) {
	count := s.answers - 1
	if s.code == codes.TooManyErrors {
		count = s.answers
	}
	last := s.last[random.IntN(len(s.last))]
	others := slices.DeleteFunc(slices.Clone(deathMoments), func(m string) bool { return m == last })
	random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	at := append(others[:count], last)
	for i, m := range at {
		k.hold(k.thread, m, i)
	}
	k.Logf("killed in the iterations at %q", at)
	k.watch = func() {
		for _, line := range k.news() {
			if strings.HasPrefix(line, "held ") {
				k.kill(fields(line)["proc"])
			}
		}
	}
	return func() {
		if got := len(k.lines("held ")); got != len(at) {
			k.Errorf("killed %d times, want %d", got, len(at))
		}
	}
}

// randomKills is how often killAtRandom kills, in all runs together. An iteration writes about four lines:
// so nobody dies three times without any progress, which would end the run.
const randomKills = 5

// killAtRandom kills after random numbers of lines in the journal, until there were so many
// kills as there are to be, and counts them.
func killAtRandom(k *talk, kills *int, random *rand.Rand) (check func()) {
	wait := 1 + random.IntN(8)
	k.watch = func() {
		for _, line := range k.news() {
			if wait--; wait <= 0 && *kills < randomKills && k.kill(fields(line)["proc"]) {
				*kills++
				wait = 5 + random.IntN(4)
			}
		}
	}
	return func() {}
}

// survive runs the script among kills.
func (s survivor) survive(t *testing.T, store, thread string, kills func(*talk) func()) {
	// Slow calls leave time to look at the journal and to kill, on a busy machine too.
	k := newCrew(t, store, "--delay=10ms").talk("sturdy", thread)
	check := kills(k)
	k.begin()
	k.answers = map[string]string{
		"tool_call":             `{"approved":true,"remember":"thread"}`,
		"holdfast:continuation": `{"continue":true}`,
	}
	k.wantEnd(k.says(s.text), s.code)
	check()
	k.wantCalls(s.calls, s.answers)
	for _, reason := range []string{"tool_call", "holdfast:continuation"} {
		if got := len(k.askedFor(reason)); got != s.questions[reason] {
			t.Errorf("%s was asked %d times, want %d", reason, got, s.questions[reason])
		}
	}
	for _, q := range k.askedFor("holdfast:continuation") {
		if data, _ := q["metadata"].(map[string]any); data["used"] != 5.0 || data["total"] != 5.0 {
			t.Errorf("asked to go on with %v", q)
		}
	}
	ledger := k.stop()
	defer ledger.Close()
	k.checkSpent(ledger, thread, "budget/thread/"+thread+"/tokens")
}

// wantCalls checks which calls were started, each with one key however often, and
// how many answers the model gave.
func (k *talk) wantCalls(calls []string, answers int) {
	k.Helper()
	keys := map[string]string{}
	for _, line := range k.lines("tool start") {
		f := fields(line)
		if key, known := keys[f["call"]]; known && key != f["key"] {
			k.Errorf("the call %s has two keys, %s and %s", f["call"], key, f["key"])
		}
		keys[f["call"]] = f["key"]
	}
	if got, want := slices.Sorted(maps.Keys(keys)), slices.Sorted(slices.Values(calls)); !slices.Equal(got, want) {
		k.Errorf("the calls %q were started, want %q", got, want)
	}
	iterations := map[string]bool{}
	for _, line := range k.lines("model start") {
		iterations[fields(line)["iteration"]] = true
	}
	if len(iterations) != answers || !iterations[strconv.Itoa(answers-1)] {
		k.Errorf("the model was asked in the iterations %v, want %d", slices.Sorted(maps.Keys(iterations)), answers)
	}
}

// price is what the model's usage is in an account's unit.
func price(account string, f map[string]string) int64 {
	input, _ := strconv.ParseInt(f["input"], 10, 64)
	output, _ := strconv.ParseInt(f["output"], 10, 64)
	if strings.HasSuffix(account, "/cost") {
		output *= 2
	}
	return input + output
}

// The reservation for each call, in tokens and in money.
const reservedTokens, reservedCost = 150, 200

func reserved(account string) int64 {
	if strings.HasSuffix(account, "/cost") {
		return reservedCost
	}
	return reservedTokens
}

// spent is what the journal says of an account.
type spent struct {
	// said is what the model reported, of all calls; settled of those whose worker
	// lived to see it settled, killed of the others.
	said, settled, killed int64
	// cut is how many calls their worker did not live to settle.
	cut int64
}

// spent reads the journal. Of an empty thread: of all.
func (c *crew) spent(thread, account string) spent {
	c.Helper()
	var s spent
	open := map[string]int64{} // by process, thread and iteration
	for _, line := range c.lines("model ") {
		f := fields(line)
		if thread != "" && f["thread"] != thread {
			continue
		}
		call := f["proc"] + " " + f["thread"] + " " + f["iteration"]
		switch {
		case strings.HasPrefix(line, "model start"):
			open[call] = 0
		case strings.HasPrefix(line, "model said"):
			open[call] = price(account, f)
			s.said += open[call]
		default:
			s.settled += open[call]
			delete(open, call)
		}
	}
	for _, n := range open {
		s.killed += n
		s.cut++
	}
	return s
}

// checkSpent: an account has counted all that the model has said. Of a call that was
// cut off it is what was reserved; whether what a dying worker was told has still been
// settled, nobody knows, nor whether a run of its had just reserved for its next call.
func (c *crew) checkSpent(ledger store.Ledger, thread, account string) {
	c.Helper()
	used, err := ledger.Used(c.Context(), "default", []string{account})
	if err != nil {
		c.Fatal(err)
	}
	s := c.spent(thread, account)
	runs := int64(1)
	if thread == "" {
		runs = spenders
	}
	if used[0] < s.said || used[0] > s.said+(s.cut+c.kills*runs)*reserved(account) || s.settled == 0 {
		c.Errorf("%s has counted %d; the model said %d, of which %d were settled, and %d calls were cut off", account,
			used[0], s.said, s.settled, s.cut)
	}
}
