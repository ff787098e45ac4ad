package server

import (
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// logObserver writes what happens to the log.
type logObserver struct{ log *slog.Logger }

func (o logObserver) RunStarted(key holdfast.ThreadKey, run, agent string, resumed bool) {
	o.log.Info("run started", "thread", key.Thread, "run", run, "agent", agent, "resumed", resumed)
}

func (o logObserver) RunEnded(key holdfast.ThreadKey, run, outcome, code string, took time.Duration) {
	attrs := []any{"thread", key.Thread, "run", run, "outcome", outcome, "took", took.Round(time.Millisecond)}
	if code != "" {
		attrs = append(attrs, "code", code)
	}
	o.log.Info("run ended", attrs...)
}

func (o logObserver) TakenOver(key holdfast.ThreadKey, run string, iteration int) {
	o.log.Warn("run taken over", "thread", key.Thread, "run", run, "iteration", iteration)
}

func (o logObserver) CheckpointFailed(key holdfast.ThreadKey, err error) {
	o.log.Warn("failed to checkpoint; nothing uncommitted is shown, trying again", "thread", key.Thread, "error", err)
}
