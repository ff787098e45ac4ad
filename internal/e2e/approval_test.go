package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// A deployment in the wrong moment: a person answers, and the server is told to stop before it has
// started what was approved. That call has never begun, so nobody may be left in doubt about it.

// approvals in CI, for each store; make approvals sets another number.
const approvals = 4

// TestStopAfterApprovals tells a server to stop 0 to 12 ms after an answer was posted, again
// and again. The process that goes on with the run makes the approved call, unless it was
// made: it is in doubt only if it was started.
func TestStopAfterApprovals(t *testing.T) {
	t.Parallel()
	n := setting(t, "HOLDFAST_APPROVALS", approvals)
	rows := make(chan string, 2)
	t.Run("stores", func(t *testing.T) {
		eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
			c := newCrew(t, newStore(t), "--delay=0s").begin()
			tally := approvalTally{}
			for i := range n {
				c.stopAfterApproval(fmt.Sprint("t", i), time.Duration(i%13)*time.Millisecond, &tally)
			}
			rows <- fmt.Sprintf("| %s | %d | %d | %d | %d |", t.Name()[strings.LastIndex(t.Name(), "/")+1:], n,
				tally.elsewhere, tally.doubted, tally.twice)
		})
	})
	close(rows)
	table := "\n| store | answers, each followed by a SIGTERM after 0 to 12 ms | runs that went on elsewhere or " +
		"later | in doubt | paid twice |\n|---|---|---|---|---|"
	for row := range rows {
		table += "\n" + row
	}
	t.Log(table)
}

type approvalTally struct{ elsewhere, doubted, twice int }

// stopAfterApproval is one trial.
func (c *crew) stopAfterApproval(thread string, after time.Duration, tally *approvalTally) {
	c.Helper()
	k := c.talk("cashier", thread)
	resume := k.resumeAll(k.says("pay 0"))
	body := []byte(mustText(c.T, map[string]any{
		"threadId":        thread,
		"runId":           "r2",
		"protocolVersion": "1.0",
		"messages":        []any{},
		"resume":          resume,
	}))
	answered := make(chan struct{})
	leaving := c.p
	go func() {
		defer close(answered)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if res, err := postTo(ctx, leaving.url, "cashier", body); err == nil { // or it has stopped before
			_ = readStream(res.Body, func(record) bool { return false })
			res.Body.Close()
		}
	}()
	wait.Pass(after)
	leaving.signal(syscall.SIGTERM)
	<-leaving.done
	<-answered
	if c.shared() {
		c.p, c.standby = c.standby, c.start()
	} else {
		c.p = c.start()
	}
	end := k.posts("resume", resume)
	if code := end.Data["code"]; end.kind() != "RUN_FINISHED" {
		c.Errorf("%s: the run ended with %v: %s", thread, code, end.Raw)
	}
	said := ""
	for _, id := range k.order {
		r := k.seen[id]
		said += r.Raw
		if r.kind() == "CUSTOM" && r.Data["name"] == "holdfast.takeover" {
			tally.elsewhere++
		}
	}
	paid := len(c.lines("paid thread=" + thread + " "))
	if strings.Contains(said, "Outcome unknown") {
		tally.doubted++
		c.Errorf("%s: stopped %s after the answer: the call is in doubt, and was started %d times", thread, after, paid)
	} else if paid != 1 {
		c.Errorf("%s: stopped %s after the answer: paid %d times", thread, after, paid)
	}
	if paid > 1 {
		tally.twice++
	}
}

// resumeAll agrees to everything that the record asks.
func (k *talk) resumeAll(end record) []map[string]any {
	k.answers = map[string]string{"input_required": `{}`}
	defer func() { k.answers = map[string]string{} }()
	return k.resume(end)
}
