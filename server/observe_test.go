package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// TestOutageInTheLog: a long outage of the store does not log a line for each attempt,
// but the first failed attempt of each commit is logged, with thread and iteration.
func TestOutageInTheLog(t *testing.T) {
	var log bytes.Buffer
	o := logObserver{slog.New(slog.NewTextHandler(&log, nil)), &tries{}}.observer()
	at := holdfast.Iteration{Thread: "t", Run: "r", Number: 3}
	away := errors.New("connection refused")
	for range 100 {
		o.Committed(at, &store.Commit{ID: "c1"}, 0, away)
	}
	lines := strings.Count(log.String(), "\n")
	if lines != 7 || !strings.Contains(log.String(), `thread=t run=r iteration=3 try=1 error="connection refused"`) {
		t.Errorf("100 attempts logged %d lines:\n%s", lines, log.String())
	}
	log.Reset()
	o.Committed(at, &store.Commit{ID: "c1"}, 0, nil)
	o.Committed(at, &store.Commit{ID: "c1"}, 0, away)
	o.Committed(at, &store.Commit{ID: "c2"}, 0, away)
	o.Committed(at, &store.Commit{ID: "c3"}, 0, store.ErrConflict)
	if lines := strings.Count(log.String(), "try=1"); lines != 2 {
		t.Errorf("two new failures logged %d lines:\n%s", lines, log.String())
	}
}
