package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/secrets"
)

func chainOf(log io.Writer, model holdfast.Model, middleware ...holdfast.Middleware) *Chain {
	a := holdfast.Agent{Name: "a", Model: model, Middleware: middleware}
	return New(&a, slog.New(slog.NewTextHandler(log, nil)), func(holdfast.Iteration, string, string) {})
}

// deltas is a model that says these.
func deltas(list ...holdfast.Delta) holdfast.Model {
	return holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, d := range list {
				if !yield(d, nil) {
					return
				}
			}
		}
	})
}

// passing has hooks that do nothing.
func passing() holdfast.Middleware {
	return holdfast.Middleware{
		Name:  "test.pass",
		Tool:  func(next holdfast.ToolHandler) holdfast.ToolHandler { return next },
		Model: func(next holdfast.ModelCall) holdfast.ModelCall { return next },
	}
}

// TestPanicsOfTools: the model reads that the tool failed, and no more; the log has the
// value and the stack.
func TestPanicsOfTools(t *testing.T) {
	var log bytes.Buffer
	c := chainOf(&log, deltas(), passing())
	burn := holdfast.NewTool("burn", "burns", func(context.Context, struct{}) (string, error) { panic("secret") })
	result, err := c.CallTool(t.Context(), burn, holdfast.ToolCall{Name: "burn", Arguments: []byte("{}")})
	if err != nil || !result.Failed || strings.Contains(result.Text, "secret") ||
		!strings.Contains(result.Text, "burn failed because of a mistake") {
		t.Errorf("got %+v, %v", result, err)
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "TestPanicsOfTools") ||
		strings.Contains(log.String(), "test.pass") {
		t.Errorf("the log is %s", log.String())
	}
}

// TestCredentialsOfTools: what a call was let in with is in nothing that it returns, and not
// in the log of its panic.
func TestCredentialsOfTools(t *testing.T) {
	var log bytes.Buffer
	c := chainOf(&log, deltas(), passing())
	cause := errors.New("the cause")
	for _, ends := range []func() (holdfast.ToolResult, error){
		func() (holdfast.ToolResult, error) { return holdfast.ToolResult{Text: "let in with t0ken-of-us"}, nil },
		func() (holdfast.ToolResult, error) {
			return holdfast.ToolResult{Parts: []holdfast.Part{{Type: holdfast.PartText, Text: "t0ken-of-us"}}}, nil
		},
		func() (holdfast.ToolResult, error) {
			return holdfast.ToolResult{}, fmt.Errorf("t0ken-of-us: %w", cause)
		},
		func() (holdfast.ToolResult, error) {
			return holdfast.ToolResult{}, holdfast.Errorf("code", "with t0ken-of-us").
				Wrap(fmt.Errorf("t0ken-of-us: %w", cause))
		},
		func() (holdfast.ToolResult, error) { panic("with t0ken-of-us") },
	} {
		result, err := c.CallTool(t.Context(), tool(func(ctx context.Context) (holdfast.ToolResult, error) {
			secrets.Add(ctx, "t0ken-of-us")
			return ends()
		}), holdfast.ToolCall{Name: "search"})
		shown := fmt.Sprintf("%+v %v %+v", result, err, holdfast.AsError(err))
		if strings.Contains(shown, "t0ken") || !strings.Contains(shown, "[secret]") && !result.Failed ||
			err != nil && !errors.Is(err, cause) {
			t.Errorf("%s", shown)
		}
	}
	if strings.Contains(log.String(), "t0ken") || !strings.Contains(log.String(), "with [secret]") {
		t.Errorf("the log is %s", log.String())
	}
}

// tool is a tool that is only a function.
type tool func(context.Context) (holdfast.ToolResult, error)

func (tool) Spec() holdfast.ToolSpec { return holdfast.ToolSpec{Name: "search"} }

func (f tool) Call(ctx context.Context, _ holdfast.ToolCall) (holdfast.ToolResult, error) {
	return f(ctx)
}

// TestPanicsOfModels: a model that panics has failed, and cannot be tried again; one
// that panics after its reader has left tells nobody.
func TestPanicsOfModels(t *testing.T) {
	model := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{Text: "a"}, nil)
			panic("secret")
		}
	})
	c := chainOf(io.Discard, model, passing())
	got, failure := 0, error(nil)
	for _, err := range c.CallModel(t.Context(), &holdfast.ModelRequest{}) {
		if failure = err; err == nil {
			got++
		}
	}
	var failed *holdfast.ModelError
	if got != 1 || !errors.As(failure, &failed) || failed.Retryable || strings.Contains(failed.Public, "secret") {
		t.Errorf("got %d deltas and %v", got, failure)
	}
	for range c.CallModel(t.Context(), &holdfast.ModelRequest{}) {
		break
	}
}

// TestPanicsOfReadersGoOn: a panic of the code that reads a model's deltas is not the
// model's.
func TestPanicsOfReadersGoOn(t *testing.T) {
	c := chainOf(io.Discard, deltas(holdfast.Delta{Text: "a"}), passing())
	defer func() {
		if p := recover(); p != "reader" {
			t.Errorf("got %v, want the reader's panic", p)
		}
	}()
	for range c.CallModel(t.Context(), &holdfast.ModelRequest{}) {
		panic("reader")
	}
}

// emptyPoints calls each hook point of an agent without middleware. Of the model and the tool
// what counts is the difference to a call without a chain.
func emptyPoints(ctx context.Context) map[string]func() {
	c, it := chainOf(io.Discard, deltas()), &holdfast.Iteration{}
	run := func(context.Context, *holdfast.Iteration) (string, error) { return "", nil }
	model := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return noDeltas
	})
	ask := func(call holdfast.ModelCall) func() {
		req := &holdfast.ModelRequest{}
		return func() {
			for range call(ctx, req) {
				panic("a delta")
			}
		}
	}
	var tool holdfast.Tool = idleTool{}
	return map[string]func(){
		"run":                   func() { _, _ = c.Around(run)(ctx, it) },
		"before_iteration":      func() { _ = c.BeforeIteration(ctx, it) },
		"after_iteration":       func() { c.AfterIteration(ctx, it, nil) },
		"batch":                 func() { _ = c.Decide(ctx, nil) },
		"tool":                  func() { _, _ = c.CallTool(ctx, tool, holdfast.ToolCall{}) },
		"tool without a chain":  func() { _, _ = tool.Call(ctx, holdfast.ToolCall{}) },
		"model":                 ask(chainOf(io.Discard, model).CallModel),
		"model without a chain": ask(model.Stream),
	}
}

// BenchmarkEmptyChain is what the hook points cost an agent without middleware.
func BenchmarkEmptyChain(b *testing.B) {
	for name, point := range emptyPoints(b.Context()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				point()
			}
		})
	}
}

// TestEmptyChainAllocates: hook points of an agent without middleware allocate nothing more
// than a call without a chain. A tool is called with a context of its own, which collects the
// credentials that it is given.
func TestEmptyChainAllocates(t *testing.T) {
	points, most := emptyPoints(t.Context()), map[string]float64{"tool": 5}
	for name, point := range points {
		n := testing.AllocsPerRun(100, point)
		if alone := points[name+" without a chain"]; alone != nil {
			n -= testing.AllocsPerRun(100, alone)
		}
		if !strings.HasSuffix(name, " without a chain") && n > most[name] {
			t.Errorf("%s: %v allocations, at most %v", name, n, most[name])
		}
	}
}

func noDeltas(func(holdfast.Delta, error) bool) {}

type idleTool struct{}

func (idleTool) Spec() holdfast.ToolSpec { return holdfast.ToolSpec{} }

func (idleTool) Call(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) {
	return holdfast.ToolResult{}, nil
}
