package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The checks of a run whose owner was killed in each step. It is told by what servers cannot
// know of: what a service outside has written down, and what a client shows.

// effect is something that was done for a call, or to know what became of one.
type effect struct {
	// The kind is "sent" for a call that was made, "did" for work that was done for it, and
	// "looked up".
	What      string
	Tool      string
	Key       string
	Process   string
	Arguments string
}

// result is a call's result in the log. Its owner is the number of the one who stored it,
// from 0.
type result struct {
	tool  string
	owner int
}

// account is what is known of a run's calls. owners are the processes that owned the run, one
// after the other.
type account struct {
	owners  []string
	effects []effect
	results []result
}

// calls is what became of the calls.
type calls struct {
	needed, sent, did, lookedUp int
	complaints                  []string
}

func (c *calls) complain(format string, args ...any) {
	c.complaints = append(c.complaints, fmt.Sprintf(format, args...))
}

// check counts, and says what must not be: a call that is made again by a later owner than
// the one who stored its result, work that was done twice under one key, a call that is made
// again with other arguments, and results without calls. Each step calls a tool at most
// once, so the calls of a tool are in the order of its results.
func (a *account) check() *calls {
	c := &calls{needed: len(a.results)}
	keys, stored := map[string][]string{}, map[string]int{}
	first, did := map[string]effect{}, map[string]int{}
	for _, e := range a.effects {
		switch e.What {
		case "looked up":
			c.lookedUp++
			continue
		case "did":
			c.did++
			did[e.Key]++
			continue
		}
		c.sent++
		if _, again := first[e.Key]; !again {
			first[e.Key] = e
			keys[e.Tool] = append(keys[e.Tool], e.Key)
		}
		if e.Arguments != first[e.Key].Arguments || e.Tool != first[e.Key].Tool {
			c.complain("the call %s was made with %s %s, and then with %s %s", e.Key, first[e.Key].Tool,
				first[e.Key].Arguments, e.Tool, e.Arguments)
		}
	}
	for key, n := range did {
		if n > 1 {
			c.complain("the work of the call %s was done %d times", key, n)
		}
	}
	at := map[string]int{}
	for _, r := range a.results {
		if i := at[r.tool]; i < len(keys[r.tool]) {
			stored[keys[r.tool][i]] = r.owner
		} else {
			c.complain("result %d of %s is of no call", i, r.tool)
		}
		at[r.tool]++
	}
	for _, e := range a.effects {
		by := slices.Index(a.owners, e.Process)
		owner, finished := stored[e.Key]
		switch {
		case e.What != "sent":
		case by < 0:
			c.complain("%s has called %s, and never owned the run", e.Process, e.Tool)
		case !finished:
			c.complain("the call %s of %s has no result", e.Key, e.Tool)
		case by > owner:
			c.complain("the finished call %s of %s was made again: owner %d has stored its result, "+
				"and owner %d has called", e.Key, e.Tool, owner, by)
		}
	}
	return c
}

// transcript returns the messages as text that can be compared: each message a line, with
// its members in alphabetical order. The results of an answer's calls, which are in the order
// in which they were ready, are put in the order of the calls. Ids are drawn by lot, so each is
// replaced by its number in the order of appearance. The last answer is a list of results, whose
// lines are sorted. All else stays as it is, byte for byte.
func transcript(t *testing.T, messages []map[string]any) string {
	t.Helper()
	place := map[any]int{} // of a call in its answer, by its id
	for _, m := range messages {
		for i, c := range callsOf(m) {
			place[c["id"]] = i
		}
	}
	for begin := 0; begin < len(messages); begin++ {
		end := begin
		for end < len(messages) && messages[end]["role"] == "tool" {
			end++
		}
		slices.SortFunc(messages[begin:end], func(a, b map[string]any) int {
			return place[a["toolCallId"]] - place[b["toolCallId"]]
		})
		begin = max(begin, end-1)
	}
	ids := map[string]string{}
	rename := func(m map[string]any, member string) {
		if id, ok := m[member].(string); ok {
			if ids[id] == "" {
				ids[id] = fmt.Sprint("id", len(ids))
			}
			m[member] = ids[id]
		}
	}
	var lines []string
	for i, m := range messages {
		if own, ok := m["metadata"].(map[string]any); ok {
			// A call that a death has cut off says how often it was started.
			if said, ok := own["holdfast"].(map[string]any); ok {
				if delete(said, "attempts"); len(said) == 0 {
					delete(own, "holdfast")
				}
			}
			if len(own) == 0 {
				delete(m, "metadata")
			}
		}
		if text, ok := m["content"].(string); ok && i == len(messages)-1 {
			list := strings.Split(text, "\n")
			slices.Sort(list)
			m["content"] = strings.Join(list, "\n")
		}
		rename(m, "id")
		rename(m, "toolCallId")
		for _, c := range callsOf(m) {
			rename(c, "id")
		}
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\n")
}

// callsOf returns the calls of a message.
func callsOf(m map[string]any) (all []map[string]any) {
	list, _ := m["toolCalls"].([]any)
	for _, c := range list {
		if call, ok := c.(map[string]any); ok {
			all = append(all, call)
		}
	}
	return all
}

// differs returns the first lines that differ; "" if none do.
func differs(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) {
			return fmt.Sprintf("there are %d messages, and should be %d", len(g), len(w))
		}
		if g[i] != w[i] {
			return fmt.Sprintf("message %d is\n%s\nand should be\n%s", i, g[i], w[i])
		}
	}
	return ""
}

// TestAccountsAreChecked: what must not be is found.
func TestAccountsAreChecked(t *testing.T) {
	t.Parallel()
	good := func() *account {
		return &account{
			owners: []string{"p0", "p1", "p2"},
			effects: []effect{
				{
					"sent",
					"lookup",
					"a",
					"p0",
					"1",
				},
				{"did", "lookup", "a", "p0", "1"},
				{"sent", "lookup", "a", "p1", "1"},
				{
					"sent",
					"calculate",
					"b",
					"p1",
					"2",
				},
				{"did", "calculate", "b", "p1", "2"},
				{"looked up", "", "b", "p2", ""},
				{"sent", "lookup", "c", "p2", "3"},
				{"did", "lookup", "c", "p2", "3"},
			},
			results: []result{{"lookup", 1}, {"calculate", 2}, {"lookup", 2}},
		}
	}
	c := good().check()
	if len(c.complaints) > 0 || c.needed != 3 || c.sent != 4 || c.did != 3 || c.lookedUp != 1 {
		t.Errorf("%+v", c)
	}
	for want, change := range map[string]func(*account){
		"was done 2 times": func(a *account) {
			a.effects = append(a.effects, effect{"did", "calculate", "b", "p2", "2"})
		},
		"was made again": func(a *account) {
			a.effects = append(a.effects, effect{"sent", "lookup", "a", "p2", "1"})
		},
		"and then with lookup 9": func(a *account) { a.effects[2].Arguments = "9" },
		"never owned the run":    func(a *account) { a.effects[0].Process = "p7" },
		"has no result":          func(a *account) { a.results = a.results[:2] },
		"is of no call":          func(a *account) { a.results = append(a.results, result{"calculate", 2}) },
	} {
		a := good()
		change(a)
		if got := a.check().complaints; len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("want a complaint that %q, got %q", want, got)
		}
	}
}

// TestTranscriptsAreCompared: ids and the order of an answer's results may be others, and
// nothing else.
func TestTranscriptsAreCompared(t *testing.T) {
	t.Parallel()
	said := func(id, call, text string, results ...string) string {
		all := []map[string]any{
			{
				"id":        id,
				"role":      "assistant",
				"content":   text,
				"toolCalls": []any{map[string]any{"id": call}, map[string]any{"id": call + "b"}},
			},
		}
		for i, c := range results {
			all = append(all, map[string]any{
				"id":         id + fmt.Sprint(i),
				"role":       "tool",
				"toolCallId": c,
				"content":    "result of " + c[2:],
			})
		}
		return transcript(t, append(all, map[string]any{"id": id + "end", "role": "assistant", "content": "done"}))
	}
	want := said("m1", "c1", "hello", "c1", "c1b")
	for _, same := range []string{said("m7", "c9", "hello", "c9", "c9b"), said("m1", "c1", "hello", "c1b", "c1")} {
		if d := differs(same, want); d != "" {
			t.Error(d)
		}
	}
	for _, other := range []string{
		said("m1", "c1", "hellohello", "c1", "c1b"), said("m1", "c1", "hello", "c1"),
		said("m1", "m1", "hello", "m1", "m1b", "m1b"),
		strings.Replace(want, "result of b", "result of c", 1), want + "\n" + want, "",
	} {
		if differs(other, want) == "" {
			t.Errorf("no difference is found to %s", other)
		}
	}
}
