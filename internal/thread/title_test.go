package thread

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// says returns a history of messages, each "role content".
func says(t *testing.T, list ...string) *History {
	t.Helper()
	h := NewHistory()
	for i, s := range list {
		role, content, _ := strings.Cut(s, " ")
		m, err := agui.DecodeMessage([]byte(`{"id":"m` + string(rune('0'+i)) + `","role":"` + role + `","content":` +
			content + `}`))
		if err != nil {
			t.Fatal(err)
		}
		h.Add(m, nil)
	}
	return h
}

// TestMakeTitle: the first message that says anything, on one line that a list has room for.
func TestMakeTitle(t *testing.T) {
	for _, c := range []struct {
		messages []string
		want     string
	}{
		{nil, ""},
		{[]string{`assistant "hello"`}, ""},
		{[]string{`system "be kind"`, `user "hi"`, `user "more"`}, "hi"},
		{[]string{`user "  two\n\tlines\u0007 "`}, "two lines"},
		{[]string{`user "pay \u202eevil\u2066 now"`}, "pay evil now"},
		{[]string{`user [{"type":"image","source":{"type":"url","value":"https://a.example/b.png"}}]`,
			`user "what is it?"`},
			"what is it?"},
		{[]string{`user [{"type":"text","text":"look"},{"type":"image","source":{"type":"url",` +
			`"value":"https://a.example/b.png"}}]`},
			"look"},
		{[]string{`user "` + strings.Repeat("a", 80) + `"`}, strings.Repeat("a", 80)},
		{[]string{`user "` + strings.Repeat("ä", 81) + `"`}, strings.Repeat("ä", 79) + "…"},
		{[]string{`user "` + strings.Repeat("word ", 30) + `"`}, strings.TrimSpace(strings.Repeat("word ", 15)) + "…"},
	} {
		var d Described
		d.MakeTitle(says(t, c.messages...).Path)
		if d.Title != c.want {
			t.Errorf("%q: %q, want %q", c.messages, d.Title, c.want)
		}
	}
}

// TestDescribe: a person's title stays, until the person gives it back.
func TestDescribe(t *testing.T) {
	h := says(t, `user "hi"`)
	text := func(s string) *string { return &s }
	hide, show := true, false
	var d Described
	for i, c := range []struct {
		change threads.Description
		want   Described
	}{
		{threads.Description{}, Described{}},
		{threads.Description{Title: text("mine")}, Described{Title: "mine"}},
		{threads.Description{Hidden: &hide}, Described{Title: "mine", Hidden: true}},
		{threads.Description{Title: text(""), Hidden: &show}, Described{Title: "hi"}},
	} {
		d.Describe(c.change, h.Path)
		if d != c.want {
			t.Errorf("%d: %+v, want %+v", i, d, c.want)
		}
		if d.Title != "" {
			d.MakeTitle(says(t, `user "another"`).Path)
		}
		if d != c.want {
			t.Errorf("%d, in the next run: %+v, want %+v", i, d, c.want)
		}
	}
}
