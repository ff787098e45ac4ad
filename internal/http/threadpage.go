package http

import (
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/threads"
)

// Pages of lists of threads: what a request asks for.

// ThreadPage is which threads a request asks for: at most Limit of those that were last active
// before a time; zero for any time. With a status, only those that have it, before that place in their list.
type ThreadPage struct {
	// Status is what the threads do; empty for whatever they do.
	Status threads.Status
	// Before and Limit say which of them.
	Before time.Time
	Limit  int
}

// listedBy are the statuses that threads can be listed by.
var listedBy = []threads.Status{threads.StatusIdle, threads.StatusRunning, threads.StatusInterrupted,
	threads.StatusStopped, threads.StatusUnreadable}

// statusParam returns the status that a request asks for; empty for none.
func statusParam(r *http.Request) (threads.Status, error) {
	status := threads.Status(r.URL.Query().Get("status"))
	if status != "" && !slices.Contains(listedBy, status) {
		return "", exchange.Invalid("status", "status must be one that threads have.",
			"It is idle, running, interrupted, stopped or unreadable.")
	}
	return status, nil
}

func readThreadPage(r *http.Request) (p ThreadPage, err error) {
	if p.Limit, err = limitParam(r); err == nil {
		p.Before, err = timeBefore(r)
	}
	return p, err
}

// timeBefore returns the time before which threads were last active.
func timeBefore(r *http.Request) (before time.Time, err error) {
	s := r.URL.Query().Get("before")
	if s == "" {
		return before, nil
	}
	if before, err = time.Parse(time.RFC3339Nano, s); err != nil {
		return before, holdfast.Errorf(codes.InvalidInput, "before must be a time.").
			WithHint("Use the updatedAt of the last thread you got, like 2026-01-31T12:00:00Z.")
	}
	return before, nil
}
