package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/thread"
)

// goldenEdited are the threads in a golden store whose process died in the middle of a call
// that a person had approved with other arguments.
type goldenEdited struct {
	Edited []string
}

// editedCall is a call about which a person is asked, and the arguments that they choose.
type editedCall struct {
	use, chosen string
	once        bool   // or it is made again
	result      string // after the takeover
}

var editedCalls = map[string]editedCall{
	"edited-once": {
		use: `use charge_card {"amount": 70, "currency": "EUR"}`, chosen: `{"amount": 7, "currency": "EUR"}`,
		once: true, result: thread.TextInDoubt,
	},
	"edited-again": {
		use:    `use update_plan {"title": "Ask me", "steps": [{"title": "one", "done": false}]}`,
		chosen: `{"title": "Mine", "steps": [{"title": "one", "done": true}]}`,
		result: "1 of 1 steps are done.",
	},
}

// leaveEdited makes those threads and kills the server. The key of the call that is made again
// is noted with the other keys.
func (g *golden) leaveEdited(t *testing.T, p *process, journal string) {
	t.Helper()
	resumes := map[string]string{}
	for name, call := range editedCalls {
		open := interruptsOf(chats(t, p, name, "r1", userMessage("u1", call.use), nil, nil))
		if len(open) != 1 || open[0]["reason"] != "tool_call" {
			t.Fatalf("%s asks %v", name, open)
		}
		resumes[name] = mustText(t, []any{map[string]any{
			"interruptId": open[0]["id"], "status": "resolved",
			"payload": map[string]any{"approved": true, "editedArgs": json.RawMessage(call.chosen)},
		}})
	}
	for name, resume := range resumes {
		chats(t, p, name, "r2", nil, map[string]any{"resume": json.RawMessage(resume)}, func(record) bool {
			return true
		})
	}
	for name, call := range editedCalls {
		p.awaitOutput(func(string) bool { return len(keysOf(p, name)) > 0 }, nil)
		if g.Edited = append(g.Edited, name); !call.once {
			g.readKey(t, p, name)
		}
	}
	p.kill()
	for name := range editedCalls {
		if starts, ends := journaled(t, journal, "tool start", name),
			journaled(t, journal, "tool end", name); starts != 1 || ends != 0 {
			t.Fatalf("the call of %s has started %d times and ended %d times, want it under way", name, starts, ends)
		}
	}
}

// journaled counts the lines of the thread.
func journaled(t *testing.T, journal, what, thread string) (n int) {
	t.Helper()
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, what+" ") && fields(line)["thread"] == thread {
			n++
		}
	}
	return n
}

// checkEdited: the calls that were under way go on with the arguments that the person chose:
// what runs once is in doubt and does not run again; checkKeys compares the key of the other.
func (g *goldenEdited) checkEdited(t *testing.T, p *process, journal string) {
	t.Helper()
	for _, name := range g.Edited {
		call := editedCalls[name]
		if end := (&watcher{killer: &killer{T: t, p: p}, thread: name,
			run: "r2"}).follow(); end.kind() != "RUN_FINISHED" {
			t.Errorf("%s ended with %s", name, end.Raw)
		}
		var body struct {
			Messages []struct {
				Role, Content string
				ToolCalls     []struct{ Function struct{ Arguments string } }
			}
		}
		getJSON(t, p.url+"/threads/"+name+"/messages", &body)
		arguments, result := "", ""
		for _, m := range body.Messages {
			for _, c := range m.ToolCalls {
				arguments += c.Function.Arguments
			}
			if m.Role == "tool" {
				result += m.Content
			}
		}
		if thread.CallHash("", arguments) != thread.CallHash("", call.chosen) ||
			!strings.Contains(result, call.result) {
			t.Errorf("%s: the call with %s has the result %q, want %s and %q", name, arguments, result, call.chosen,
				call.result)
		}
		want := 1
		if call.once {
			want = 0
		}
		if n := journaled(t, journal, "tool start", name); n != want {
			t.Errorf("%s: the call has started %d times, want %d", name, n, want)
		}
	}
}
