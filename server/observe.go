package server

// The observers of the engine: one that writes to the log what operators need to
// know, and one that passes every observation on to several others.

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/loop"
)

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

func (o logObserver) RunStarted(at holdfast.Iteration, resumed bool, kept int) {
	attrs := append(place(at), "agent", at.Agent, "resumed", resumed)
	if resumed {
		attrs = append(attrs, "kept", kept)
	}
	o.log.Info("run started", attrs...)
}

func (o logObserver) RunEnded(at holdfast.Iteration, outcome, code string, took time.Duration) {
	if outcome == loop.OutcomeLeft {
		return // the engine logs why
	}
	attrs := append(place(at), "outcome", outcome, "took", took.Round(time.Millisecond))
	if code != "" {
		attrs = append(attrs, "code", code)
	}
	o.log.Info("run ended", attrs...)
}

func (o logObserver) Claimed(at holdfast.Iteration, result, _ string) {
	// The engine logs the other results, with their cause.
	if result == loop.ClaimTaken {
		o.log.Warn("run taken over", place(at)...)
	}
}

func (o logObserver) ModelCalled(at holdfast.Iteration, result string, first, took time.Duration, _ *holdfast.Usage) {
	o.debug("model called", at, "result", result, "first", first, "took", took)
}

func (o logObserver) ToolCalled(at holdfast.Iteration, tool, result string, took time.Duration) {
	o.debug("tool called", at, "tool", tool, "result", result, "took", took)
}

func (o logObserver) IterationDone(at holdfast.Iteration, results int) {
	o.debug("iteration done", at, "results", results)
}

func (o logObserver) Committed(at holdfast.Iteration, c *holdfast.Commit, _ time.Duration, err error) {
	if err == nil {
		o.tries.taken(c.ID)
		return
	}
	// After a lost race the request is decided again; an invalid commit is a mistake of
	// the caller, who returns the error.
	if errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrFenced) || errors.Is(err, holdfast.ErrInvalid) ||
		errors.Is(err, context.Canceled) {
		return
	}
	// Log the first attempt, the second, the fourth, and so on.
	if n := o.tries.failedNow(c.ID); n&(n-1) == 0 {
		o.log.Warn("failed to checkpoint; nothing uncommitted is shown", append(place(at), "try", n, "error", err)...)
	}
}

// LeaseRenewed is silent: the engine logs a failure.
func (o logObserver) LeaseRenewed(error) {}

func (o logObserver) Cleaned(done holdfast.Cleaned) {
	if done.Threads+done.Checkpoints+done.Messages > 0 {
		o.log.Info("retention", "threads", done.Threads, "checkpoints", done.Checkpoints, "messages", done.Messages)
	}
}

func (o logObserver) Grown(at holdfast.Iteration, bytes int64) {
	o.log.Warn("the thread is larger than the warning limit", append(place(at), "bytes", bytes)...)
}

// Notified is silent: the engine logs it.
func (o logObserver) Notified(holdfast.Iteration, string) {}

// HookFailed is silent: the engine logs the panic.
func (o logObserver) HookFailed(holdfast.Iteration, string, string) {}

// SchemaChanged is silent: the engine logs what has changed.
func (o logObserver) SchemaChanged(holdfast.Iteration, *holdfast.SchemaChange) {}

func (o logObserver) debug(message string, at holdfast.Iteration, attrs ...any) {
	if o.log.Enabled(context.Background(), slog.LevelDebug) {
		o.log.Debug(message, append(place(at), attrs...)...)
	}
}

func place(at holdfast.Iteration) []any {
	return []any{"thread", at.Thread, "run", at.Run, "iteration", at.Number}
}

// observers passes each observation on to its members, in order.
type observers []loop.Observer

func (o observers) RunStarted(at holdfast.Iteration, resumed bool, kept int) {
	for _, each := range o {
		each.RunStarted(at, resumed, kept)
	}
}

func (o observers) RunEnded(at holdfast.Iteration, outcome, code string, took time.Duration) {
	for _, each := range o {
		each.RunEnded(at, outcome, code, took)
	}
}

func (o observers) Claimed(at holdfast.Iteration, result, code string) {
	for _, each := range o {
		each.Claimed(at, result, code)
	}
}

func (o observers) ModelCalled(at holdfast.Iteration, result string, first, took time.Duration, usage *holdfast.Usage) {
	for _, each := range o {
		each.ModelCalled(at, result, first, took, usage)
	}
}

func (o observers) ToolCalled(at holdfast.Iteration, tool, result string, took time.Duration) {
	for _, each := range o {
		each.ToolCalled(at, tool, result, took)
	}
}

func (o observers) IterationDone(at holdfast.Iteration, results int) {
	for _, each := range o {
		each.IterationDone(at, results)
	}
}

func (o observers) Notified(at holdfast.Iteration, name string) {
	for _, each := range o {
		each.Notified(at, name)
	}
}

func (o observers) HookFailed(at holdfast.Iteration, middleware, hook string) {
	for _, each := range o {
		each.HookFailed(at, middleware, hook)
	}
}

func (o observers) SchemaChanged(at holdfast.Iteration, change *holdfast.SchemaChange) {
	for _, each := range o {
		each.SchemaChanged(at, change)
	}
}

func (o observers) Committed(at holdfast.Iteration, c *holdfast.Commit, took time.Duration, err error) {
	for _, each := range o {
		each.Committed(at, c, took, err)
	}
}

func (o observers) Cleaned(done holdfast.Cleaned) {
	for _, each := range o {
		each.Cleaned(done)
	}
}

func (o observers) Grown(at holdfast.Iteration, bytes int64) {
	for _, each := range o {
		each.Grown(at, bytes)
	}
}

func (o observers) LeaseRenewed(err error) {
	for _, each := range o {
		each.LeaseRenewed(err)
	}
}
