package loop

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
)

// seen is what a model was shown, in short.
func seen(messages []holdfast.Message) string {
	var parts []string
	for _, m := range messages {
		s := string(m.Role)
		for _, c := range m.Calls {
			s += " calls " + c.ID
		}
		if m.CallID != "" {
			s += " of " + m.CallID
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func TestRepair(t *testing.T) {
	user := holdfast.Message{Role: holdfast.RoleUser}
	asks := func(ids ...string) (m holdfast.Message) {
		m.Role = holdfast.RoleAssistant
		for _, id := range ids {
			m.Calls = append(m.Calls, holdfast.ToolCall{ID: id})
		}
		return m
	}
	result := func(id string) holdfast.Message { return holdfast.Message{Role: holdfast.RoleTool, CallID: id} }
	for _, c := range []struct {
		in   []holdfast.Message
		want string
	}{
		{[]holdfast.Message{user, asks("a", "b"), result("b"), result("a"), user}, "user, assistant calls a calls b, tool of b, tool of a, user"},
		{[]holdfast.Message{result("a"), user}, "user"},
		{[]holdfast.Message{user, asks("a", "b"), result("b"), user}, "user, assistant calls a calls b, tool of b, tool of a, user"},
		{[]holdfast.Message{user, asks("a")}, "user, assistant calls a, tool of a"},
		{[]holdfast.Message{user, asks("a"), result("a"), result("a"), result("z")}, "user, assistant calls a, tool of a"},
	} {
		got := repair(c.in)
		if seen(got) != c.want || !wellFormed(got) {
			t.Errorf("of %s the model sees %s, want %s", seen(c.in), seen(got), c.want)
		}
		if wellFormed(c.in) != (seen(c.in) == c.want) {
			t.Errorf("wellFormed(%s) is %v", seen(c.in), wellFormed(c.in))
		}
	}
}

// TestModelSeesLess: a middleware shows the model only the end of the history; the
// history holds all of it.
func TestModelSeesLess(t *testing.T) {
	var shown []string
	model := say(calls("ping", "{}"), calls("ping", "{}"), holdfast.Delta{Text: "done"})
	spy := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		shown = append(shown, seen(req.Messages))
		whole := *req
		whole.Messages = make([]holdfast.Message, 2*req.Iteration+1)
		for i := 0; i < req.Iteration; i++ {
			whole.Messages[2*i+1].Role = holdfast.RoleAssistant // say counts turns
		}
		return model.Stream(ctx, &whole)
	})
	window := holdfast.Middleware{Name: "window", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
		return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			less := *req
			less.Messages = req.Messages[max(0, len(req.Messages)-1):]
			return next(ctx, &less)
		}
	}}
	pong := tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
	e := engine(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: spy, Tools: []holdfast.Tool{pong}, Middleware: []holdfast.Middleware{window}})
	reply, err := e.Post(t.Context(), alice, "", runInput("t", "r1", userSays("u1", "go")))
	succeeded(t, collect(t, reply, err))
	if want := []string{"user", "", ""}; !slices.Equal(shown, want) {
		t.Errorf("the model saw %q, want %q: a result without its call is left out", shown, want)
	}
	wantTexts(t, e, "t", "user:go", "assistant:", "tool:pong", "assistant:", "tool:pong", "assistant:done")
}

// TestCancelMarksWhatItKeeps: the part of an answer that was read stays, and says
// that it is a part.
func TestCancelMarksWhatItKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var words []holdfast.Delta
		for i := range 100 {
			words = append(words, holdfast.Delta{Text: fmt.Sprintf("word%d ", i)})
		}
		e := engine(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: slowly(append(words, holdfast.Delta{Finish: holdfast.FinishStop}))})
		if _, err := e.Post(t.Context(), alice, "", runInput("t", "r1", userSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(205 * time.Millisecond)
		must(e.Cancel(t.Context(), alice, "t", "r1"))(t)
		time.Sleep(5 * time.Second)
		raw := must(e.Messages(t.Context(), alice, "t"))(t)
		last := must(agui.DecodeMessage(raw[len(raw)-1]))(t)
		if !strings.Contains(string(last.Content), "word5") || string(last.Metadata) != `{"holdfast":{"partial":true}}` {
			t.Errorf("what was kept is %s", raw[len(raw)-1])
		}
	})
}
