package loop_test

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
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// roles are those of the messages that a model was shown.
func roles(messages []holdfast.Message) string {
	var parts []string
	for _, m := range messages {
		parts = append(parts, string(m.Role))
	}
	return strings.Join(parts, ", ")
}

// TestModelSeesLess: a middleware shows the model only the end of the history; the
// history holds all of it.
func TestModelSeesLess(t *testing.T) {
	var shown []string
	model := looptest.Say(looptest.Calls("ping", "{}"), looptest.Calls("ping", "{}"), holdfast.Delta{Text: "done"})
	spy := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		shown = append(shown, roles(req.Messages))
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
	pong := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
	e := looptest.Start(t, memstore.New(), nil,
		holdfast.Agent{Name: "a", Model: spy, Tools: []holdfast.Tool{pong}, Middleware: []holdfast.Middleware{window}})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	if want := []string{"user", "", ""}; !slices.Equal(shown, want) {
		t.Errorf("the model saw %q, want %q: a result without its call is left out", shown, want)
	}
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:pong", "assistant:", "tool:pong", "assistant:done")
}

// TestCancelMarksWhatItKeeps: the part of an answer that was read stays, and says
// that it is a part.
func TestCancelMarksWhatItKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var words []holdfast.Delta
		for i := range 100 {
			words = append(words, holdfast.Delta{Text: fmt.Sprintf("word%d ", i)})
		}
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Slowly(append(words, holdfast.Delta{Finish: holdfast.FinishStop})),
		})
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(205 * time.Millisecond)
		looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
		time.Sleep(5 * time.Second)
		raw := looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)
		last := looptest.Must(agui.DecodeMessage(raw[len(raw)-1]))(t)
		if !strings.Contains(string(last.Content), "word5") ||
			string(last.Metadata) != `{"holdfast":{"partial":true}}` {
			t.Errorf("what was kept is %s", raw[len(raw)-1])
		}
	})
}
