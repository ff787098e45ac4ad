package remote_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/remote"
)

// deltas returns what the agent's answer consists of, and its error.
func deltas(t *testing.T, s *script) (all []holdfast.Delta, failed error) {
	t.Helper()
	for d, err := range s.agent(remote.Options{}).Stream(t.Context(), &holdfast.ModelRequest{Thread: "t", Run: "r"}) {
		if all = append(all, d); err != nil {
			failed = err
		}
	}
	return all, failed
}

// TestBesideIsBounded: activities and steps of an agent have the bounds of everybody's, whatever its patches
// make of them. The log is not filled with what is left out, and says where that was.
func TestBesideIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var run strings.Builder
		snapshot := func(id, content string) {
			fmt.Fprintf(&run, `{"type":"ACTIVITY_SNAPSHOT","messageId":%q,"activityType":"plan","content":{"a":%q}}`+
				"\n", id, content)
		}
		snapshot("large", strings.Repeat("x", activity.MaxBytes))
		snapshot("grows", strings.Repeat("y", activity.MaxBytes/3))
		for n := range 3 {
			fmt.Fprintf(&run, `{"type":"ACTIVITY_DELTA","messageId":"grows","activityType":"plan","patch":[`+
				`{"op":"copy","from":"/a","path":"/b%d"}]}`+"\n", n)
		}
		snapshot(strings.Repeat("i", 300), "long")
		fmt.Fprintf(&run, `{"type":"STEP_STARTED","stepName":%q}`+"\n", strings.Repeat("s", 300))
		for n := range 300 {
			snapshot(fmt.Sprint("a", n), "z")
		}
		h := start(t, newScript(t, started+run.String()+says("m", "Done.")+finished), remote.Options{})
		r := h.Run("go")
		if r.Outcome != agenttest.Success {
			t.Fatal(r.Outcome, r.Message, r.Hint)
		}
		shown := 0
		for _, m := range r.Messages {
			if m.Activity == nil {
				continue
			}
			if shown++; len(m.Activity.Content) > activity.MaxBytes {
				t.Errorf("an activity has %d bytes", len(m.Activity.Content))
			}
		}
		if shown != 100 {
			t.Errorf("%d activities are shown, want 100", shown)
		}
		if strings.Contains(types(r), "STEP") {
			t.Errorf("a step with a long name is shown")
		}
		said := 0
		for _, line := range h.Log() {
			if !strings.Contains(line, "left out") {
				continue
			}
			if said++; !strings.Contains(line, "thread=t") || !strings.Contains(line, "run=run1") {
				t.Errorf("the log says %s", line)
			}
		}
		if said == 0 || said > 20 {
			t.Errorf("%d lines of the log are about what was left out", said)
		}
	})
}

// TestUsageIsBounded: what an agent says of its usage cannot make a sum overflow.
func TestUsageIsBounded(t *testing.T) {
	all, err := deltas(t, newScript(t, started+says("m", "Done.")+
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":[`+
		`{"inputTokens":9000000000000000000,"outputTokens":3},{"inputTokens":9000000000000000000,"outputTokens":4},`+
		`{"outputTokens":-5}]}`))
	u := all[len(all)-1].Usage
	if err != nil || u == nil || u.InputTokens == nil || u.OutputTokens == nil {
		t.Fatalf("the usage is %+v: %v", u, err)
	}
	if *u.InputTokens < 0 || *u.InputTokens > 1e15 || *u.OutputTokens != 7 {
		t.Errorf("the usage is %d and %d tokens", *u.InputTokens, *u.OutputTokens)
	}
}

// TestBytes: what is passed on beside the answer is a text that every client can read.
func TestBytes(t *testing.T) {
	all, err := deltas(t, newScript(t, started+"{\"type\":\"RAW\",\"event\":\"a\xffb\"}\n"+
		"{\"type\":\"NEWS\",\"x\":\"a\xffb\"}"+finished))
	if err != nil {
		t.Fatal(err)
	}
	some := 0
	for _, d := range all {
		if some += len(d.Beside); !utf8.ValidString(d.Beside) {
			t.Errorf("%q is passed on", d.Beside)
		}
	}
	if some == 0 {
		t.Error("nothing is passed on")
	}
}

// TestSnapshotUnderOtherIDs: what the run has said is not taken from a snapshot again, whatever its id is; a
// part of it, as it was in between, has not been said.
func TestSnapshotUnderOtherIDs(t *testing.T) {
	word := func(id, text string) string {
		return fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":%q}`+"\n", id, text)
	}
	all, err := deltas(t, newScript(t, started+word("m1", "On")+word("m2", "Two.")+word("m1", "e.")+
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"s1","role":"assistant","content":"One."},`+
		`{"id":"s2","role":"assistant","content":"Two."},{"id":"s3","role":"assistant","content":"On"},`+
		`{"id":"s4","role":"assistant","content":"New."},{"id":"s5","role":"assistant","content":"New."}]}`+finished))
	var said []string
	for _, d := range all {
		if d.Text != "" {
			said = append(said, d.Text)
		}
	}
	if got := strings.Join(said, " "); err != nil || got != "On Two. e. On New." {
		t.Errorf("the agent has said %q: %v", got, err)
	}
}

// BenchmarkRestated: a run of many messages, which snapshots of many messages repeat under other ids.
func BenchmarkRestated(b *testing.B) {
	var run, snapshot strings.Builder
	const messages = 10_000
	for n := range messages {
		fmt.Fprintf(&run, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m%d","delta":"%d"}`+"\n", n, n)
		fmt.Fprintf(&snapshot, `,{"id":"s%d","role":"assistant","content":"%d"}`, n, n)
	}
	all := started + run.String() + `{"type":"MESSAGES_SNAPSHOT","messages":[` + snapshot.String()[1:] + `]}` + finished
	for b.Loop() {
		s := newScript(b, all)
		for _, err := range s.agent(remote.Options{}).Stream(b.Context(), &holdfast.ModelRequest{Run: "r"}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestMissingEnds: a call without its end is ended by what follows it.
func TestMissingEnds(t *testing.T) {
	open := `{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"search"}` + "\n" +
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{}"}` + "\n"
	const notSaid = "t:The agent that carried this call out did not say what came of it."
	for name, c := range map[string]struct{ run, history string }{
		"words": {open + says("m", "It is there."), `u:go | a: search{} | ` + notSaid + ` | a:It is there.`},
		"chunks": {`{"type":"TOOL_CALL_CHUNK","toolCallId":"c1","toolCallName":"search","delta":"{}"}` + "\n" +
			says("m", "It is there."), `u:go | a: search{} | ` + notSaid + ` | a:It is there.`},
		"the end": {open, `u:go | a: search{} | ` + notSaid + ` | a:`},
		"two, and the end": {calls("c0", "look", "{}") + open,
			`u:go | a: look{} search{} | ` + notSaid + ` | ` + notSaid + ` | a:`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := start(t, newScript(t, started+c.run+finished), remote.Options{})
				want(t, h.Run("go"), agenttest.Success, c.history)
			})
		})
	}
}
