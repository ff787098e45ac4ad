package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
)

// TestHookOrder: hooks are called in the order of the list, and wrap in it.
func TestHookOrder(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), nil,
		looptest.Pinger(1, looptest.Recorder("one", j), looptest.Recorder("two", j)))
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	want := []string{
		"one run",
		"two run",
		"one before 0",
		"two before 0",
		"one model",
		"two model",
		"one batch 0 of 1",
		"two batch 0 of 1",
		"one tool",
		"two tool",
		"one after 0: 1",
		"two after 0: 1",
		"one before 1",
		"two before 1",
		"one model",
		"two model",
		"one after 1: done0",
		"two after 1: done0",
		"two run over: success",
		"one run over: success",
	}
	if got := j.Take(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// hookFailures notes the hooks that have failed.
func hookFailures(j *looptest.Notebook) observe.Observer {
	return observe.Observer{
		HookFailed: func(_ holdfast.Iteration, middleware, hook string) { j.Note(middleware + " " + hook) },
	}
}

// TestHookFailures: an error or a panic of a hook ends the run with an error that names the
// hook and reveals nothing else; AfterIteration cannot end it; and the run can be continued.
func TestHookFailures(t *testing.T) {
	broken := errors.New("a secret")
	for hook, make := range map[string]func(fail func() error) holdfast.Middleware{
		hooks.Run: func(fail func() error) holdfast.Middleware {
			return holdfast.Middleware{Run: func(next holdfast.RunCall) holdfast.RunCall {
				return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
					if err := fail(); err != nil {
						return "", holdfast.Errorf(codes.MiddlewareFailed, "test.broken run").Wrap(err)
					}
					return next(ctx, it)
				}
			}}
		},
		hooks.BeforeIteration: func(fail func() error) holdfast.Middleware {
			return holdfast.Middleware{BeforeIteration: func(context.Context,
				*holdfast.Iteration) error {
				return fail()
			}}
		},
		hooks.Batch: func(fail func() error) holdfast.Middleware {
			return holdfast.Middleware{Batch: func(context.Context, *holdfast.Batch) error { return fail() }}
		},
		hooks.Model: func(fail func() error) holdfast.Middleware {
			return holdfast.Middleware{Model: func(next holdfast.ModelCall) holdfast.ModelCall {
				return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					return func(yield func(holdfast.Delta, error) bool) {
						if err := fail(); err != nil {
							yield(holdfast.Delta{},
								holdfast.Errorf(codes.MiddlewareFailed, "test.broken model").Wrap(err))
							return
						}
						next(ctx, req)(yield)
					}
				}
			}}
		},
		hooks.Tool: func(fail func() error) holdfast.Middleware {
			return holdfast.Middleware{Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
				return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult,
					error) {
					if err := fail(); err != nil {
						return holdfast.ToolResult{},
							&holdfast.EndRun{Err: holdfast.Errorf(codes.MiddlewareFailed, "test.broken tool").
								Wrap(err)}
					}
					return next(ctx, tool, call)
				}
			}}
		},
	} {
		for how, fail := range map[string]func() error{"error": func() error { return broken },
			"panic": func() error { panic("a secret") }} {
			t.Run(hook+"/"+how, func(t *testing.T) {
				seen, fails := &looptest.Notebook{}, 1
				m := make(func() error {
					if fails--; fails >= 0 {
						return fail()
					}
					return nil
				})
				m.Name = "test.broken"
				e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.Observer = hookFailures(seen) },
					looptest.Pinger(1, m))
				said := looptest.Failed(t, looptest.Started(t, e, "t"), codes.MiddlewareFailed)
				if !strings.Contains(said.FullText(), "test.broken") || !strings.Contains(said.FullText(), hook) ||
					strings.Contains(said.FullText(), "secret") {
					t.Errorf("the error says %q", said.FullText())
				}
				if got := seen.Take(); how == "panic" && !slices.Equal(got, []string{"test.broken " + hook}) {
					t.Errorf("the observer was told %q", got)
				}
				looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
			})
		}
	}
	t.Run("after", func(t *testing.T) {
		seen := &looptest.Notebook{}
		m := holdfast.Middleware{
			Name:           "test.broken",
			AfterIteration: func(context.Context, *holdfast.Iteration, *holdfast.IterationResult) { panic("a secret") },
		}
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.Observer = hookFailures(seen) },
			looptest.Pinger(1, m))
		looptest.Succeeded(t, looptest.Started(t, e, "t"))
		if got := seen.Take(); !slices.Equal(got,
			[]string{"test.broken after_iteration", "test.broken after_iteration"}) {
			t.Errorf("the observer was told %q", got)
		}
	})
}

// TestRunHookEnds: a Run hook may refuse the run, must not swallow it, and what it puts
// into the context reaches the other hooks and the tools.
func TestRunHookEnds(t *testing.T) {
	type key struct{}
	around := holdfast.Middleware{Name: "test.around", Run: func(next holdfast.RunCall) holdfast.RunCall {
		return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
			switch it.Thread {
			case "refused":
				return "", holdfast.Errorf("closed", "We are closed.")
			case "swallowed":
				return "success", nil
			}
			return next(context.WithValue(ctx, key{}, "yes"), it)
		}
	}}
	saw := holdfast.NewTool("saw", "saw", func(ctx context.Context, _ struct{}) (string, error) {
		return fmt.Sprint(ctx.Value(key{}), " ", holdfast.IterationFrom(ctx).Agent), nil
	})
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:       "a",
		Model:      looptest.Say(looptest.Calls("saw", "{}"), holdfast.Delta{Text: "done"}),
		Tools:      []holdfast.Tool{saw},
		Middleware: []holdfast.Middleware{around},
	})
	looptest.Failed(t, looptest.Started(t, e, "refused"), "closed")
	looptest.Failed(t, looptest.Started(t, e, "swallowed"), codes.MiddlewareFailed)
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:yes a", "assistant:done")
}

// TestBatchDecides: of parallel calls one is denied, and the other runs; what was
// denied was never started, and says so.
func TestBatchDecides(t *testing.T) {
	j := &looptest.Notebook{}
	run := func(name string) holdfast.Tool {
		return looptest.Tool(name, holdfast.EffectOnce, func(context.Context) (string, error) {
			j.Note(name)
			return name + " ran", nil
		})
	}
	deny := holdfast.Middleware{Name: "test.deny", Batch: func(_ context.Context, b *holdfast.Batch) error {
		for i, c := range b.Calls {
			if c.Name == "refund" {
				b.Deny(i, "Not allowed.")
				b.Ask(i, &holdfast.Interrupt{Message: "a denial stands before a question"})
			}
		}
		return nil
	}}
	store := memstore.New()
	e := looptest.Start(t, store, nil, holdfast.Agent{
		Name:       "a",
		Model:      looptest.TwoCalls("refund", "look"),
		Tools:      []holdfast.Tool{run("refund"), run("look")},
		Middleware: []holdfast.Middleware{deny},
	})
	events := looptest.Started(t, e, "t")
	looptest.Succeeded(t, events)
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:Not allowed.", "tool:look ran", "assistant:done")
	if did := j.Take(); !slices.Equal(did, []string{"look"}) {
		t.Errorf("started: %q", did)
	}
	if !strings.Contains(looptest.Show(events), `"notRun":true`) {
		t.Errorf("the stream does not say that nothing was run:\n%s", looptest.Show(events))
	}
	sound(t, store, "t")
}

// TestPartialApproval: of three parallel calls two are asked about, on their own, and
// the third runs meanwhile.
func TestPartialApproval(t *testing.T) {
	j := &looptest.Notebook{}
	pay := holdfast.NewTool("pay", "pays", func(ctx context.Context, _ struct{}) (string, error) {
		call := holdfast.CallFrom(ctx)
		j.Note("pay")
		return "paid: " + string(call.Answer.Payload), nil
	}, holdfast.WithEffect(holdfast.EffectOnce))
	look := looptest.Tool("look", holdfast.EffectPure, func(context.Context) (string, error) {
		j.Note("look")
		return "seen", nil
	})
	ask := holdfast.Middleware{
		Name: "test.ask",
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			for i, c := range b.Calls {
				if c.Name == "pay" {
					b.Ask(i, &holdfast.Interrupt{Reason: "test:permission", Message: "Pay?"})
				}
			}
			return nil
		},
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if call.Answer != nil && call.Answer.Reason == "test:permission" &&
					string(call.Answer.Payload) == "false" {
					return holdfast.ToolResult{Text: "The person said no.", Failed: true, NotRun: true}, nil
				}
				return next(ctx, tool, call)
			}
		},
	}
	store := memstore.New()
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			for i, name := range []string{"pay", "look", "pay"} {
				yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: "{}"}}, nil)
			}
			yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
		}
	})
	e := looptest.Start(t, store, nil, holdfast.Agent{
		Name:       "a",
		Model:      model,
		Tools:      []holdfast.Tool{pay, look},
		Middleware: []holdfast.Middleware{ask},
	})
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	if did := j.Take(); len(open) != 2 || !slices.Equal(did, []string{"look"}) {
		t.Fatalf("asked %d, ran %q", len(open), did)
	}
	sound(t, store, "t")
	in := looptest.Answers("t", "r2", "true", open[0])
	in.Resume = append(in.Resume, agui.ResumeEntry{InterruptID: open[1].ID, Status: agui.ResumeResolved,
		Payload: json.RawMessage("false")})
	looptest.Succeeded(t, looptest.Posted(t, e, in))
	if did := j.Take(); !slices.Equal(did, []string{"pay"}) {
		t.Errorf("after the answers: %q", did)
	}
	sound(t, store, "t")
}

// TestBatchEndsTheRun: an error of a Batch hook ends the run, nothing of the batch is
// started, also not by a takeover or a resume, and the model reads why.
func TestBatchEndsTheRun(t *testing.T) {
	j := &looptest.Notebook{}
	pay := looptest.Tool("pay", holdfast.EffectOnce, func(context.Context) (string, error) {
		j.Note("pay")
		return "paid", nil
	})
	stop := holdfast.Middleware{Name: "test.stop", Batch: func(context.Context, *holdfast.Batch) error {
		return holdfast.Errorf("test_limit", "The limit is reached.")
	}}
	store := memstore.New()
	e := looptest.Start(t, store, nil, holdfast.Agent{
		Name:       "a",
		Model:      looptest.TwoCalls("pay", "pay"),
		Tools:      []holdfast.Tool{pay},
		Middleware: []holdfast.Middleware{stop},
	})
	looptest.Failed(t, looptest.Started(t, e, "t"), "test_limit")
	sound(t, store, "t")
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
	denied := "tool:Not started: The limit is reached."
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", denied, denied, "assistant:done")
	if did := j.Take(); len(did) != 0 {
		t.Errorf("started: %q", did)
	}
}

// TestDecisionsSurvive: the owner dies after the answer is committed and before the denied
// call has its result. The process that takes over does not start the call.
func TestDecisionsSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		j := &looptest.Notebook{}
		agent := func(decides bool) holdfast.Agent {
			pay := looptest.Tool("pay", holdfast.EffectIdempotent, func(context.Context) (string, error) {
				j.Note("pay")
				return "paid", nil
			})
			hang := looptest.Tool("hang", holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
				if !decides {
					return "hung", nil
				}
				<-ctx.Done()
				return "", ctx.Err()
			})
			m := holdfast.Middleware{Name: "test.deny", Batch: func(_ context.Context, b *holdfast.Batch) error {
				if !decides {
					t.Error("the batch was decided again")
				}
				b.Deny(0, "No.")
				first.Dead.Store(decides) // the answer's commit is in flight, and does not arrive
				return nil
			}}
			return holdfast.Agent{
				Name:       "a",
				Model:      looptest.TwoCalls("pay", "hang"),
				Tools:      []holdfast.Tool{pay, hang},
				Middleware: []holdfast.Middleware{m},
			}
		}
		one := looptest.Start(t, first, nil, agent(true))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		first.Dead.Store(false) // now it does
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		first.Dead.Store(true)
		two := looptest.Start(t, shared, nil, agent(false))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:No.", "tool:hung", "assistant:done")
		if did := j.Take(); len(did) != 0 {
			t.Errorf("started: %q", did)
		}
	})
}

// TestEndRun: a Tool hook ends the run; the calls beside it get their results first, and an
// empty-messages POST continues it.
func TestEndRun(t *testing.T) {
	stop := holdfast.Middleware{Name: "test.stop", Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
		return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
			if call.Name == "pay" {
				return holdfast.ToolResult{}, &holdfast.EndRun{
					Err: holdfast.Errorf("test_limit", "Too dear.").WithHint("Ask again tomorrow."),
				}
			}
			return next(ctx, tool, call)
		}
	}}
	quick := func(name string) holdfast.Tool {
		return looptest.Tool(name, holdfast.EffectOnce, func(context.Context) (string, error) {
			return name + " ran",
				nil
		})
	}
	store := memstore.New()
	e := looptest.Start(t, store, nil, holdfast.Agent{
		Name:       "a",
		Model:      looptest.TwoCalls("pay", "look"),
		Tools:      []holdfast.Tool{quick("pay"), quick("look")},
		Middleware: []holdfast.Middleware{stop},
	})
	if said := looptest.Failed(t, looptest.Started(t, e, "t"),
		"test_limit"); said.FullText() != "Too dear. Ask again tomorrow." {
		t.Errorf("the error says %q", said.FullText())
	}
	got := looptest.Texts(t, e, "t")
	slices.Sort(got[2:])
	if want := []string{"user:go", "assistant:", "tool:Too dear.", "tool:look ran"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	sound(t, store, "t")
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
}

// TestFrontendCallsCloseTheirIteration: the results of a frontend's calls end the
// iteration that made them: hooks see it, and it is counted on.
func TestFrontendCallsCloseTheirIteration(t *testing.T) {
	j := &looptest.Notebook{}
	m := holdfast.Middleware{
		Name: "test.watch",
		AfterIteration: func(_ context.Context, it *holdfast.Iteration, done *holdfast.IterationResult) {
			for _, c := range done.Calls {
				j.Note(fmt.Sprintf("%d %s: %s %t", it.Number, c.Call.Name, c.Result.Text, c.Result.Failed))
			}
		},
	}
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name: "a",
		Model: looptest.Say(looptest.Calls("locate", "{}"), looptest.Calls("locate", "{}"),
			holdfast.Delta{Text: "done"}),
		Middleware: []holdfast.Middleware{m},
	})
	locate := []agui.Tool{
		{Name: "locate", Description: "says where the person is", Parameters: json.RawMessage(`{"type":"object"}`)},
	}
	in := looptest.RunInput("t", "r0", looptest.UserSays("u1", "where am I?"))
	in.Tools = locate
	for i := range 2 {
		open := looptest.Succeeded(t, looptest.Posted(t, e, in)).Outcome.PendingToolCallIDs
		if len(open) != 1 {
			t.Fatalf("open: %q", open)
		}
		in = looptest.RunInput("t", fmt.Sprintf("r%d", i+1), agui.FromDomain(holdfast.Message{
			ID:     fmt.Sprintf("m%d", i),
			Role:   holdfast.RoleTool,
			CallID: open[0],
			Text:   fmt.Sprintf("place %d", i),
			Error:  []string{"", "no signal"}[i],
		}))
		in.Tools = locate
	}
	looptest.Succeeded(t, looptest.Posted(t, e, in))
	if got := j.Take(); !slices.Equal(got, []string{"0 locate: place 0 false", "1 locate: place 1 true"}) {
		t.Errorf("the hook saw %q", got)
	}
}

// TestAnswersAreUsedOnce: a hook that got a no and ended the run does not get it again with
// the next request: it asks again.
func TestAnswersAreUsedOnce(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), nil, looptest.Pinger(1, asksAt(0, j)))
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	looptest.Failed(t, looptest.Posted(t, e, looptest.Answers("t", "r2", "false", open...)), "test_no")
	again := looptest.OpenOf(t, looptest.Resumed(t, e, "t", "r3"))
	if again[0].ID == open[0].ID || len(j.Take()) != 1 {
		t.Errorf("asked again: %+v", again)
	}
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r4", "true", again...)))
}

// TestFrontendCallsAreDecided: hooks decide about a frontend's calls too. One that a
// person does not allow is never left to the frontend.
func TestFrontendCallsAreDecided(t *testing.T) {
	ask := holdfast.Middleware{
		Name: "test.ask",
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			for i, c := range b.Calls {
				if c.Frontend {
					b.Ask(i, &holdfast.Interrupt{Reason: "test:permission", Message: "May it?"})
				} else {
					b.Ask(i, &holdfast.Interrupt{Message: "there is no such tool: nobody is asked"})
				}
			}
			return nil
		},
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if call.Answer != nil && string(call.Answer.Payload) != "true" {
					return holdfast.ToolResult{Text: "Not allowed.", Failed: true, NotRun: true}, nil
				}
				call.Answer = nil
				return next(ctx, tool, call)
			}
		},
	}
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:       "a",
		Model:      looptest.TwoCalls("locate", "nonsense"),
		Middleware: []holdfast.Middleware{ask},
	})
	start := func(thread string) []agui.Interrupt {
		in := looptest.RunInput(thread, "r1", looptest.UserSays("u1", "go"))
		in.Tools = []agui.Tool{{Name: "locate", Parameters: json.RawMessage(`{"type":"object"}`)}}
		open := looptest.OpenOf(t, looptest.Posted(t, e, in))
		if len(open) != 1 {
			t.Fatalf("asked %+v", open)
		}
		return open
	}
	pending := looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("yes", "r2", "true", start("yes")...)))
	if len(pending.Outcome.PendingToolCallIDs) != 1 {
		t.Errorf("allowed, the frontend is left with %+v", pending.Outcome)
	}
	in := looptest.RunInput("yes", "r3", agui.FromDomain(holdfast.Message{
		ID:     "m",
		Role:   holdfast.RoleTool,
		CallID: pending.Outcome.PendingToolCallIDs[0],
		Text:   "here",
	}))
	looptest.Succeeded(t, looptest.Posted(t, e, in))
	looptest.WantTexts(t, e, "yes", "user:go", "assistant:", `tool:There is no tool "nonsense".`, "tool:here",
		"assistant:done")

	refused := looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("no", "r2", "false", start("no")...)))
	if refused.Outcome != nil && len(refused.Outcome.PendingToolCallIDs) != 0 {
		t.Errorf("refused, the frontend is left with %+v", refused.Outcome)
	}
	looptest.WantTexts(t, e, "no", "user:go", "assistant:", `tool:There is no tool "nonsense".`, "tool:Not allowed.",
		"assistant:done")

	decline := looptest.RunInput("declined", "r2")
	decline.Resume = []agui.ResumeEntry{{InterruptID: start("declined")[0].ID, Status: agui.ResumeCancelled}}
	looptest.Succeeded(t, looptest.Posted(t, e, decline))
	looptest.WantTexts(t, e, "declined", "user:go", "assistant:", `tool:There is no tool "nonsense".`,
		"tool:"+thread.TextDeclined, "assistant:done")
}

// TestHooksChangeTheCall: a tool sees the call as the hooks have left it, also in its
// context.
func TestHooksChangeTheCall(t *testing.T) {
	change := holdfast.Middleware{Name: "test.change", Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
		return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
			call.Metadata = json.RawMessage(`"changed"`)
			return next(ctx, tool, call)
		}
	}}
	saw := holdfast.NewTool("saw", "saw", func(ctx context.Context, _ struct{}) (string, error) {
		err := holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`1`),
				nil
		})
		return string(holdfast.CallFrom(ctx).Metadata), err
	})
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:       "a",
		Model:      looptest.Say(looptest.Calls("saw", "{}"), holdfast.Delta{Text: "done"}),
		Tools:      []holdfast.Tool{saw},
		Middleware: []holdfast.Middleware{change},
	})
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:"changed"`, "assistant:done")
	if s := looptest.Must(e.Keeper.State(t.Context(), looptest.Alice, "t"))(t); string(s.State) != "1" {
		t.Errorf("the shared state is %s", s.State)
	}
}
