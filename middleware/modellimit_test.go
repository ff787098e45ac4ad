package middleware

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// endless is a model that says the deltas that next returns until nobody listens any more,
// or it has said a million. left is set when nobody listens any more.
func endless(next func(n int) holdfast.Delta, left *bool) holdfast.ModelCall {
	return func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for n := range 1_000_000 {
				if !yield(next(n), nil) {
					*left = true
					return
				}
			}
		}
	}
}

func call(index int, id, name, arguments string) holdfast.Delta {
	return holdfast.Delta{Call: &holdfast.CallDelta{Index: index, ID: id, Name: name, Arguments: arguments}}
}

// TestModelLimit: each way in which a model can go on for ever ends at its limit, after
// about as much as the limit allows, with an error that nobody tries again.
func TestModelLimit(t *testing.T) {
	t.Parallel()
	kib := strings.Repeat("x", 1<<10)
	for _, c := range []struct {
		name string
		next func(n int) holdfast.Delta
		most int // deltas that may pass
		want string
	}{
		{"text", func(int) holdfast.Delta { return holdfast.Delta{Text: kib} }, 64, "maxAnswer"},
		{"control characters", func(int) holdfast.Delta { return holdfast.Delta{Text: strings.Repeat("\x01", 1<<10)} },
			11, "maxAnswer"},
		{"text, letter by letter", func(int) holdfast.Delta { return holdfast.Delta{Text: "x"} }, 64 << 10,
			"maxAnswer"},
		{"reasoning", func(int) holdfast.Delta { return holdfast.Delta{Reasoning: kib} }, 64, "maxAnswer"},
		{"secret reasoning", func(int) holdfast.Delta { return holdfast.Delta{ReasoningSecret: kib} }, 64, "maxAnswer"},
		{"text and reasoning in turn", func(n int) holdfast.Delta {
			if n%2 == 0 {
				return holdfast.Delta{Reasoning: "x"}
			}
			return holdfast.Delta{Text: "x"}
		}, 128, "maxAnswer"},
		{"text with reasoning", func(int) holdfast.Delta { return holdfast.Delta{Reasoning: "x", Text: "x"} }, 64,
			"maxAnswer"},
		{"arguments", func(n int) holdfast.Delta { return call(0, "c", "f", kib) }, 16, "maxArguments"},
		{"arguments of an index used again",
			func(n int) holdfast.Delta { return call(0, string(rune('a'+n)), "f", "") }, 8, "maxCalls"},
		{"arguments of many calls", func(n int) holdfast.Delta { return call(n%8, "", "f", kib) }, 64, "maxAnswer"},
		{"calls", func(n int) holdfast.Delta { return call(n, "", "f", "") }, 8, "maxCalls"},
		{"names", func(n int) holdfast.Delta { return call(0, "", strings.Repeat(kib, 100), "") }, 0, "maxAnswer"},
		{"ids", func(n int) holdfast.Delta { return call(0, strings.Repeat(kib, 100), "f", "") }, 0, "maxAnswer"},
	} {
		left, passed, failure := false, 0, error(nil)
		for _, err := range ModelLimit(64<<10, 8, 16<<10).Model(endless(c.next, &left))(t.Context(),
			&holdfast.ModelRequest{}) {
			if failure = err; err == nil {
				passed++
			}
		}
		var m *holdfast.ModelError
		if !errors.As(failure, &m) || m.Retryable || !strings.Contains(m.Public, c.want) ||
			!strings.Contains(m.Public, "limits") {
			t.Errorf("%s: %v", c.name, failure)
		}
		if !left {
			t.Errorf("%s: the model goes on", c.name)
		}
		if passed > c.most {
			t.Errorf("%s: %d deltas passed, at most %d may", c.name, passed, c.most)
		}
	}
}

// TestModelLimitOfMessages: an answer may have many messages, each within the limits.
func TestModelLimitOfMessages(t *testing.T) {
	t.Parallel()
	next := func(n int) holdfast.Delta {
		switch n % 3 {
		case 0:
			return holdfast.Delta{Text: strings.Repeat("x", 40<<10)}
		case 1:
			return call(n, "", "f", strings.Repeat("x", 10<<10))
		}
		return holdfast.Delta{More: true}
	}
	left, passed := false, 0
	for _, err := range ModelLimit(64<<10, 1, 16<<10).Model(endless(next, &left))(t.Context(),
		&holdfast.ModelRequest{}) {
		if err != nil {
			t.Fatalf("after %d deltas: %v", passed, err)
		}
		if passed++; passed == 30 {
			break
		}
	}
	if passed != 30 {
		t.Errorf("%d deltas passed", passed)
	}
}

// TestModelLimitOff: without limits nothing ends, and an answer within them is unchanged.
func TestModelLimitOff(t *testing.T) {
	t.Parallel()
	long := holdfast.Delta{Text: strings.Repeat("x", 1<<20), Finish: holdfast.FinishStop}
	model := func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for n := range 300 {
				if !yield(call(n, "", "f", "{}"), nil) {
					return
				}
			}
			yield(long, nil)
		}
	}
	for _, m := range []holdfast.Middleware{ModelLimit(0, 0, 0), ModelLimit(2<<20, 300, 2)} {
		n := 0
		for d, err := range m.Model(model)(t.Context(), &holdfast.ModelRequest{}) {
			if err != nil || n == 300 && (d.Text != long.Text || d.Finish != long.Finish) {
				t.Errorf("delta %d: %v", n, err)
			}
			n++
		}
		if n != 301 {
			t.Errorf("%d deltas", n)
		}
	}
}
