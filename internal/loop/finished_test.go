package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Hooks around a call whose result is there already.

// seen notes what passes a hook.
func seen(j *looptest.Notebook) holdfast.Middleware {
	return holdfast.Middleware{Name: "test.seen", Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
		return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
			result, err := next(ctx, tool, call)
			j.Note(fmt.Sprintf("%s finished=%t %q %t", tool.Spec().Name, call.Finished, result.Text, err != nil))
			result.Text = strings.ReplaceAll(result.Text, "secret", "[hidden]")
			return result, err
		}
	}}
}

// TestFinishedIsNotLimited: what comes from outside reaches the model, however often the
// tool has been called meanwhile: the call was counted when it was handed out.
func TestFinishedIsNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, j := &postbox{}, &looptest.Notebook{}
		agent := outsideAgent(finance(p, holdfast.Outside{}))
		agent.Middleware = []holdfast.Middleware{
			middleware.RateLimit(middleware.RateLimitOptions{Limit: 1, Window: middleware.Duration(time.Minute),
				Then: "tell"}),
			seen(j),
		}
		e := looptest.Start(t, memstore.New(), withURLs, agent)
		waitingFor(t, looptest.Started(t, e, "t"))
		first := p.token()
		time.Sleep(time.Minute)
		waitingFor(t, looptest.Started(t, e, "other"))
		j.Take()
		looptest.Must(finish(e, first, `{"approved": true}`))(t)
		settled(t, e, "t")
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:{"approved":true}`, "assistant:done")
		if got := j.Take(); !slices.Equal(got, []string{`approve finished=true "{\"approved\":true}" false`}) {
			t.Errorf("the hooks have seen %q", got)
		}
	})
}

// TestFinishedIsNotRetried: an error from outside is the call's result, however often somebody
// asks.
func TestFinishedIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &postbox{}
		agent := outsideAgent(finance(p, holdfast.Outside{}, holdfast.WithEffect(holdfast.EffectIdempotent)))
		agent.Middleware = []holdfast.Middleware{middleware.Retry(middleware.RetryOptions{})}
		e := looptest.Start(t, memstore.New(), withURLs, agent)
		waitingFor(t, looptest.Started(t, e, "t"))
		looptest.Must(e.Owner.Finish(t.Context(),
			owner.OutsideResult{Token: p.token(), Result: json.RawMessage(`"the department is closed"`),
				Failed: true}))(t)
		settled(t, e, "t")
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:the department is closed", "assistant:done")
	})
}

// TestLookedUpPassesHooks: what a tool finds out about a call in doubt is a result like any
// other to the hooks that look at results.
func TestLookedUpPassesHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		pay := holdfast.NewTool("pay", "pays", func(context.Context, struct{}) (string, error) {
			return "", holdfast.ErrOutcomeUnknown
		}, holdfast.WithQuery(func(context.Context, holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
			return holdfast.ToolResult{Text: "paid with a secret"}, holdfast.FateDone, nil
		}))
		e := looptest.Start(t, memstore.New(), nil,
			holdfast.Agent{Name: "a", Model: looptest.Say(looptest.Calls("pay", `{}`), holdfast.Delta{Text: "done"}),
				Tools: []holdfast.Tool{pay}, Middleware: []holdfast.Middleware{seen(j)}})
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:paid with a [hidden]", "assistant:done")
		if got := j.Take(); !slices.Equal(got,
			[]string{`pay finished=false "" true`, `pay finished=true "paid with a secret" false`}) {
			t.Errorf("the hooks have seen %q", got)
		}
	})
}

// TestFinishedWithoutItsContract: what has come passes the hooks also if the contract is not
// there any more.
func TestFinishedWithoutItsContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := memstore.New(), &looptest.Notebook{}
		p := &postbox{}
		ask := holdfast.NewTool("ask", "asks", func(ctx context.Context, _ struct{}) (string, error) {
			if holdfast.CallFrom(ctx).Answer == nil {
				return "", &holdfast.Interrupt{Message: "Go on?"}
			}
			return "yes", nil
		})
		model := callsThese(`approve {"amount":7}`, "ask {}")
		e := looptest.Start(t, s, withURLs, holdfast.Agent{
			Name:  "a",
			Model: model,
			Tools: []holdfast.Tool{ask, finance(p, holdfast.Outside{Result: json.RawMessage(`{"type":"string"}`)})},
		})
		open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))
		looptest.Must(finish(e, p.token(), `"a secret"`))(t)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		e = looptest.Start(t, s, nil, holdfast.Agent{
			Name:       "a",
			Model:      model,
			Tools:      []holdfast.Tool{ask},
			Middleware: []holdfast.Middleware{seen(j)},
		})
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", `{}`, open...)))
		if got := looptest.Texts(t, e, "t"); !slices.Contains(got, "tool:a [hidden]") {
			t.Errorf("the history is %q", got)
		}
	})
}
