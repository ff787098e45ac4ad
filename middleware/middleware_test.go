package middleware

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// stub is a tool that does what its function says.
type stub struct {
	spec holdfast.ToolSpec
	f    func(ctx context.Context) (holdfast.ToolResult, error)
}

func (s stub) Spec() holdfast.ToolSpec { return s.spec }

func (s stub) Call(ctx context.Context, _ holdfast.ToolCall) (holdfast.ToolResult, error) {
	return s.f(ctx)
}

func run(ctx context.Context, t holdfast.Tool, chain ...holdfast.Middleware) (holdfast.ToolResult, error) {
	handler := func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		return tool.Call(ctx, call)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		handler = chain[i].Tool(handler)
	}
	return handler(ctx, t, holdfast.ToolCall{Name: "slow_tool", ID: "c1", Thread: "t"})
}

func TestIterationLimit(t *testing.T) {
	m := IterationLimit(3)
	if err := m.BeforeIteration(t.Context(), &holdfast.Iteration{Number: 12, Granted: 2}); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	err := m.BeforeIteration(t.Context(), &holdfast.Iteration{Number: 13, Granted: 3})
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Code != holdfast.CodeMaxIterations || e.Hint == "" {
		t.Fatalf("got %v, want the code %s with a hint", err, holdfast.CodeMaxIterations)
	}
	if !strings.Contains(e.Message, "13") || !strings.Contains(e.Message, "3 iterations") {
		t.Errorf("the message does not name the iteration and the limit: %s", e.Message)
	}
	if err := IterationLimit(0).BeforeIteration(t.Context(), &holdfast.Iteration{Granted: 1000}); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestToolTimeoutOfAToolThatObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		tool := stub{f: func(ctx context.Context) (holdfast.ToolResult, error) {
			<-ctx.Done()
			return holdfast.ToolResult{}, ctx.Err()
		}}
		begun := time.Now()
		result, err := run(t.Context(), tool, ToolTimeout(time.Minute, &group))
		if err != nil || !result.Failed || !strings.Contains(result.Text, "slow_tool did not finish within 1m0s") {
			t.Errorf("got %+v, %v", result, err)
		}
		if d := time.Since(begun); d != time.Minute {
			t.Errorf("it took %s", d)
		}
		group.Wait()
	})
}

func TestToolTimeoutGivesUpAToolThatDoesNotObey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		release := make(chan struct{})
		finished := false
		tool := stub{holdfast.ToolSpec{Timeout: time.Second}, func(context.Context) (holdfast.ToolResult, error) {
			<-release
			finished = true
			return holdfast.ToolResult{Text: "too late"}, nil
		}}
		result, err := run(t.Context(), tool, ToolTimeout(time.Hour, &group))
		if err != nil || !result.Failed || !strings.Contains(result.Text, "within 1s") {
			t.Errorf("got %+v, %v", result, err)
		}
		close(release)
		group.Wait()
		if !finished {
			t.Error("the group was done before the straggler was")
		}
	})
}

func TestToolTimeoutLeavesTheRestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		m := ToolTimeout(time.Minute, &group)
		ask := &holdfast.Interrupt{Message: "sure?"}
		broken := errors.New("broken")
		tests := []struct {
			name string
			f    func(ctx context.Context) (holdfast.ToolResult, error)
			want holdfast.ToolResult
			err  error
		}{
			{"a result", func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{Text: "ok"}, nil }, holdfast.ToolResult{Text: "ok"}, nil},
			{"an error", func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{}, broken }, holdfast.ToolResult{}, broken},
			{"a question", func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{}, ask }, holdfast.ToolResult{}, ask},
		}
		for _, tt := range tests {
			got, err := run(t.Context(), stub{f: tt.f}, m)
			if got.Text != tt.want.Text || got.Failed || err != tt.err {
				t.Errorf("%s: got %+v, %v", tt.name, got, err)
			}
		}
		group.Wait()
	})
}

func TestToolTimeoutWaitsForACancelledTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		tool := stub{f: func(ctx context.Context) (holdfast.ToolResult, error) {
			<-ctx.Done()
			time.Sleep(500 * time.Millisecond) // it cleans up
			return holdfast.ToolResult{Text: "cleaned up"}, nil
		}}
		time.AfterFunc(time.Second, cancel)
		result, err := run(ctx, tool, ToolTimeout(time.Minute, &group))
		if err != nil || result.Text != "cleaned up" {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}

func TestToolTimeoutOfAToolThatEndsItsGoroutine(t *testing.T) {
	tool := stub{f: func(context.Context) (holdfast.ToolResult, error) {
		runtime.Goexit()
		return holdfast.ToolResult{}, nil
	}}
	if result, err := run(t.Context(), tool, ToolTimeout(time.Minute, new(sync.WaitGroup))); err == nil {
		t.Errorf("got %+v, want an error", result)
	}
}

func TestToolTimeoutWithoutABound(t *testing.T) {
	result, err := run(t.Context(), stub{f: func(ctx context.Context) (holdfast.ToolResult, error) {
		_, bounded := ctx.Deadline()
		if bounded {
			return holdfast.ToolResult{}, errors.New("there is a deadline")
		}
		return holdfast.ToolResult{Text: "ok"}, nil
	}}, ToolTimeout(0, new(sync.WaitGroup)))
	if err != nil || result.Text != "ok" {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestToolResultLimit(t *testing.T) {
	m := ToolResultLimit(10)
	tests := []struct{ name, give, want string }{
		{"short", "0123456789", "0123456789"},
		{"long", "0123456789a", "0123456789\n[This result was cut: 10 of its 11 bytes are shown.]"},
		{"between two runes", "012345678é", "012345678\n[This result was cut: 9 of its 11 bytes are shown.]"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		result, err := run(t.Context(), stub{f: func(context.Context) (holdfast.ToolResult, error) {
			return holdfast.ToolResult{Text: tt.give}, nil
		}}, m)
		if err != nil || result.Text != tt.want || !utf8.ValidString(result.Text) {
			t.Errorf("%s: got %q, %v", tt.name, result.Text, err)
		}
	}
}

func TestToolResultLimitOfErrorsAndQuestions(t *testing.T) {
	fails := func(err error) stub {
		return stub{f: func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{}, err }}
	}
	short, ask := errors.New("short"), &holdfast.Interrupt{Message: strings.Repeat("why ", 100)}
	if _, err := run(t.Context(), fails(short), ToolResultLimit(10)); err != short {
		t.Errorf("a short error: got %v", err)
	}
	if _, err := run(t.Context(), fails(ask), ToolResultLimit(10)); err != error(ask) {
		t.Errorf("a question: got %v", err)
	}
	result, err := run(t.Context(), fails(errors.New(strings.Repeat("x", 100))), ToolResultLimit(10))
	if err != nil || !result.Failed || !strings.HasPrefix(result.Text, "xxxxxxxxxx\n[") {
		t.Errorf("a long error: got %+v, %v", result, err)
	}
}

func TestToolResultLimitOfParts(t *testing.T) {
	parts := []holdfast.Part{
		{Type: holdfast.PartText, Text: "12345"},
		{Type: holdfast.PartImage, Source: &holdfast.Source{Type: holdfast.SourceData, Value: strings.Repeat("A", 20)}},
		{Type: holdfast.PartText, Text: "678901234"},
	}
	result, err := run(t.Context(), stub{f: func(context.Context) (holdfast.ToolResult, error) {
		return holdfast.ToolResult{Parts: parts}, nil
	}}, ToolResultLimit(10))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"12345", "[This image was left out: it has 20 bytes, and a result may have 10.]",
		"67890\n[This result was cut: 5 of its 9 bytes are shown.]"}
	for i, p := range result.Parts {
		if p.Type != holdfast.PartText || p.Text != want[i] || p.Source != nil {
			t.Errorf("part %d: got %+v, want %q", i, p, want[i])
		}
	}
	if parts[2].Text != "678901234" {
		t.Error("the tool's own parts were changed")
	}
}

// deltas is a model that waits before each delta.
func deltas(pauses ...time.Duration) holdfast.ModelCall {
	return func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, p := range pauses {
				select {
				case <-time.After(p):
				case <-ctx.Done():
					yield(holdfast.Delta{}, ctx.Err())
					return
				}
				if !yield(holdfast.Delta{Text: "x"}, nil) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
		}
	}
}

func TestModelTimeout(t *testing.T) {
	tests := []struct {
		name   string
		model  holdfast.ModelCall
		reader time.Duration // per delta
		want   int           // deltas
		err    string        // of the ModelError; empty for success
	}{
		{"in time", deltas(time.Second, 9*time.Second), 0, 3, ""},
		{"silent", deltas(time.Second, 11*time.Second), 0, 1, "nothing came from the model for 10s"},
		{"too long", deltas(9*time.Second, 9*time.Second, 9*time.Second, 9*time.Second), 0, 3, "the model's answer was not complete after 30s"},
		{"a slow reader is not a silent model", deltas(time.Second, time.Second), 12 * time.Second, 3, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, failure := 0, error(nil)
				for _, err := range ModelTimeout(30*time.Second, 10*time.Second).Model(tt.model)(t.Context(), &holdfast.ModelRequest{}) {
					if err != nil {
						failure = err
						break
					}
					got++
					time.Sleep(tt.reader)
				}
				var m *holdfast.ModelError
				switch {
				case got != tt.want:
					t.Errorf("got %d deltas, want %d", got, tt.want)
				case tt.err == "" && failure != nil:
					t.Errorf("got %v", failure)
				case tt.err != "" && (!errors.As(failure, &m) || !m.Retryable || m.Public == "" || m.Err.Error() != tt.err):
					t.Errorf("got %v, want %s", failure, tt.err)
				}
			})
		})
	}
}

func TestModelTimeoutOfAModelThatEndsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(func(holdfast.Delta, error) bool) { <-ctx.Done() }
		}
		var failure error
		for _, err := range ModelTimeout(0, time.Second).Model(quiet)(t.Context(), &holdfast.ModelRequest{}) {
			failure = err
		}
		var m *holdfast.ModelError
		if !errors.As(failure, &m) || !m.Retryable {
			t.Errorf("got %v, want a retryable error", failure)
		}
	})
}

func TestModelTimeoutPassesErrorsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		for _, err := range ModelTimeout(time.Minute, time.Minute).Model(deltas(time.Hour))(ctx, &holdfast.ModelRequest{}) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the model's own error", err)
			}
		}
	})
}
