package agenttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/store"
)

type wordArgs struct {
	Word string `json:"word"`
}

// echo is a tool that returns its word.
func echo(effect holdfast.Effect) holdfast.Tool {
	return holdfast.NewTool("echo", "Says a word.", func(_ context.Context, a wordArgs) (string, error) {
		return a.Word + "!", nil
	}, holdfast.WithEffect(effect))
}

// both runs a test twice: with the real clock, and in a bubble with a fake one, where
// it also fails if a goroutine is left behind.
func both(t *testing.T, test func(t *testing.T)) {
	t.Run("real time", test)
	t.Run("fake time", func(t *testing.T) { synctest.Test(t, test) })
}

func ended(t *testing.T, r *agenttest.Result, want agenttest.Outcome) {
	t.Helper()
	if r.Outcome != want {
		t.Fatalf("the outcome is %q (%s: %s), want %q; events: %v", r.Outcome, r.Code, r.Message, want, r.Types())
	}
}

func TestAResultHasAllThatCameOfARun(t *testing.T) {
	both(t, func(t *testing.T) {
		model := agenttest.Say(agenttest.Call("echo", `{"word":"a"}`).And("echo", `{"word":"b"}`).Tokens(10, 5),
			agenttest.Turn{Reasoning: "hm", Text: "Both are there."})
		h := agenttest.New(t, agenttest.Config{Model: model, Tools: []holdfast.Tool{echo("")}})
		r := h.Run("say a and b")
		ended(t, r, agenttest.Success)
		if got := r.Results(); len(got) != 2 || got["call_1"] != "a!" || got["call_2"] != "b!" {
			t.Errorf("results: %v", got)
		}
		if len(r.Started) != 2 || r.Started[0].Name != "echo" || r.Started[0].Key == "" ||
			r.Started[0].Key == r.Started[1].Key {
			t.Errorf("started: %+v", r.Started)
		}
		if first := r.Messages[0]; first.Role != holdfast.RoleUser || first.Text != "say a and b" ||
			r.Answer() != "Both are there." {
			t.Errorf("messages: %+v", r.Messages)
		}
		if types := r.Types(); types[0] != "RUN_STARTED" || types[len(types)-1] != "RUN_FINISHED" ||
			!slices.Contains(types, "TOOL_CALL_RESULT") {
			t.Errorf("events: %v", types)
		}
		end := r.Events[len(r.Events)-1]
		if usage := end.Map()["usage"].([]any)[0].(map[string]any); usage["totalTokens"] != float64(15) ||
			end.ID == "" {
			t.Errorf("the end is %s, with the cursor %q", end.Raw, end.ID)
		}
		asked := model.Requests()
		if len(asked) != 2 || len(asked[1].Messages) != 4 || asked[1].Iteration != 1 || model.Left() != 0 {
			t.Errorf("the model was asked %d times: %+v", len(asked), asked)
		}
		model.Add(agenttest.Text("You are welcome."))
		if r = h.Run("thanks"); r.Answer() != "You are welcome." || r.Started != nil || r.RunID != "run2" {
			t.Errorf("the second run: %+v", r)
		}
	})
}

func TestTurnsThatFail(t *testing.T) {
	refused := &holdfast.ModelError{Public: "No credit.", Err: errors.New("402")}
	busy := &holdfast.ModelError{Retryable: true, Err: errors.New("529")}
	both(t, func(t *testing.T) {
		model := agenttest.Say(agenttest.Fail(refused), agenttest.Fail(busy), agenttest.Truncate("It beg"),
			agenttest.Text("It ends."), agenttest.Turn{Text: "It is lo", Finish: holdfast.FinishLength})
		h := agenttest.New(t, agenttest.Config{Model: model})
		r := h.Run("hello")
		ended(t, r, agenttest.Failed)
		if r.Code != codes.ModelFailed || !strings.HasPrefix(r.Message, "No credit.") {
			t.Errorf("%s: %s", r.Code, r.Message)
		}
		if r = h.Run("hello?"); r.Outcome != agenttest.Refused || r.Code != codes.MidExecution || r.Events != nil {
			t.Errorf("a message to a stopped thread: %+v", r)
		}
		r = h.Resume()
		ended(t, r, agenttest.Success)
		if n := r.Notices(); r.Answer() != "It ends." || len(n) != 1 || n[0].Name != "holdfast.retry" {
			t.Errorf("after two tries: %q, %v", r.Answer(), n)
		}
		if r = h.Run("more"); r.Answer() != "It is lo" {
			t.Errorf("an answer that was cut by its limit: %q", r.Answer())
		}
	})
}

// fakeTB is a test that may fail without the real one.
type fakeTB struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
	said     []string
}

func (f *fakeTB) Helper()                  {}
func (f *fakeTB) Context() context.Context { return f.ctx }
func (f *fakeTB) Output() io.Writer        { return io.Discard }
func (f *fakeTB) Cleanup(c func())         { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failing runs a test that ends with Fatalf and returns the text.
func failing(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	f := &fakeTB{ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range slices.Backward(f.cleanups) {
				c()
			}
		}()
		test(f)
	}()
	<-done
	return strings.Join(f.said, "\n")
}

func TestMistakesAreLoud(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		test func(t testing.TB)
	}{
		"the script runs out": {"the script has no turn left: 2 were asked for, it has 1 (thread t, " +
			"iteration 1, attempt 0)",
			func(t testing.TB) {
				agenttest.New(t, agenttest.Config{Model: agenttest.Say(agenttest.Call("echo", `{"word":"a"}`)),
					Tools: []holdfast.Tool{echo("")}}).
					Run("go")
			}},
		"no model": {"the server does not start: agent \"agent\" has no model",
			func(t testing.TB) { agenttest.New(t, agenttest.Config{}) }},
		"no question": {"no question is open on the thread t", func(t testing.TB) {
			agenttest.New(t, agenttest.Config{Model: agenttest.Say()}).AnswerAll("yes")
		}},
		"a payload that is no JSON": {"cannot be written as JSON", func(t testing.TB) {
			agenttest.New(t, agenttest.Config{Model: agenttest.Say()}).Answer("q", func() {})
		}},
		"a state of another type": {"the state test.visits cannot be read", func(t testing.TB) {
			h := agenttest.New(t, agenttest.Config{Model: agenttest.Say(agenttest.Text("hello")),
				Middleware: []holdfast.Middleware{counting(visitsV1)}})
			h.Run("go")
			agenttest.State(h, visitsOther)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failing(t, c.test); !strings.Contains(got, c.want) {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}

// TestAModelAlone: a model can be used without a harness, and reports a mistake in its
// script itself.
func TestAModelAlone(t *testing.T) {
	model := agenttest.Say(agenttest.Text("hello"))
	for i := range 2 {
		var text string
		var failed error
		for d, err := range model.Stream(t.Context(), &holdfast.ModelRequest{Thread: "x"}) {
			text, failed = text+d.Text, err
		}
		var public *holdfast.ModelError
		switch {
		case i == 0 && (text != "hello" || failed != nil):
			t.Errorf("%q, %v", text, failed)
		case i == 1 && (!errors.As(failed, &public) || public.Retryable ||
			!strings.Contains(public.Public, "no turn left")):
			t.Errorf("the second call: %q, %v", text, failed)
		}
	}
}

func asking() holdfast.Tool {
	return holdfast.NewTool("ask", "Asks.", func(ctx context.Context, a wordArgs) (string, error) {
		if answer := holdfast.CallFrom(ctx).Answer; answer != nil {
			return a.Word + ": " + string(answer.Payload), nil
		}
		return "", &holdfast.Interrupt{Reason: "confirmation", Message: a.Word + "?"}
	})
}

func TestQuestionsAndAnswers(t *testing.T) {
	two := agenttest.Call("ask", `{"word":"left"}`).And("ask", `{"word":"right"}`)
	both(t, func(t *testing.T) {
		model := agenttest.Say(two, agenttest.Text("one"), two, agenttest.Text("two"), two, agenttest.Text("three"))
		h := agenttest.New(t, agenttest.Config{Model: model, Tools: []holdfast.Tool{asking()}})

		r := h.Run("go")
		ended(t, r, agenttest.Interrupt)
		if q := r.Questions; len(q) != 2 || q[0].Message != "left?" || q[0].Reason != "confirmation" ||
			q[0].CallID != "call_1" {
			t.Fatalf("questions: %+v", q)
		}
		if r := h.Answer(r.Questions[0].ID, "a"); r.Outcome != agenttest.Refused || r.Code != codes.AnswersMissing {
			t.Errorf("with one of two answers: %q, %q", r.Outcome, r.Code)
		}
		h.Restart()
		r = h.Answers(map[string]any{r.Questions[0].ID: true, r.Questions[1].ID: []int{1}})
		ended(t, r, agenttest.Success)
		if got := r.Results(); got["call_1"] != "left: true" || got["call_2"] != "right: [1]" {
			t.Errorf("results: %v", got)
		}

		ended(t, h.Run("again"), agenttest.Interrupt)
		r = h.AnswerAll(map[string]int{"n": 7})
		ended(t, r, agenttest.Success)
		if got := r.Results(); got["call_3"] != `left: {"n":7}` || len(r.Started) != 2 {
			t.Errorf("results: %v, started: %v", got, r.Started)
		}

		ended(t, h.Run("and again"), agenttest.Interrupt)
		r = h.Decline()
		ended(t, r, agenttest.Success)
		if r.Answer() != "three" || r.Started != nil {
			t.Errorf("declined: %q, started: %v", r.Answer(), r.Started)
		}
	})
}

// TestThreadsAndPrincipals: the threads of a tenant share its ledger, and nothing else.
func TestThreadsAndPrincipals(t *testing.T) {
	admit := holdfast.Middleware{
		Name: "test.admit",
		BeforeIteration: func(ctx context.Context, it *holdfast.Iteration) error {
			ledger, err := store.LedgerFrom(ctx)
			if err != nil {
				return err
			}
			err = ledger.Reserve(ctx, &store.Reservation{
				Tenant:  it.Principal.Tenant,
				ID:      it.Thread + it.Run,
				Now:     time.Now(),
				Entries: []store.Entry{{Account: "runs", Amount: 1, Limit: 2}},
			})
			if err != nil {
				return holdfast.Errorf(codes.RateLimited, "No more.").Wrap(err)
			}
			return nil
		},
	}
	h := agenttest.New(t, agenttest.Config{
		Model:      agenttest.Say(agenttest.Text("1"), agenttest.Text("2"), agenttest.Text("3")),
		Middleware: []holdfast.Middleware{admit, counting(visitsV1)},
	})
	ended(t, h.Run("a"), agenttest.Success)
	h.Thread("other")
	if got := agenttest.State(h, visitsV1); got.N != 0 || h.StateJSON() != nil {
		t.Errorf("a thread that is not there has the state %+v", got)
	}
	r := h.Run("b")
	if ended(t, r, agenttest.Success); len(r.Messages) != 2 || agenttest.State(h, visitsV1).N != 1 {
		t.Errorf("the other thread: %+v", r.Messages)
	}
	if r = h.Run("c"); r.Code != codes.RateLimited {
		t.Errorf("the third run of the tenant: %q %s", r.Outcome, r.Code)
	}
	h.As(holdfast.Principal{Tenant: "acme", User: "eve"})
	r = h.Run("d")
	if ended(t, r, agenttest.Success); len(r.Messages) != 2 {
		t.Errorf("somebody else sees %+v", r.Messages)
	}
}
