package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The operators' lines in the log about the engine.

// logObserver writes to the log what operators need to know about the engine.
// Threads, runs and iterations appear here, never as labels of metrics, where each
// would be a series of its own.
type logObserver struct {
	log   *slog.Logger
	tries *tries
}

// tries counts the failed attempts of commits, so that an outage does not log a line
// for each attempt of each run.
type tries struct {
	mu     sync.Mutex
	failed map[string]int // by commit id
}

// maxTries bounds how many commits are remembered; forgetting them costs a log line.
const maxTries = 10_000

// failedNow counts a failed attempt and returns the number of attempts so far.
func (t *tries) failedNow(commit string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil || len(t.failed) >= maxTries {
		t.failed = map[string]int{}
	}
	t.failed[commit]++
	return t.failed[commit]
}

// taken forgets a commit.
func (t *tries) taken(commit string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failed, commit)
}

// observer has what the engine does not log itself: it logs failed renewals of the lease,
// takeovers, panics of hooks, notices and changed schemas with more than an observer is given.
func (o logObserver) observer() observe.Observer {
	return observe.Observer{
		RunStarted:    o.runStarted,
		RunEnded:      o.runEnded,
		ModelCalled:   o.modelCalled,
		ToolCalled:    o.toolCalled,
		OutsideCalled: o.outsideCalled,
		IterationDone: o.iterationDone,
		Committed:     o.committed,
		Cleaned:       o.cleaned,
		Grown:         o.grown,
	}
}

func (o logObserver) runStarted(at holdfast.Iteration, resumed bool, kept int) {
	attrs := append(place(at), "agent", at.Agent, "resumed", resumed)
	if resumed {
		attrs = append(attrs, "kept", kept)
	}
	o.log.Info("run started", attrs...)
}

func (o logObserver) runEnded(at holdfast.Iteration, outcome holdfast.Outcome, code string, took time.Duration) {
	if outcome == observe.OutcomeLeft {
		return // the engine logs why
	}
	attrs := append(place(at), "outcome", outcome, "took", took.Round(time.Millisecond))
	if code != "" {
		attrs = append(attrs, "code", code)
	}
	o.log.Info("run ended", attrs...)
}

func (o logObserver) modelCalled(
	at holdfast.Iteration, result observe.ModelResult, first, took time.Duration, _ *holdfast.Usage,
) {
	o.debug("model called", at, "result", result, "first", first, "took", took)
}

func (o logObserver) toolCalled(at holdfast.Iteration, tool string, result observe.ToolResult, took time.Duration) {
	o.debug("tool called", at, "tool", tool, "result", result, "took", took)
}

func (o logObserver) outsideCalled(at holdfast.Iteration, tool string, result observe.OutsideResult) {
	// The engine logs results that come, with the call.
	if result != observe.OutsideFinished && result != observe.OutsideRefused {
		o.log.Info("call from outside", append(place(at), "tool", tool, "result", result)...)
	}
}

func (o logObserver) iterationDone(at holdfast.Iteration, results int) {
	o.debug("iteration done", at, "results", results)
}

func (o logObserver) committed(at holdfast.Iteration, c *store.Commit, _ time.Duration, err error) {
	if err == nil {
		o.tries.taken(c.ID)
		return
	}
	// After a lost race the request is decided again; an invalid commit is a mistake of
	// the caller, who returns the error.
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrInvalid) ||
		errors.Is(err, context.Canceled) {
		return
	}
	// Log the first attempt, the second, the fourth, and so on.
	if n := o.tries.failedNow(c.ID); n&(n-1) == 0 {
		o.log.Warn("failed to checkpoint; nothing uncommitted is shown", append(place(at), "try", n, "error", err)...)
	}
}

func (o logObserver) cleaned(done threads.Cleaned) {
	if done.Threads+done.Checkpoints+done.Messages > 0 {
		o.log.Info("retention", "threads", done.Threads, "checkpoints", done.Checkpoints, "messages", done.Messages)
	}
}

func (o logObserver) grown(at holdfast.Iteration, bytes int64) {
	o.log.Warn("the thread is larger than the warning limit", append(place(at), "bytes", bytes)...)
}

func (o logObserver) debug(message string, at holdfast.Iteration, attrs ...any) {
	if o.log.Enabled(context.Background(), slog.LevelDebug) {
		o.log.Debug(message, append(place(at), attrs...)...)
	}
}

func place(at holdfast.Iteration) []any {
	attrs := []any{"thread", at.Thread, "run", at.Run, "iteration", at.Number}
	if id := headers.TraceID(at.Traceparent); id != "" {
		attrs = append(attrs, "traceId", id)
	}
	return attrs
}
