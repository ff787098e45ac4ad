package http

import (
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// The number of threads in a list.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// listThreads is GET /threads?limit=&before=, last active first.
func (h *handler) listThreads(w http.ResponseWriter, r *http.Request) {
	who, err := h.Authenticate(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	limit, before, err := listParams(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	threads, err := h.Threads.Threads(r.Context(), who, before, limit)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"threads": threads})
}

func listParams(r *http.Request) (limit int, before time.Time, err error) {
	limit = defaultLimit
	if s := r.URL.Query().Get("limit"); s != "" {
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 || limit > maxLimit {
			return 0, before, holdfast.Errorf(holdfast.CodeInvalidInput, "limit must be a number from 1 to %d.", maxLimit).
				WithHint("Leave it out for %d.", defaultLimit)
		}
	}
	if s := r.URL.Query().Get("before"); s != "" {
		if before, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return 0, before, holdfast.Errorf(holdfast.CodeInvalidInput, "before must be a time.").
				WithHint("Use the updatedAt of the last thread you got, like 2026-01-31T12:00:00Z.")
		}
	}
	return limit, before, nil
}

// getThread is GET /threads/{thread}.
func (h *handler) getThread(w http.ResponseWriter, r *http.Request) {
	who, err := h.Authenticate(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	info, err := h.Threads.Thread(r.Context(), who, param(r, "thread"))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, info)
}

// getMessages is GET /threads/{thread}/messages.
func (h *handler) getMessages(w http.ResponseWriter, r *http.Request) {
	who, err := h.Authenticate(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	messages, err := h.Threads.Messages(r.Context(), who, param(r, "thread"))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"messages": messages})
}
