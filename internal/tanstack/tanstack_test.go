package tanstack_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/tanstack"
)

// history is a history with everything that a message can have.
var history = []string{
	`{"id":"s","role":"system","content":"be kind"}`,
	`{"id":"u","role":"user","content":[{"type":"text","text":"look"},` +
		`{"type":"image","source":{"type":"url","value":"https://x"}}],"metadata":{"k":1}}`,
	`{"id":"r","role":"reasoning","content":"hm"}`,
	`{"id":"a","role":"assistant","content":"I do.","toolCalls":[` +
		`{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"n\":1}"}},` +
		`{"id":"c2","type":"function","function":{"name":"g","arguments":"{"}}]}`,
	`{"id":"t1","role":"tool","toolCallId":"c1","content":"{\"is\":2}"}`,
	`{"id":"t2","role":"tool","toolCallId":"c2","content":[{"type":"text","text":"words"}]}`,
	`{"id":"p","role":"activity","activityType":"x","content":{}}`,
	`{"id":"e","role":"assistant","content":""}`,
	`{"id":"r2","role":"reasoning","content":"well"}`,
	`{"id":"u2","role":"user","content":"and?"}`,
	`{"id":"t3","role":"tool","toolCallId":"c9","content":"lost"}`,
}

// shown is the same as the client keeps it.
var shown = []string{
	`{"id":"s","role":"system","parts":[{"type":"text","content":"be kind"}]}`,
	`{"id":"u","role":"user","parts":[{"type":"text","content":"look"},` +
		`{"type":"image","source":{"type":"url","value":"https://x"}}],"metadata":{"k":1}}`,
	`{"id":"a","role":"assistant","parts":[{"type":"thinking","content":"hm","stepId":"r"},` +
		`{"type":"text","content":"I do."},` +
		`{"type":"tool-call","id":"c1","name":"f","arguments":"{\"n\":1}","state":"complete",` +
		`"input":{"n":1},"output":{"is":2}},` +
		`{"type":"tool-call","id":"c2","name":"g","arguments":"{","state":"complete",` +
		`"output":[{"type":"text","content":"words"}]},` +
		`{"type":"tool-result","id":"t1","toolCallId":"c1","content":"{\"is\":2}","state":"complete"},` +
		`{"type":"tool-result","id":"t2","toolCallId":"c2","content":[{"type":"text","content":"words"}` +
		`],"state":"complete"}]}`,
	`{"id":"e","role":"assistant","parts":[]}`,
	`{"id":"r2","role":"assistant","parts":[{"type":"thinking","content":"well","stepId":"r2"}]}`,
	`{"id":"u2","role":"user","parts":[{"type":"text","content":"and?"}]}`,
	`{"id":"t3","role":"assistant","parts":[{"type":"tool-result","id":"t3","toolCallId":"c9","content":"lost",` +
		`"state":"complete"}]}`,
}

func of(messages ...string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, m := range messages {
			if !yield([]byte(m), nil) {
				return
			}
		}
	}
}

// all returns what a history is shown as.
func all(t *testing.T, messages iter.Seq2[[]byte, error]) (out []string) {
	t.Helper()
	for m, err := range messages {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(m))
	}
	return out
}

// TestMessages: every message of AG-UI becomes what the client itself makes of its events; a reader may stop
// anywhere, and an error ends it.
func TestMessages(t *testing.T) {
	if got := all(t, tanstack.Messages(of(history...))); !slices.Equal(got, shown) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(shown, "\n"))
	}
	for n := range shown {
		read := 0
		for range tanstack.Messages(of(history...)) {
			if read++; read > n {
				break
			}
		}
		if read != n+1 {
			t.Errorf("read %d, then %d more", n+1, read)
		}
	}
	gone := errors.New("gone")
	last := error(nil)
	for _, err := range tanstack.Messages(func(yield func([]byte, error) bool) {
		_ = yield([]byte(history[0]), nil) && yield(nil, gone)
	}) {
		last = err
	}
	if !errors.Is(last, gone) {
		t.Errorf("it ends with %v", last)
	}
}

// TestWindow: pages of a history, from its end.
func TestWindow(t *testing.T) {
	messages := tanstack.Messages(of(history...))
	var paged []string
	for before, n := "", 0; n < 10; n++ {
		w, err := tanstack.Before(messages, before, 3)
		if err != nil {
			t.Fatal(err)
		}
		page := all(t, w.Of(messages))
		if paged = append(page, paged...); w.Cursor == "" {
			break
		}
		before = w.Cursor
	}
	if !slices.Equal(paged, shown) {
		t.Errorf("in pages: %q", paged)
	}
	if _, err := tanstack.Before(messages, "nowhere", 3); !errors.Is(err, tanstack.ErrNoMessage) {
		t.Errorf("before a message that is not there: %v", err)
	}
}
