package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
)

// TestTurns: processes that have all just looked at the same moment look one after the other from then on, so
// that the longest time without a look is that between two of them.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, pace = 10, 50 * time.Millisecond
		name := func(i int) string { return fmt.Sprint("p", i) }
		var looks []time.Duration
		for i := range n {
			p := &peers{own: name(i), clock: &clock.Remote{Local: time.Now}, judge: newJudge()}
			for j := range n {
				if j != i {
					p.judge.watch(name(j), time.Now())
				}
			}
			p.judge.watch("dead", time.Now())
			p.judge.others["dead"].gone = true
			first := p.untilTurn(pace)
			if first < pace/2 || first >= 3*pace/2 {
				t.Errorf("%s looks again after %s", p.own, first)
			}
			time.Sleep(first)
			if next := p.untilTurn(pace); next != pace {
				t.Errorf("%s looks again after %s, and then after %s", p.own, first, next)
			}
			looks = append(looks, time.Duration(time.Now().UnixNano())%pace)
		}
		slices.Sort(looks)
		for i := range looks {
			if want := pace / n * time.Duration(i); looks[i] != want {
				t.Errorf("look %d of a turn comes after %s, want %s", i, looks[i], want)
			}
		}
	})
}
