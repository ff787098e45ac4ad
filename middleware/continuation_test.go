package middleware_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Continuation, first with hooks called as the engine does, then on servers that are
// restarted between a question and its answer.

func TestContinuationOptions(t *testing.T) {
	t.Parallel()
	hooktest.WantInvalid(t, "middleware.Continuation", middleware.Continuation,
		map[string]middleware.ContinuationOptions{
			"maxIterations is -1: write 1 or more":           {MaxIterations: -1},
			"maxTotal is -5: write more than maxIterations":  {MaxTotal: -5},
			"maxTotal is 20 and maxIterations 20, so nobody": {MaxTotal: 20},
			`remember is "ever": write "run" or "thread"`:    {Remember: "ever"},
		})
}

// use has the run use n iterations, with each hook called as the engine does.
func (h *bareRun) use(t *testing.T, n int, it *holdfast.Iteration) {
	t.Helper()
	for range n {
		if err := h.m.BeforeIteration(h.Context(), it); err != nil {
			t.Fatalf("iteration %d: %v", it.Number, err)
		}
		if _, err := h.batch("work {}"); err != nil {
			t.Fatal(err)
		}
		it.Number++
		it.Granted++
		it.Answer = nil
	}
}

// asks checks that the run asks a question.
func (h *bareRun) asks(t *testing.T, it *holdfast.Iteration) *holdfast.Interrupt {
	t.Helper()
	var ask *holdfast.Interrupt
	if err := h.m.BeforeIteration(h.Context(), it); !errors.As(err, &ask) {
		t.Fatalf("iteration %d: got %v, want a question", it.Number, err)
	}
	return ask
}

// continued returns the iteration as it begins again in another run with an answer.
func continued(it *holdfast.Iteration, run, payload string) *holdfast.Iteration {
	return &holdfast.Iteration{Run: run, Number: it.Number, Answer: &holdfast.Answer{
		InterruptID: "question of " + run, Reason: "holdfast:continuation", Payload: json.RawMessage(payload),
	}}
}

func TestContinuationAsks(t *testing.T) {
	t.Parallel()
	h := bare(t, middleware.Continuation(middleware.ContinuationOptions{Remember: "run"}))
	it := &holdfast.Iteration{Run: "r1"}
	h.use(t, 20, it)
	ask := h.asks(t, it)
	if ask.Reason != "holdfast:continuation" || ask.Message != "The agent has used its 20 iterations. Go on?" ||
		string(ask.Metadata) != `{"used":20,"limit":20,"total":20,"maxTotal":200}` {
		t.Errorf("got %+v", ask)
	}
	var schema struct {
		Properties map[string]struct{ Maximum int }
		Required   []string
	}
	if err := json.Unmarshal(ask.ResponseSchema, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Properties["iterations"].Maximum != 200 || len(schema.Properties) != 3 ||
		fmt.Sprint(schema.Required) != "[continue]" {
		t.Errorf("schema: %s", ask.ResponseSchema)
	}
}

func TestContinuationAnswers(t *testing.T) {
	t.Parallel()
	const unclear = "the answer could not be read"
	for _, tt := range []struct {
		payload string
		granted int // 0: it ends
		why     string
	}{
		{`{"continue":true}`, 2, ""},
		{`{"continue":true,"iterations":1}`, 1, ""},
		{`{"continue":true,"iterations":20}`, 20, ""},
		{`{"continue":true,"always":true}`, 2, ""}, // which was not offered
		{`{"continue":false}`, 0, "the answer was no"},
		{`{"continue":false,"always":true}`, 0, "the answer was no"},
		{`{"continue":true,"iterations":21}`, 0, unclear},
		{`{"continue":true,"iterations":0}`, 0, unclear},
		{`{"continue":true,"iterations":-1}`, 0, unclear},
		{`{"continue":true,"iterations":1.5}`, 0, unclear},
		{`{"continue":"yes"}`, 0, unclear},
		{`{"continue":true,"itertions":1}`, 0, unclear},
		{`{"iterations":3}`, 0, unclear},
		{`{}`, 0, unclear},
		{`null`, 0, unclear},
		{``, 0, unclear},
		{`true`, 0, unclear},
		{`"yes"`, 0, unclear},
	} {
		h := bare(t, middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 2, MaxTotal: 100}))
		it := &holdfast.Iteration{Run: "r1"}
		h.use(t, 2, it)
		h.asks(t, it)
		h.Crash()
		it = continued(it, "r2", tt.payload)
		if tt.granted > 0 {
			h.use(t, tt.granted, it)
			h.asks(t, it)
			if want := fmt.Sprintf(`holdfast.continuation_granted {"iterations":%d,"remembered":false}`,
				tt.granted); len(h.Notices) != 1 || h.Notices[0] != want {
				t.Errorf("%s: notices %q", tt.payload, h.Notices)
			}
			continue
		}
		for range 2 { // the process dies before the run's end is stored
			err := h.m.BeforeIteration(h.Context(), it)
			if hooktest.Code(err) != codes.MaxIterations ||
				!strings.Contains(err.Error(), "before iteration 2: it has used its 2 iterations, and "+tt.why) {
				t.Errorf("%s: got %v", tt.payload, err)
			}
			h.Crash()
		}
		// The run is resumed with empty messages; the answer is still there.
		it.Run = "r3"
		h.use(t, 2, it)
		h.asks(t, it)
	}
}

// TestContinuationReadsANewAnswerAfterARefusal: a thread that is rewound to its refusal
// asks again, and a second no is a no.
func TestContinuationReadsANewAnswerAfterARefusal(t *testing.T) {
	t.Parallel()
	h := bare(t, middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 1}))
	it := &holdfast.Iteration{Run: "r1"}
	h.use(t, 1, it)
	for _, run := range []string{"r2", "r3"} {
		err := h.m.BeforeIteration(h.Context(), continued(it, run, `{"continue":false}`))
		if hooktest.Code(err) != codes.MaxIterations {
			t.Errorf("%s: got %v", run, err)
		}
	}
	h.use(t, 1, continued(it, "r4", `{"continue":true}`))
}

// TestContinuationCountsByItself: an answer to another question does not restart the
// count.
func TestContinuationCountsByItself(t *testing.T) {
	t.Parallel()
	h := bare(t, middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 3}))
	it := &holdfast.Iteration{Run: "r1"}
	h.use(t, 2, it)
	it = &holdfast.Iteration{
		Run:    "r2",
		Number: 2,
		Answer: &holdfast.Answer{InterruptID: "i", Reason: "mine:other", Payload: json.RawMessage(`{"continue":true}`)},
	}
	h.use(t, 1, it)
	h.asks(t, it)
}

func TestContinuationRemembers(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"run", "thread"} {
		h := bare(t, middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 2, MaxTotal: 7,
			Remember: scope}))
		it := &holdfast.Iteration{Run: "r1"}
		h.use(t, 2, it)
		h.asks(t, it)
		it = continued(it, "r2", `{"continue":true,"always":true}`)
		h.use(t, 3, it)
		h.Crash()
		h.use(t, 2, it)
		if err := h.m.BeforeIteration(h.Context(), it); hooktest.Code(err) != codes.MaxIterations ||
			!strings.Contains(err.Error(), "it has used all of the 7 iterations") {
			t.Errorf("%s: at the total: %v", scope, err)
		}
		if len(h.Notices) != 1 || h.Notices[0] != `holdfast.continuation_granted {"iterations":2,"remembered":true}` {
			t.Errorf("%s: notices %q", scope, h.Notices)
		}
	}
}

// TestContinuationHasABound: nobody is asked any more, and still the run ends.
func TestContinuationHasABound(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"run", "thread"} {
		h := bare(t, middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 2, Remember: scope}))
		it := &holdfast.Iteration{Run: "r1"}
		h.use(t, 2, it)
		h.asks(t, it)
		it = continued(it, "r2", `{"continue":true,"always":true}`)
		h.use(t, 18, it)
		err := h.m.BeforeIteration(h.Context(), it)
		hooktest.WantCode(t, err, codes.MaxIterations, "it has used all of the 20 iterations", "onUnfinished")
	}
}

func TestContinuationTrouble(t *testing.T) {
	t.Parallel()
	m := middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 1, Remember: "thread"})
	unreadable := func(name string) *bareRun {
		return bareStored(t, m, `{"states":{"holdfast.continuation":{"used":1,"total":1},"`+name+`":"?"}}`)
	}
	it := &holdfast.Iteration{Run: "r1", Number: 1}
	yes, no := continued(it, "r2", `{"continue":true,"always":true}`), continued(it, "r2", `{"continue":false}`)
	for _, tt := range []struct {
		state string
		it    *holdfast.Iteration
	}{
		{"holdfast.continuation", it}, {"holdfast.continuation_thread", it}, {"holdfast.continuation_thread", yes},
	} {
		h := unreadable(tt.state)
		if err := h.m.BeforeIteration(h.Context(), tt.it); hooktest.Code(err) != codes.StateUnreadable {
			t.Errorf("%s: got %v", tt.state, err)
		}
	}
	for _, member := range []string{"used", "total", "granted"} {
		h := bareStored(t, m, `{"states":{"holdfast.continuation":{"`+member+`":-3}}}`)
		hooktest.WantCode(t, h.m.BeforeIteration(h.Context(), it), codes.StateUnreadable, "holdfast.continuation",
			member+" is -3")
	}
	for _, it := range []*holdfast.Iteration{yes, no} {
		h := unreadable("holdfast.other")
		h.NotifyError = errors.New("the log is closed")
		if err := h.m.BeforeIteration(h.Context(), it); !errors.Is(err, h.NotifyError) {
			t.Errorf("a notice that fails: %v", err)
		}
	}
}

func TestARunIsContinuedAsAPersonSays(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	c := hooktest.Serve(t, holdfast.Agent{
		Name:  "a",
		Model: alwaysCalling("work {}"),
		Tools: []holdfast.Tool{countedTool("work", &runs)},
		Middleware: []holdfast.Middleware{
			middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 2, MaxTotal: 8}),
		},
	}, nil)
	step := func(got *agenttest.Result, total int64) *agenttest.Result {
		t.Helper()
		if n := runs.Load(); n != total {
			t.Errorf("%d iterations were run, want %d", n, total)
		}
		return got
	}
	q := hooktest.Question(t, step(c.Run("work"), 2))
	c.Restart()
	q = hooktest.Question(t, step(c.Answer(q, json.RawMessage(`{"continue":true}`)), 4))
	c.Restart()
	q = hooktest.Question(t, step(c.Answer(q, json.RawMessage(`{"continue":true,"iterations":1}`)), 5))
	end := step(c.Answer(q, json.RawMessage(`{"continue":false}`)), 5)
	if end.Code != codes.MaxIterations ||
		!strings.Contains(end.Hint, "it has used its 1 iteration, and the answer was no. To continue anyway") {
		t.Errorf("after a no: %+v", end)
	}
	c.Restart()
	q = hooktest.Question(t, step(c.Resume(), 7))
	if end := step(c.Decline(q), 7); end.Code != codes.MaxIterations ||
		!strings.Contains(end.Hint, "the question was declined") {
		t.Errorf("after it was declined: %+v", end)
	}
	for range 2 { // whatever is posted
		if end := step(c.Resume(), 8); end.Code != codes.MaxIterations ||
			!strings.Contains(end.Hint, "all of the 8 iterations") {
			t.Errorf("at the total: %+v", end)
		}
	}
}

// TestAThreadIsContinuedWithoutAsking: with "thread" the next run does not ask, with
// "run" it does.
func TestAThreadIsContinuedWithoutAsking(t *testing.T) {
	t.Parallel()
	for remember, asked := range map[string]bool{"thread": false, "run": true} {
		left := 5
		model := callingModel(func(*holdfast.ModelRequest) []string {
			if left--; left < 0 {
				return nil
			}
			return []string{"work {}"}
		})
		var runs atomic.Int64
		c := hooktest.Serve(t, holdfast.Agent{
			Name:  "a",
			Model: model,
			Tools: []holdfast.Tool{countedTool("work", &runs)},
			Middleware: []holdfast.Middleware{
				middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 2, Remember: remember}),
			},
		}, nil)
		q := hooktest.Question(t, c.Run("work"))
		got := c.Answer(q, json.RawMessage(`{"continue":true,"always":true}`))
		if n := hooktest.Notices(got, "holdfast.continuation_granted"); got.Outcome != agenttest.Success ||
			len(n) != 2 || n[1] != `{"iterations":2,"remembered":true}` {
			t.Errorf("%s: ended with %+v, notices %q", remember, got, n)
		}
		left = 5
		if got := c.Run("again"); (got.Outcome == agenttest.Interrupt) != asked {
			t.Errorf("%s: the next run ended with %+v", remember, got)
		}
	}
}

// TestContinuationCountsThroughTheFrontendsResults: a result from the frontend begins a
// request, but does not restart the count.
func TestContinuationCountsThroughTheFrontendsResults(t *testing.T) {
	t.Parallel()
	c := hooktest.Serve(t, holdfast.Agent{
		Name:       "a",
		Model:      alwaysCalling("confirm {}"),
		Middleware: []holdfast.Middleware{middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 2})},
	}, nil)
	got := c.Run("do it")
	for range 2 {
		if len(got.FrontendCalls) != 1 {
			t.Fatalf("nothing is pending: %+v", got)
		}
		got = c.Deliver(got.FrontendCalls[0], "yes")
	}
	hooktest.Question(t, got)
}
