package middleware_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// The circuit breaker without a server: what it takes for identical, what it stores, and
// when it opens.

func TestBreakerOptions(t *testing.T) {
	t.Parallel()
	hooktest.WantInvalid(t, "middleware.CircuitBreaker", middleware.CircuitBreaker,
		map[string]middleware.CircuitBreakerOptions{
			"maxIdenticalCalls is -1: write 2 or more": {MaxIdenticalCalls: -1},
			"maxIdenticalCalls is 1: write 2 or more":  {MaxIdenticalCalls: 1},
			`then is "stop": write "end" or "tell"`:    {Then: "stop"},
			"tools: poll is 1: write 2 or more, or 0":  {Tools: map[string]int{"poll": 1}},
			"tools: poll is -2":                        {Tools: map[string]int{"poll": -2}},
		})
}

func TestBreakerState(t *testing.T) {
	t.Parallel()
	var none middleware.BreakerState
	one := none.Record("a", "x")
	two := one.Record("a", "x")
	other := two.Record("b", "x").Record("a", "y")
	if n := none.Predicted("a", "x"); n != 1 {
		t.Errorf("a first call: %d", n)
	}
	if n := one.Predicted("a", "x"); n != 2 {
		t.Errorf("a second call: %d", n)
	}
	if n, b, first := two.Predicted("a", "x"), two.Predicted("b", "x"), two.Predicted("a", "y"); n != 3 || b != 1 ||
		first != 1 {
		t.Errorf("a third call: %d, of another tool: %d, with other arguments: %d", n, b, first)
	}
	if a, b := other.Predicted("a", "x"), other.Predicted("b", "x"); a != 1 || b != 2 {
		t.Errorf("after another call: %d, of another tool: %d", a, b)
	}
	if one.Tools["a"].Count != 1 || len(two.Tools) != 1 || none.Tools != nil {
		t.Error("a state was changed in place")
	}
}

// TestBreakerStateIsBounded: a model that makes up names does not fill the store.
func TestBreakerStateIsBounded(t *testing.T) {
	t.Parallel()
	var s middleware.BreakerState
	for i := range 1000 {
		s = s.Record(fmt.Sprint("tool", i), "x")
	}
	s = s.Record("tool999", "x")
	if len(s.Tools) > 256 || s.Predicted("tool999", "x") != 3 {
		t.Errorf("%d tools, and the last would have %d calls", len(s.Tools), s.Predicted("tool999", "x"))
	}
}

func TestWhatTheBreakerTakesForIdentical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`f {"a":1,"b":{"c":2,"d":3}}`, `f { "b": {"d":3,"c":2}, "a": 1 }`, true},
		{`f `, `f {}`, true},
		{`f {"q":"é"}`, `f {"q":"\u00e9"}`, true},
		{`f {"a":1}`, `f {"a":1.0}`, false},
		{`f {"a":12345678901234567890}`, `f {"a":12345678901234567891}`, false},
		{`f [1,2]`, `f [2,1]`, false},
		{`f {"a":`, `f {"a":`, true},
		{`f {"a":`, `f {"a":1`, false},
		{`f {} {}`, `f {}`, false},
		{`f {"a":null}`, `f {}`, false},
		{` {"a":1}`, `_unknown {"a":1}`, true},
		{`f {}`, `g {}`, false},
	} {
		h := bare(t, middleware.CircuitBreaker(middleware.CircuitBreakerOptions{MaxIdenticalCalls: 2}))
		if _, err := h.batch(tt.a); err != nil {
			t.Fatal(err)
		}
		if _, err := h.batch(tt.b); (err != nil) != tt.same {
			t.Errorf("%q and %q: got %v", tt.a, tt.b, err)
		}
	}
}

func TestBreakerCountsWithinABatch(t *testing.T) {
	t.Parallel()
	o := middleware.CircuitBreakerOptions{Tools: map[string]int{"poll": 0, "pay": 2}}
	for want, calls := range map[string][]string{
		"":                     {"a 1", "a 2", "a 1", "a 2", "a 1", "a 2"}, // none twice in a row
		"a 3 times in a row":   {"a 1", "b 1", "a 1", "b 2", "a 1", "pay 1", "pay 1"},
		"pay 2 times in a row": {"poll 1", "poll 1", "poll 1", "poll 1", "pay 1", "pay 1"},
	} {
		_, err := bare(t, middleware.CircuitBreaker(o)).batch(calls...)
		if want == "" && err == nil {
			continue
		}
		if hooktest.Code(err) != codes.CircuitOpen || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", calls, err)
		}
	}
}

func TestTheBreakersCountSurvivesACrash(t *testing.T) {
	t.Parallel()
	h := bare(t, middleware.CircuitBreaker(middleware.CircuitBreakerOptions{}))
	for range 2 {
		if _, err := h.batch(`search {"secret":"abc"}`); err != nil {
			t.Fatal(err)
		}
		h.Crash()
	}
	if s := h.State("holdfast.circuit_breaker"); strings.Contains(s, "abc") ||
		!strings.HasPrefix(s, `{"tools":{"search":"`) || !strings.HasSuffix(s, ` 2"}}`) {
		t.Errorf("stored: %s", s)
	}
	_, err := h.batch(`search {"secret":"abc"}`)
	if hooktest.Code(err) != codes.CircuitOpen {
		t.Fatalf("got %v", err)
	}
	h.Crash()
	// Only a person can have resumed a run that the breaker has ended.
	if err := h.m.BeforeIteration(h.Context(), &holdfast.Iteration{Number: 3}); err != nil {
		t.Fatal(err)
	}
	if s := h.State("holdfast.circuit_breaker"); s != "{}" {
		t.Errorf("after it was resumed: %s", s)
	}
}

func TestTheBreakerStaysOpenForTheModelUntilItChangesTheArguments(t *testing.T) {
	t.Parallel()
	h := bare(t, middleware.CircuitBreaker(middleware.CircuitBreakerOptions{MaxIdenticalCalls: 2, Then: "tell"}))
	for i, want := range []bool{false, true, true, false} {
		arguments := map[bool]string{true: `{"q":2}`, false: `{"q":1}`}[i == 3]
		b, err := h.batch("search "+arguments, "look "+fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		for n, text := range []string{"Not run: search has been called", "Call look again without that call."} {
			result, _ := b.Decided(n)
			if (result != nil) != want ||
				want && (!result.NotRun || !result.Failed || !strings.Contains(result.Text, text)) {
				t.Errorf("batch %d, call %d: %+v", i, n, result)
			}
		}
		if err := h.m.BeforeIteration(h.Context(), &holdfast.Iteration{Number: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.Notices) != 2 || h.Notices[1] != `holdfast.circuit_open {"tool":"search","count":3,"limit":2}` {
		t.Errorf("notices: %q", h.Notices)
	}
}

func TestBreakerTrouble(t *testing.T) {
	t.Parallel()
	h := bare(t, middleware.CircuitBreaker(middleware.CircuitBreakerOptions{MaxIdenticalCalls: 2}))
	h.NotifyError = errors.New("the log is closed")
	if _, err := h.batch("a 1", "a 1"); !errors.Is(err, h.NotifyError) {
		t.Errorf("a notice that fails: %v", err)
	}
	h = bareStored(t, h.m, `{"states":{"holdfast.circuit_breaker":"?"}}`)
	if _, err := h.batch("a 1"); hooktest.Code(err) != codes.StateUnreadable {
		t.Errorf("a state that cannot be read: %v", err)
	}
	if err := h.m.BeforeIteration(h.Context(), &holdfast.Iteration{}); hooktest.Code(err) != codes.StateUnreadable {
		t.Errorf("a state that cannot be read: %v", err)
	}
	// A count below zero would put off the limit.
	h = bareStored(t, h.m, `{"states":{"holdfast.circuit_breaker":{"tools":{"a":"9af832660a7ac441 -4"}}}}`)
	hooktest.WantCode(t, h.m.BeforeIteration(h.Context(), &holdfast.Iteration{}), codes.StateUnreadable,
		"holdfast.circuit_breaker")
}

// TestBreakerCountText: a count is read as it was written, and nothing else is read.
func TestBreakerCountText(t *testing.T) {
	t.Parallel()
	text, err := middleware.BreakerCount{Signature: "9af832660a7ac441", Count: 2}.MarshalText()
	if err != nil || string(text) != "9af832660a7ac441 2" {
		t.Errorf("%s, %v", text, err)
	}
	var c middleware.BreakerCount
	if err := c.UnmarshalText(text); err != nil || c.Signature != "9af832660a7ac441" || c.Count != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, wrong := range []string{"", "abc", "abc -1", "abc 1 2", "2"} {
		if err := new(middleware.BreakerCount).UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}
