package remote_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/remote"
)

// wholeRun is what an agent says that nobody cuts off.
var wholeRun = started + says("m1", "One.") + calls("c1", "search", `{}`) + calls("c2", "charge", `{"n":1}`) +
	results("c1", "found") + results("c2", "charged") + says("m2", "Two.") + says("m3", "Three.") + finished

// parts are the parts of its history, each of which is there whole or not at all.
var parts = []string{
	`a:One. search{} charge{"n":1}`, `t:found`, `t:charged`, `a:Two.`, `a:Three.`,
}

const unknown = `t:Outcome unknown: no answer came back from this call. It may have taken effect, and it was not ` +
	`started again. Check before you repeat it.`

const lost = `t:No result: the agent was lost while it carried this call out. It can be made again.`

// TestEveryKill kills the agent, and this server, after every event of a run. The
// history is a beginning of the whole run's, and then what the agent says when it is asked again: nothing
// is lost, said twice or done twice, and of a call in doubt it says so.
func TestEveryKill(t *testing.T) {
	events := strings.Split(strings.TrimSpace(wholeRun), "\n")
	for at := range events {
		for _, dies := range []string{"agent", "server"} {
			if at == len(events)-1 && dies == "server" {
				continue // the run has ended
			}
			t.Run(fmt.Sprintf("%s after %d", dies, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					run := strings.Join(events[:at+1], "\n") + "\n"
					if dies == "server" {
						run += "[die]\n"
					}
					s := newScript(t, run, started+says("m9", "Whole.")+finished)
					o := remote.Options{OnCut: "retry",
						Effects: map[string]holdfast.Effect{"search": holdfast.EffectPure}}
					killed(t, start(t, s, o), s, dies == "server")
				})
			})
		}
	}
}

// killed runs the agent, and checks what has become of the run.
func killed(t *testing.T, h *agenttest.Harness, s *script, server bool) {
	t.Helper()
	if server {
		go func() {
			<-s.reached
			time.Sleep(time.Second)
			h.Crash()
		}()
	}
	r := h.Run("go")
	if server && r.Outcome == agenttest.Cut {
		h.Restart()
		r = h.Resume()
	}
	if r.Outcome != agenttest.Success {
		t.Fatalf("the outcome is %s: %s", r.Outcome, r.Hint)
	}
	got := strings.TrimPrefix(history(r.Messages), "u:go")
	got = strings.TrimSuffix(got, " | a:Whole.")
	// A text that says that nobody knows stands in place of a call's result.
	known := strings.NewReplacer(unknown, parts[2], lost, parts[1]).Replace(got)
	whole := ""
	for n := range len(parts) + 1 {
		if n > 0 {
			whole += " | " + parts[n-1]
		}
		if known == whole && (known == got || n == 3) {
			return
		}
	}
	t.Errorf("the history is %s", got)
}
