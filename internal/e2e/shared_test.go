package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/store"
)

// spenders is how many runs spend one budget at the same time.
const spenders = 8

// TestBudgetIsShared: eight runs at two workers, or at one on a file, spend the budget
// of one tenant, and the worker of half of them is killed in the middle of a call of
// the model. Every run ends in success or because the budget is used up; the models
// have used no more than the limit, except for calls that were cut off; and the
// account says what they have used.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	for unit, limit := range map[string]int64{"tokens": 6000, "cost": 7000} {
		t.Run(unit, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
				args := map[string]string{"tokens": "--tokens=6000", "cost": "--cost=0.007"}
				c := newCrew(t, newStore(t), args[unit])
				c.hold("spender-4", "model", 2)
				exceeded := c.spend()
				ledger := c.stop()
				defer ledger.Close()
				c.checkBudget(ledger, "budget/tenant/all/"+unit, limit)
				c.checkSpent(ledger, "", "budget/tenant/all/tokens")
				c.checkSpent(ledger, "", "budget/tenant/all/cost")
				if exceeded == 0 {
					t.Error("no run has found the budget used up")
				}
			})
		})
	}
}

// spend has all runs spend, kills a worker among them, and returns how many runs
// have found the budget used up.
func (c *crew) spend() (exceeded int) {
	c.Helper()
	c.begin()
	accepted := make(chan error)
	for i := range spenders {
		// On Redis every other run is at the worker that stands by.
		url := c.p.url
		if c.standby != nil && i%2 == 1 {
			url = c.standby.url
		}
		body := input(fmt.Sprintf("spender-%d", i), "r1", userMessage("u1", works(3+4*i)))
		go func() {
			res, err := postTo(c.Context(), url, "spender", body)
			if err == nil {
				defer res.Body.Close()
				if res.StatusCode != http.StatusOK {
					err = fmt.Errorf("posted: %s", res.Status)
				}
			}
			accepted <- err
		}()
	}
	for range spenders {
		if err := <-accepted; err != nil {
			c.Fatal(err)
		}
	}
	c.awaitLines("held ", 1)
	c.kill(c.p.name)
	for i := range spenders {
		w := &watcher{killer: &killer{T: c.T, p: c.p.process}, thread: fmt.Sprintf("spender-%d", i), run: "r1"}
		end := w.follow()
		switch outcome, _ := end.Data["outcome"].(map[string]any); {
		case end.Data["code"] == codes.BudgetExceeded:
			exceeded++
		case outcome["type"] != "success":
			c.Errorf("%s ended with %s", w.thread, end.Raw)
		}
	}
	return exceeded
}

// works is a script of so many calls, one after the other.
func works(n int) string {
	calls := make([]string, n)
	for i := range calls {
		calls[i] = "work " + strconv.Itoa(i)
	}
	return strings.Join(calls, ", ")
}

// checkBudget: neither the account nor what the models have said is above the limit,
// except for one reserved call.
func (c *crew) checkBudget(ledger store.Ledger, account string, limit int64) {
	c.Helper()
	used, err := ledger.Used(c.Context(), "default", []string{account})
	if err != nil {
		c.Fatal(err)
	}
	s := c.spent("", account)
	if used[0] > limit || s.settled > limit || s.said > limit+reserved(account) {
		c.Errorf("of %d the account has counted %d; the models said %d, of which %d were settled, "+
			"and %d calls were cut off", limit, used[0], s.said, s.settled, s.cut)
	}
}

// TestRateLimitIsShared: two workers, or one on a file, share one limit. In no window
// more calls are admitted than it allows, and in the end all are.
func TestRateLimitIsShared(t *testing.T) {
	t.Parallel()
	const agents, calls, limit, window = 8, 3, 6, 1000
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		c := newCrew(t, newStore(t)).begin()
		ends := make(chan error)
		for i := range agents {
			url := c.p.url
			if c.standby != nil && i%2 == 1 {
				url = c.standby.url
			}
			go func() { ends <- c.succeeds(url, fmt.Sprintf("limited-%d", i), "limited 0, limited 1, limited 2") }()
		}
		for range agents {
			if err := <-ends; err != nil {
				t.Error(err)
			}
		}
		windows, keys := map[int64]int{}, map[string]bool{}
		for _, line := range c.lines("admitted") {
			f := fields(line)
			at, err := strconv.ParseInt(f["at"], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			windows[at/window]++
			keys[f["key"]] = true
		}
		for at, n := range windows {
			if n > limit {
				t.Errorf("in the window of %s %d calls were admitted, the limit is %d", time.UnixMilli(at*window), n,
					limit)
			}
		}
		if len(keys) != agents*calls || len(windows) < agents*calls/limit {
			t.Errorf("%d calls were admitted in %d windows, want %d", len(keys), len(windows), agents*calls)
		}
	})
}

// succeeds posts a text on a thread with the agent's name, and reads to the end.
func (c *crew) succeeds(url, agent, text string) error {
	res, err := postTo(c.Context(), url, agent, input(agent, "r1", userMessage("u1", text)))
	if err != nil {
		return fmt.Errorf("post to %s: %w", agent, err)
	}
	defer res.Body.Close()
	var end record
	if err := readStream(res.Body, func(r record) bool { end = r; return false }); err != nil {
		return fmt.Errorf("read from %s: %w", agent, err)
	}
	if outcome, _ := end.Data["outcome"].(map[string]any); outcome["type"] != "success" {
		return fmt.Errorf("%s ended with %s", agent, end.Raw)
	}
	return nil
}

// TestPermissionAcrossProcesses: the worker that has asked dies while a person
// thinks, and another one gets the answer. The call that was allowed at once ran
// once, and so does the one that was asked about. The answer counts for the user, so
// it is not asked for on other threads, at other workers.
func TestPermissionAcrossProcesses(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		c := newCrew(t, newStore(t)).begin()
		k := c.talk("asker", "first")
		end := k.says("work 0 + delicate 0")
		k.wantEnd(end, "interrupt")
		k.wantStarted("work/0")
		c.kill(c.p.name)
		k.answers = map[string]string{"tool_call": `{"approved":true,"remember":"user"}`}
		k.wantEnd(k.answersAll(end), "success")
		k.wantStarted("work/0", "delicate/0")
		for _, thread := range []string{"second", "third"} {
			k := c.talk("asker", thread)
			k.wantEnd(k.says("delicate 0"), "success")
			k.wantStarted("delicate/0")
			if len(k.asked) > 0 {
				t.Errorf("%s: asked %v", thread, k.asked)
			}
			c.kill(c.p.name)
		}
		k = c.talk("asker", "first")
		k.runs = 2
		k.wantEnd(k.says("delicate 0"), "success")
		if len(k.asked) > 0 {
			t.Errorf("asked again: %v", k.asked)
		}
	})
}

// wantStarted checks which calls of the thread were started, each once.
func (k *talk) wantStarted(calls ...string) {
	k.Helper()
	started := map[string]int{}
	for _, line := range k.lines("tool start") {
		if f := fields(line); f["thread"] == k.thread {
			started[f["call"]]++
		}
	}
	for _, call := range calls {
		if started[call] != 1 || len(started) != len(calls) {
			k.Errorf("%s: started %v, want each of %q once", k.thread, started, calls)
		}
	}
}
