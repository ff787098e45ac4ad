package decide

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

func msg(role, id, text string, calls ...string) agui.Message {
	m := agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.Role(role), Text: text})
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls,
			agui.ToolCall{ID: c, Type: "function", Function: agui.Function{Name: "f", Arguments: "{}"}})
	}
	if len(calls) > 0 && text == "" {
		m.Content = nil
	}
	return m
}

func result(id, call string) agui.Message {
	return agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.RoleTool, CallID: call, Text: "r"})
}

func historyOf(messages ...agui.Message) *thread.History {
	h := thread.NewHistory()
	for _, m := range messages {
		h.Add(m, m.AppendJSON(nil))
	}
	return h
}

// short writes a list as "role:id role:id", with a star for each call.
func short(messages []agui.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Role+":"+m.ID+strings.Repeat("*", len(m.ToolCalls)))
	}
	return strings.Join(out, " ")
}

func TestImport(t *testing.T) {
	cut := msg("assistant", "a", "", "c1")
	cut.ToolCalls[0].Function.Arguments = `{"half`
	for name, c := range map[string]struct {
		sent []agui.Message
		want string
		err  string
	}{
		"as it is": {[]agui.Message{msg("user", "u", "x"), msg("assistant", "a", "y"), msg("user", "v", "z")},
			"user:u assistant:a user:v", ""},
		"results in place": {[]agui.Message{msg("assistant", "a", "", "c1", "c2"), msg("user", "u", "x"),
			result("r2", "c2"), result("r1", "c1")},
			"assistant:a** tool:r1 tool:r2 user:u", ""},
		"missing result": {[]agui.Message{msg("assistant", "a", "", "c1"), msg("user", "u", "x")},
			"assistant:a* tool: user:u", ""},
		"cut call": {[]agui.Message{cut, msg("user", "u", "x")}, "user:u", ""},
		"double result": {[]agui.Message{msg("assistant", "a", "", "c1"), result("r1", "c1"), result("r2", "c1")},
			"assistant:a* tool:r1", ""},
		"repeated call id": {[]agui.Message{msg("assistant", "a", "", "c"), result("r1", "c"),
			msg("assistant", "b", "", "c"), result("r2", "c")},
			"assistant:a* tool:r1 assistant:b* tool:r2", ""},
		"result before call": {[]agui.Message{result("r", "c"), msg("assistant", "a", "", "c"), msg("user", "u", "x")},
			"", codes.UnknownToolCall},
		"ends in an answer": {[]agui.Message{msg("user", "u", "x"), msg("assistant", "a", "y")}, "",
			codes.NothingToRun},
		"instructions": {[]agui.Message{msg("system", "s", "be brief"), msg("user", "u", "x")}, "user:u", ""},
		"activities are ours": {[]agui.Message{msg("user", "u", "x"),
			{ID: "z", Role: "activity", Content: json.RawMessage(`{}`)}},
			"user:u", ""},
	} {
		got := Compare(nil, nil, c.sent, false, false, "")
		switch {
		case c.err != "":
			if got.Err == nil || got.Err.Code != c.err {
				t.Errorf("%s: %+v, want %s", name, got.Err, c.err)
			}
		case got.Err != nil || short(got.Users) != c.want:
			t.Errorf("%s: %q (%v), want %q", name, short(got.Users), got.Err, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	h := func() *thread.History {
		return historyOf(msg("user", "u1", "one"), msg("assistant", "a1", "answer", "c1"), result("r1", "c1"),
			msg("assistant", "a2", "done"))
	}
	all := h().Path
	half := msg("assistant", "a2", "do")
	for name, c := range map[string]struct {
		sent     []agui.Message
		branch   bool
		whole    bool
		want     string
		parent   string
		resync   bool
		diverged bool
		regen    bool
		err      string
	}{
		"the whole history and something new": {sent: append(slices.Clone(all), msg("user", "u2", "two")),
			want: "user:u2", parent: "a2"},
		"only what is new": {sent: []agui.Message{msg("user", "u2", "two")}, want: "user:u2",
			parent: "a2", resync: true},
		"only what is new, branch": {sent: []agui.Message{msg("user", "u2", "two")}, branch: true,
			want: "user:u2", parent: "a2", resync: true},
		"all there is, branch": {sent: []agui.Message{msg("user", "u2", "two")}, branch: true,
			whole: true, want: "user:u2", diverged: true, parent: "", resync: true},
		"all there is": {sent: []agui.Message{msg("user", "u2", "two")}, whole: true,
			diverged: true, parent: "a2", resync: true},
		"nothing at all": {sent: nil, branch: true, whole: true, parent: "a2", resync: true},
		"all there is and something new": {sent: append(slices.Clone(all), msg("user", "u2", "two")),
			branch: true, whole: true, want: "user:u2", parent: "a2"},
		"half a message, after a cut": {sent: append(slices.Clone(all[:3]), half), want: "", parent: "a2",
			resync: true},
		"a message the server never kept": {sent: append(slices.Clone(all), msg("assistant", "ghost", "boo"),
			msg("user", "u2", "x")),
			want: "user:u2", parent: "a2", resync: true},
		"a result nobody waits for": {sent: append(slices.Clone(all), result("r9", "c9"), msg("user", "u2", "x")),
			want: "user:u2", parent: "a2", resync: true},
		"a shorter list": {sent: nil, want: "", parent: "a2", resync: true},
		"an edited question": {sent: []agui.Message{msg("user", "u1", "ONE")}, diverged: true,
			parent: "a2", resync: true},
		"an edited question, branch": {sent: []agui.Message{msg("user", "u1", "ONE")}, branch: true,
			want: "user:", diverged: true, parent: "", resync: true},
		"the last answer again": {sent: all[:1], want: "", parent: "a2", resync: true},
		"the last answer again, branch": {sent: all[:1], branch: true, want: "", parent: "u1", resync: true,
			regen: true},
		"the rest of the answer, branch": {sent: all[:3], branch: true, want: "", parent: "r1", resync: true,
			regen: true},
		"half of it seen, branch": {sent: all[:2], branch: true, want: "", parent: "a2", resync: true},
		"a ghost at its end, branch": {sent: []agui.Message{all[0], msg("assistant", "ghost", "boo")},
			branch: true, want: "", parent: "a2", resync: true},
		"all of it, branch": {sent: all, branch: true, want: "", parent: "a2"},
		"nothing, branch":   {sent: nil, branch: true, want: "", parent: "a2", resync: true},
		"a known id with another role": {sent: []agui.Message{msg("assistant", "u1", "one")},
			err: codes.InvalidInput},
	} {
		got := Compare(h(), nil, c.sent, c.branch, c.whole, "")
		if c.err != "" {
			if got.Err == nil || got.Err.Code != c.err {
				t.Errorf("%s: %v", name, got.Err)
			}
			continue
		}
		if !c.diverged && short(got.Users) != c.want || got.Parent != c.parent || got.Resync != c.resync ||
			(got.Diverged != nil) != c.diverged || got.Regenerate != c.regen {
			t.Errorf("%s: users %q parent %q resync %v diverged %v regenerate %v", name, short(got.Users), got.Parent,
				got.Resync, got.Diverged, got.Regenerate)
		}
	}
}

// FuzzImport: whatever history a client brings, the imported one is well formed.
func FuzzImport(f *testing.F) {
	f.Add([]byte("\x00\x10\x21\x32\x13\x24"))
	f.Fuzz(func(t *testing.T, code []byte) {
		var sent []agui.Message
		for i, b := range code {
			id := fmt.Sprint("m", i)
			call := fmt.Sprint("c", b>>4&3)
			switch b & 7 {
			case 0, 1:
				sent = append(sent, msg("user", id, "x"))
			case 2:
				sent = append(sent, msg("assistant", id, "y"))
			case 3, 4:
				sent = append(sent, msg("assistant", id, "", call, fmt.Sprint("c", b>>6)))
			case 5, 6:
				sent = append(sent, result(id, call))
			case 7:
				sent = append(sent, msg("reasoning", id, "hm"))
			}
		}
		c := Compare(nil, nil, sent, false, false, "")
		if c.Err != nil {
			return
		}
		open := map[string]bool{}
		seen := map[string]bool{}
		for _, m := range c.Users {
			if m.ID != "" && seen[m.ID] {
				t.Fatalf("%s is imported twice: %s", m.ID, short(c.Users))
			}
			seen[m.ID] = true
			if m.Role == "tool" {
				if !open[m.ToolCallID] {
					t.Fatalf("a result without an open call: %s", short(c.Users))
				}
				delete(open, m.ToolCallID)
				continue
			}
			if len(open) > 0 {
				t.Fatalf("calls without results: %s", short(c.Users))
			}
			for _, call := range m.ToolCalls {
				open[call.ID] = true
			}
		}
		if len(open) > 0 {
			t.Fatalf("calls without results: %s", short(c.Users))
		}
	})
}

// TestImportMatchesResults: of each call the first result after its message counts, also
// if ids are used again and again; what comes before a message answers none of its calls.
func TestImportMatchesResults(t *testing.T) {
	const rounds = 3000
	result := func(id string) agui.Message {
		return agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.RoleTool, CallID: "c", Text: id})
	}
	calls := func(id string) agui.Message {
		return agui.FromDomain(holdfast.Message{
			ID:    id,
			Role:  holdfast.RoleAssistant,
			Calls: []holdfast.ToolCall{{ID: "c", Name: "f", Arguments: json.RawMessage(`{}`)}},
		})
	}
	sent := []agui.Message{
		agui.FromDomain(holdfast.Message{ID: "u", Role: holdfast.RoleUser, Text: "go"}),
		calls("first"),
	}
	for i := range rounds {
		sent = append(sent, result(fmt.Sprint("early", i)))
	}
	for i := range rounds {
		sent = append(sent, calls(fmt.Sprint("a", i)), result(fmt.Sprint("t", i)), result(fmt.Sprint("again", i)))
	}
	c := Compare(nil, nil, sent, false, false, "")
	if c.Err != nil || len(c.Users) != 3+2*rounds {
		t.Fatalf("%v, %d messages", c.Err, len(c.Users))
	}
	if got := c.Users[2].ID; got != "early0" {
		t.Errorf("the first call is answered by %s", got)
	}
	for i := range rounds {
		if a, r := c.Users[3+2*i].ID, c.Users[4+2*i].ID; a != fmt.Sprint("a", i) || r != fmt.Sprint("t", i) {
			t.Fatalf("%s is answered by %s", a, r)
		}
	}
}

// TestSwitch: a list that is a path of the tree, but not the current one, goes on from the
// branch that it shows.
func TestSwitch(t *testing.T) {
	h := func() *thread.History {
		h := historyOf(msg("user", "u1", "one"), msg("assistant", "a1", "answer"), msg("user", "u2", "edited"),
			msg("assistant", "a2", "again"))
		// u3 is what was edited; a4 is another answer to u2; r5 and a5 are one answer to u3.
		for id, of := range map[string][2]string{"u3": {"user", "a1"}, "a4": {"assistant", "u2"},
			"r5": {"reasoning", "u3"}, "a5": {"assistant", "r5"}} {
			h.Elsewhere[id], h.Parents[id] = of[0], of[1]
		}
		return h
	}
	u1, a1, u2, a2 := msg("user", "u1", "one"), msg("assistant", "a1", "answer"), msg("user", "u2", "edited"),
		msg("assistant", "a2", "again")
	u3, a4, a5, fresh := msg("user", "u3", "two"), msg("assistant", "a4", "other"), msg("assistant", "a5", "old"),
		msg("user", "u9", "more")
	for name, c := range map[string]struct {
		sent []agui.Message
		to   string
		back bool
	}{
		"the branch before an edit":           {[]agui.Message{u1, a1, u3, a5, fresh}, "a5", false},
		"another answer":                      {[]agui.Message{u1, a1, u2, a4, fresh}, "a4", false},
		"answered anew there":                 {[]agui.Message{u1, a1, u3}, "u3", true},
		"only shown":                          {[]agui.Message{u1, a1, u3, a5}, "", false},
		"the current one":                     {[]agui.Message{u1, a1, u2, a2, fresh}, "", false},
		"left over on the screen":             {[]agui.Message{u1, a1, u2, a4, a2, fresh}, "", false},
		"no path: a user message is left out": {[]agui.Message{u1, a1, a5, fresh}, "", false},
		"no path: in between":                 {[]agui.Message{u1, a1, fresh, u3, a5}, "", false},
	} {
		got := Compare(h(), nil, c.sent, true, false, "")
		if got.Switch != c.to || got.Regenerate != c.back && c.to != "" {
			t.Errorf("%s: to %q, regenerate %v", name, got.Switch, got.Regenerate)
		}
		if strict := Compare(h(), nil, c.sent, false, false, ""); strict.Switch != "" {
			t.Errorf("%s, without branch: to %q", name, strict.Switch)
		}
	}
}

// TestReorder: a client's list is emptied only if it would get messages in another order
// otherwise, because official clients keep the reasoning that they show, at the top then.
func TestReorder(t *testing.T) {
	u1, a1, u2, a2 := msg("user", "u1", "one"), msg("assistant", "a1", "x"), msg("user", "u2", "two"),
		msg("assistant", "a2", "y")
	h := historyOf(u1, msg("reasoning", "r1", "hm"), a1, u2, a2)
	other, more := msg("user", "u2", "other"), msg("user", "u3", "more")
	for name, c := range map[string]struct {
		sent []agui.Message
		want bool
	}{
		"all of it, and more":                {[]agui.Message{u1, a1, u2, a2, more}, false},
		"only what is new":                   {[]agui.Message{more}, true},
		"an answer is missing":               {[]agui.Message{u1, u2, a2, more}, true},
		"an edit":                            {[]agui.Message{u1, a1, other}, false},
		"an edit as another message":         {[]agui.Message{u1, a1, more}, false},
		"an edit, and what follows is shown": {[]agui.Message{u1, a1, other, a2}, false},
		"an edit that leaves an answer out":  {[]agui.Message{u1, other}, false},
		"an edit, and what is before is not": {[]agui.Message{a1, other}, true},
		"an edit with another after it":      {[]agui.Message{u1, a1, other, more}, true},
		"another answer":                     {[]agui.Message{u1, a1, u2}, false},
		"another answer to the first":        {[]agui.Message{u1}, false},
	} {
		if got := Compare(h, nil, c.sent, true, false, "").Reorder; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
