package http

import (
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/holdfast-agents/holdfast"
)

// status is the one table from error codes to HTTP. A code that is not in it is
// a 500.
var status = map[string]int{
	holdfast.CodeAgentNotFound:            http.StatusNotFound,
	holdfast.CodeCheckpointConflict:       http.StatusConflict,
	holdfast.CodeForbiddenHost:            http.StatusForbidden,
	holdfast.CodeForbiddenOrigin:          http.StatusForbidden,
	holdfast.CodeHistoryDiverged:          http.StatusConflict,
	holdfast.CodeInterruptAlreadyAnswered: http.StatusConflict,
	holdfast.CodeInterruptExpired:         http.StatusConflict,
	holdfast.CodeInterrupted:              http.StatusConflict,
	holdfast.CodeInvalidInput:             http.StatusBadRequest,
	holdfast.CodeMethodNotAllowed:         http.StatusMethodNotAllowed,
	holdfast.CodeMidExecution:             http.StatusConflict,
	holdfast.CodeNotFound:                 http.StatusNotFound,
	holdfast.CodeNothingToRun:             http.StatusBadRequest,
	holdfast.CodePayloadTooLarge:          http.StatusRequestEntityTooLarge,
	holdfast.CodeRunIDReused:              http.StatusConflict,
	holdfast.CodeRunInProgress:            http.StatusConflict,
	holdfast.CodeShuttingDown:             http.StatusServiceUnavailable,
	holdfast.CodeStoreUnavailable:         http.StatusServiceUnavailable,
	holdfast.CodeTooManyRuns:              http.StatusServiceUnavailable,
	holdfast.CodeUnknownToolCall:          http.StatusBadRequest,
	holdfast.CodeUnsupportedMediaType:     http.StatusUnsupportedMediaType,
	holdfast.CodeVersionTooNew:            http.StatusConflict,
	holdfast.CodeWrongAgent:               http.StatusConflict,
}

// retryAfter is how many seconds a client should wait after a 503.
const retryAfter = 2

// errorBody is what a client gets: what is wrong, what to do, and the ids
// concerned.
type errorBody struct {
	Error struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Hint    string         `json:"hint,omitempty"`
		Details map[string]any `json:"details,omitempty"`
	} `json:"error"`
}

// fail answers with an error. The cause goes to the log only.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := holdfast.AsError(err)
	code, known := status[e.Code]
	if !known {
		code = http.StatusInternalServerError
	}
	if code >= http.StatusInternalServerError {
		h.Log.Warn("request failed", "method", r.Method, "path", r.URL.Path, "status", code, "code", e.Code, "error", err)
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	var body errorBody
	body.Error.Code, body.Error.Message, body.Error.Hint, body.Error.Details = e.Code, e.Message, e.Hint, e.Details
	writeJSON(w, code, body)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// A client that went away cannot be told.
	_ = enc.Encode(v)
}

// recoverPanics keeps a mistake in a handler from taking the connection down
// without a word.
func (h *handler) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			h.Log.Error("panic in a handler", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			h.fail(w, r, errors.New("panic"))
		}()
		next.ServeHTTP(w, r)
	})
}
