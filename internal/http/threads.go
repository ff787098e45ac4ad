package http

import (
	"bufio"
	"bytes"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/threads"
)

// Threads over HTTP: lists of them, one of them, and its messages, state and runs. What is
// long is written piece by piece.

// listThreads is GET /threads?limit=&before=&user=, most recently active first.
func (h *handler) listThreads(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	page, err := readThreadPage(r)
	if err != nil {
		return err
	}
	var list []threads.Info
	switch r.URL.Query().Get("user") {
	case "":
		if err = h.Authorize(r.Context(), who, access.Read, ""); err != nil {
			return err
		}
		list, err = h.Threads.Threads(r.Context(), who, page.before, page.limit)
	case "*":
		list, err = threadsOfAll(h, r, who, page)
	default:
		err = invalid("user", "user must be *.", "For the threads of one user, send the header "+headerUser+".")
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"threads": list})
	return nil
}

// threadPage is which threads a request asks for: at most limit of those that were last active
// before a time; zero for any time.
type threadPage struct {
	before time.Time
	limit  int
}

func readThreadPage(r *http.Request) (p threadPage, err error) {
	if p.limit, err = limitParam(r); err == nil {
		p.before, err = timeBefore(r)
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
	return writeMessages(w, r, h.Log, "{", messages, "}\n")
}

// writeMessages writes a JSON object that has the messages between two parts of its text,
// one by one, so that a slow client does not keep all of them in memory. They are read
// twice: before the first byte is sent, a message that cannot be read is an error like any
// other. If one cannot be read only then, cutting the connection is the only way left to show
// that the answer is incomplete.
func writeMessages(
	w http.ResponseWriter,
	r *http.Request,
	log *slog.Logger,
	before string,
	messages iter.Seq2[json.RawMessage, error],
	after string,
) error {
	for _, err := range messages {
		if err != nil {
			return err
		}
	}
	jsonHeader(w, http.StatusOK)
	out := bufio.NewWriterSize(w, maxBuffer)
	_, failed := out.WriteString(before + `"messages":[`)
	separator := ""
	var line bytes.Buffer
	for m, err := range messages {
		if err != nil {
			if r.Context().Err() == nil {
				log.Warn("answer cut in the middle", "path", r.URL.Path, "error", err)
			}
			panic(http.ErrAbortHandler)
		}
		if failed == nil {
			_, failed = out.WriteString(separator)
		}
		if failed == nil {
			line.Reset()
			failed = json.Compact(&line, m)
		}
		if failed == nil {
			_, failed = out.Write(line.Bytes())
		}
		if failed != nil {
			return nil // the client went away or does not read; what is stored is JSON
		}
		separator = ","
	}
	// An error here means the same.
	_, _ = out.WriteString("]" + after)
	_ = out.Flush()
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
