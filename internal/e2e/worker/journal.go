package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// worker is this process, as the tests see it: by what it writes, and by where it
// stops.
type worker struct {
	name    string
	holds   string
	journal *os.File
	// delay is how long a model call and a tool call take: others shall come between.
	delay time.Duration
	// held are the places where this process has stopped, as keys of the type string.
	held sync.Map
}

// note writes a line in one piece: several processes write to the file.
func (w *worker) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + " proc=" + w.name + "\n"
	if _, err := w.journal.WriteString(line); err != nil {
		panic(fmt.Sprintf("write to the journal: %v", err))
	}
}

// at stops for ever if this is where a process is to be killed: the first that comes
// by, and it takes the file away. On a slow machine that process may lose its lease and
// take its own run over before it is killed: then it stops there again.
func (w *worker) at(thread, moment string, iteration int) {
	at := fmt.Sprintf("%s.%s.%d", thread, moment, iteration)
	if w.holds == "" {
		return
	}
	if _, again := w.held.Load(at); again {
		select {}
	}
	if os.Remove(filepath.Join(w.holds, at)) == nil {
		w.held.Store(at, true)
		w.note("held at=%s", at)
		select {}
	}
}

// outer is the outermost middleware: what it sees is what others have left.
func (w *worker) outer() holdfast.Middleware {
	return holdfast.Middleware{
		Name: "test.outer",
		BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
			w.at(it.Thread, "before", it.Number)
			return nil
		},
		Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					for d, err := range next(ctx, req) {
						if !yield(d, err) {
							break
						}
					}
					w.note("model settled thread=%s iteration=%d", req.Thread, req.Iteration)
					w.at(req.Thread, "settled", req.Iteration)
				}
			}
		},
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			w.at(b.Thread, "batch", b.Number)
			return nil
		},
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				result, err := next(ctx, tool, call)
				w.at(call.Thread, "result", call.Iteration)
				return result, err
			}
		},
	}
}

// inner is the innermost middleware: what others decide, they have decided.
func (w *worker) inner() holdfast.Middleware {
	return holdfast.Middleware{
		Name: "test.inner",
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			w.at(b.Thread, "decided", b.Number)
			return nil
		},
		AfterIteration: func(_ context.Context, it *holdfast.Iteration, _ *holdfast.IterationResult) {
			w.at(it.Thread, "after", it.Number)
		},
	}
}

// around puts middleware between ours.
func (w *worker) around(middleware ...holdfast.Middleware) []holdfast.Middleware {
	return append(append([]holdfast.Middleware{w.outer()}, middleware...), w.inner())
}
