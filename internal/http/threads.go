package http

import (
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// How many threads or checkpoints a list has.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// listThreads is GET /threads?limit=&before=, most recently active first.
func (h *handler) listThreads(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	limit, err := limitParam(r)
	if err != nil {
		return err
	}
	var before time.Time
	if s := r.URL.Query().Get("before"); s != "" {
		if before, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return holdfast.Errorf(codes.InvalidInput, "before must be a time.").
				WithHint("Use the updatedAt of the last thread you got, like 2026-01-31T12:00:00Z.")
		}
	}
	threads, err := h.Threads.Threads(r.Context(), who, before, limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"threads": threads})
	return nil
}

func limitParam(r *http.Request) (int, error) {
	s := r.URL.Query().Get("limit")
	if s == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(s)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, holdfast.Errorf(codes.InvalidInput, "limit must be a number from 1 to %d.", maxLimit).
			WithHint("Leave it out to get %d.", defaultLimit)
	}
	return limit, nil
}

// getThread is GET /threads/{thread}.
func (h *handler) getThread(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	info, err := h.Threads.Thread(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+info.ETag+`"`)
	writeJSON(w, http.StatusOK, info)
	return nil
}

// getMessages is GET /threads/{thread}/messages.
func (h *handler) getMessages(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	messages, err := h.Threads.Messages(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"messages": messages})
	return nil
}

// getState is GET /threads/{thread}/state.
func (h *handler) getState(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	state, err := h.Threads.State(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, state)
	return nil
}

// listRuns is GET /threads/{thread}/runs?limit=&before=, newest first.
func (h *handler) listRuns(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	limit, err := limitParam(r)
	if err != nil {
		return err
	}
	before := r.URL.Query().Get("before")
	if err := checkText("before", before); err != nil {
		return err
	}
	runs, err := h.Threads.Runs(r.Context(), who, param(r, "thread"), before, limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"runs": runs})
	return nil
}
