package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestKilledAfterAFallback: a worker is killed when a model has broken off and the next one is
// asked, and again in a tool that this one has called. The next process asks the second model,
// and so does the run after a person's answer; the run after that begins with the first.
// Nothing of what broke off is left.
func TestKilledAfterAFallback(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		c := newCrew(t, newStore(t)).begin()
		k := c.talk("chained", "t")
		k.answers["input_required"] = `"yes"`
		k.hold("t", "second", 0)
		k.hold("t", "tool", 1)
		var held []string
		k.watch = func() {
			for _, line := range k.news() {
				if strings.HasPrefix(line, "held ") {
					held = append(held, fields(line)["proc"])
				}
			}
			// Once the client has seen the fallback it must last.
			if len(held) > 0 && len(k.customs("holdfast.fallback")) > 0 {
				k.kill(held[0])
				held = held[1:]
			}
		}
		k.wantEnd(k.says("work 0, work 1, ask 2, work 3"), "success")
		if got := len(k.lines("held ")); got != 2 {
			t.Errorf("killed %d times, want 2", got)
		}
		if got := len(k.lines("asked model=first ")); got != 3 {
			t.Errorf("the first model was asked %d times, want 3:\n%s", got, strings.Join(k.lines("asked "), "\n"))
		}
		k.wantFallbacks(1)
		k.wantEnd(k.says("work 0"), "success")
		if got := len(k.lines("asked model=first ")); got != 6 {
			t.Errorf("after the next run the first model was asked %d times, want 6", got)
		}
		k.wantFallbacks(2)
		want := []string{
			"user",
			"assistant work",
			"tool",
			"assistant work",
			"tool",
			"assistant ask",
			"tool",
			"assistant work",
			"tool",
			"assistant",
			"user",
			"assistant work",
			"tool",
			"assistant",
		}
		if got := k.roles(); !slices.Equal(got, want) {
			t.Errorf("the history is %q, want %q", got, want)
		}
	})
}

// wantFallbacks checks the events that tell of a fallback.
func (k *talk) wantFallbacks(n int) {
	k.Helper()
	all := k.customs("holdfast.fallback")
	if len(all) != n {
		k.Errorf("%d fallbacks are told, want %d", len(all), n)
	}
	for _, r := range all {
		if v, _ := r.Data["value"].(map[string]any); v["from"] != "test/first" || v["to"] != "test/second" ||
			v["iteration"] != 0.0 || v["attempt"] != 3.0 {
			k.Errorf("the fallback is told as %s", r.Raw)
		}
	}
}

// roles are the messages of the thread, as roles with the tools that they call. Nothing of
// an answer that broke off may be in it.
func (k *talk) roles() (out []string) {
	k.Helper()
	var history struct {
		Messages []struct {
			Role      string
			Content   json.RawMessage
			ToolCalls []struct{ Function struct{ Name string } }
		}
	}
	if code := getJSON(k.T, k.p.url+"/threads/"+k.thread+"/messages", &history); code != http.StatusOK {
		k.Fatalf("the history cannot be read: %d", code)
	}
	for _, m := range history.Messages {
		line := m.Role
		for _, call := range m.ToolCalls {
			line += fmt.Sprint(" ", call.Function.Name)
		}
		if strings.Contains(string(m.Content), "half") {
			k.Errorf("a message has the text that broke off: %s", m.Content)
		}
		out = append(out, line)
	}
	return out
}
