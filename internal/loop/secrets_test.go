package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// shownTo writes down what a model is asked: roles, secrets and results.
func shownTo(messages []holdfast.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s %s%s", m.Role, m.PlainText(), m.EncryptedValue)
		for _, c := range m.Calls {
			fmt.Fprintf(&b, " %s=%s", c.Name, c.EncryptedValue)
		}
		b.WriteString("; ")
	}
	return b.String()
}

// TestSecretsReturn: what a provider gives with its reasoning and its calls is stored,
// shown, and handed back: in the next iteration, in the next run, and in another thread
// that a client brings the history to. Reasoning between two calls stands before them, so
// that their results follow them.
func TestSecretsReturn(t *testing.T) {
	t.Parallel()
	var requests []string
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			requests = append(requests, shownTo(req.Messages))
			turn := []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}}
			if len(requests) == 1 {
				turn = []holdfast.Delta{
					{
						Reasoning: "hm ",
					},
					{ReasoningSecret: "<s1>"},
					{Call: &holdfast.CallDelta{Name: "ping", Arguments: "{"}},
					{
						Call: &holdfast.CallDelta{Arguments: "}", EncryptedValue: "<c1>"},
					},
					{Reasoning: "so "},
					{ReasoningSecret: "<s2>"},
					{
						Call: &holdfast.CallDelta{Index: 1, Name: "ping", Arguments: "{}"},
					},
					{Finish: holdfast.FinishToolCalls},
				}
			}
			for _, d := range turn {
				if !yield(d, nil) {
					return
				}
			}
		}
	})
	ping := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{ping}})
	events := looptest.Started(t, e, "t")
	looptest.Succeeded(t, events)
	var shown []string
	for _, ev := range events {
		if secret, ok := ev.(agui.ReasoningEncryptedValue); ok {
			shown = append(shown, secret.Subtype+" "+secret.EncryptedValue)
		}
	}
	if got, want := fmt.Sprint(shown), "[message <s1> message <s2> tool-call <c1>]"; got != want {
		t.Errorf("shown are %s, want %s", got, want)
	}
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "again "))))

	raw, err := e.Messages(t.Context(), looptest.Alice, "t")
	if err != nil {
		t.Fatal(err)
	}
	var history []agui.Message
	for _, data := range raw {
		var m agui.Message
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		history = append(history, m)
	}
	looptest.Succeeded(t, looptest.Posted(t, e,
		looptest.RunInput("brought", "r3", append(history, looptest.UserSays("u3", "and "))...)))
	turn := "reasoning hm <s1>; reasoning so <s2>; assistant  ping=<c1> ping=; tool pong; tool pong; "
	for i, want := range []string{turn, turn + "assistant done; user again ; ",
		turn + "assistant done; user again ; assistant done; user and ; "} {
		if got := requests[i+1]; !strings.HasSuffix(got, want) {
			t.Errorf("request %d ends otherwise:\n%s\nwant\n%s", i+1, got, want)
		}
	}
}

// TestCutAtTheLimit: of an answer that its limit or a filter cut off, the last call does not
// start, even if what there is of it is valid JSON.
func TestCutAtTheLimit(t *testing.T) {
	t.Parallel()
	for finish, want := range map[holdfast.FinishReason]string{holdfast.FinishToolCalls: "[cut whole]",
		holdfast.FinishLength: "[whole]", holdfast.FinishFilter: "[whole]"} {
		var mu sync.Mutex
		var ran []string
		tool := func(name string) holdfast.Tool {
			return looptest.Tool(name, holdfast.EffectPure, func(context.Context) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, name)
				return "ok", nil
			})
		}
		model := looptest.Slowly([]holdfast.Delta{
			{
				Call: &holdfast.CallDelta{Name: "whole", Arguments: "{}"},
			},
			{Call: &holdfast.CallDelta{Index: 1, Name: "cut", Arguments: "{}"}},
			{Finish: finish},
		}, []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}})
		e := looptest.Start(t, memstore.New(), nil,
			holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{tool("whole"), tool("cut")}})
		looptest.Succeeded(t, looptest.Started(t, e, "t"))
		if slices.Sort(ran); fmt.Sprint(ran) != want {
			t.Errorf("after %s started are %s, want %s", finish, ran, want)
		}
	}
}
