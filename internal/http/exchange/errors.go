package exchange

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Statuses is the only table from error codes to HTTP statuses. A code that is not in it
// becomes a 500.
var Statuses = map[string]int{
	codes.AgentNotFound:            http.StatusNotFound,
	codes.BodyTimeout:              http.StatusRequestTimeout,
	codes.CallAlreadyAnswered:      http.StatusConflict,
	codes.CallClosed:               http.StatusConflict,
	codes.CallExpired:              http.StatusConflict,
	codes.CallPending:              http.StatusConflict,
	codes.CheckpointConflict:       http.StatusConflict,
	codes.CheckpointInvalid:        http.StatusConflict,
	codes.CheckpointStale:          http.StatusConflict,
	codes.CheckpointUnreadable:     http.StatusInternalServerError,
	codes.AuthUnavailable:          http.StatusServiceUnavailable,
	codes.Forbidden:                http.StatusForbidden,
	codes.ForbiddenHost:            http.StatusForbidden,
	codes.ForbiddenOrigin:          http.StatusForbidden,
	codes.HistoryDiverged:          http.StatusConflict,
	codes.HistoryNotKept:           http.StatusConflict,
	codes.InterruptAlreadyAnswered: http.StatusConflict,
	codes.InvalidAnswer:            http.StatusBadRequest,
	codes.InterruptExpired:         http.StatusConflict,
	codes.Interrupted:              http.StatusConflict,
	codes.AnswersMissing:           http.StatusConflict,
	codes.InvalidCursor:            http.StatusBadRequest,
	codes.InvalidInput:             http.StatusBadRequest,
	codes.LimitExceeded:            http.StatusTooManyRequests,
	codes.MediaRefused:             http.StatusBadRequest,
	codes.MethodNotAllowed:         http.StatusMethodNotAllowed,
	codes.MidExecution:             http.StatusConflict,
	codes.NotFound:                 http.StatusNotFound,
	codes.NothingToRun:             http.StatusBadRequest,
	codes.PayloadTooLarge:          http.StatusRequestEntityTooLarge,
	codes.RunIDReused:              http.StatusConflict,
	codes.RunInProgress:            http.StatusConflict,
	codes.SchemaChanged:            http.StatusConflict,
	codes.StateConflict:            http.StatusConflict,
	codes.StateInvalid:             http.StatusUnprocessableEntity,
	codes.StateTooNew:              http.StatusConflict,
	codes.ShuttingDown:             http.StatusServiceUnavailable,
	codes.Starting:                 http.StatusServiceUnavailable,
	codes.StoreUnavailable:         http.StatusServiceUnavailable,
	codes.StreamCut:                http.StatusServiceUnavailable,
	codes.ThreadExists:             http.StatusConflict,
	codes.ThreadTooLarge:           http.StatusRequestEntityTooLarge,
	codes.TooManyBodies:            http.StatusServiceUnavailable,
	codes.TooManyRuns:              http.StatusServiceUnavailable,
	codes.UnknownToolCall:          http.StatusBadRequest,
	codes.UnsupportedMediaType:     http.StatusUnsupportedMediaType,
	codes.VersionTooNew:            http.StatusConflict,
	codes.WrongAgent:               http.StatusConflict,
	codes.NotAcceptable:            http.StatusNotAcceptable,
	codes.Unauthenticated:          http.StatusUnauthorized,
}

// retryAfter is how many seconds a client should wait after a 503 or a 429.
const retryAfter = 2

// ErrorBody is what a client gets: what is wrong, what to do, and the ids that are
// affected.
type ErrorBody struct {
	Error struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Hint    string         `json:"hint,omitempty"`
		Details map[string]any `json:"details,omitempty"`
	} `json:"error"`
}

// Fail answers with an error. The cause goes only to the log.
func Fail(log *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	e := holdfast.AsError(err)
	code, known := Statuses[e.Code]
	if !known {
		code = http.StatusInternalServerError
	}
	gone := r.Context().Err() != nil // the error may well come from that, and nobody reads it
	noteError(r, e.Code, gone)
	if code >= http.StatusInternalServerError && !gone {
		log.Warn("request failed", "method", r.Method, "path", r.URL.Path, "status", code, "code", e.Code, "error", err)
	}
	switch code {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	case http.StatusUnauthorized:
		// RFC 9110, 11.6.1: a 401 names the scheme to use.
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	var body ErrorBody
	body.Error.Code, body.Error.Message, body.Error.Hint, body.Error.Details = e.Code, e.Message, e.Hint, e.Details
	WriteJSON(w, code, body)
}

// Shown answers with what was asked for; an error is the caller's.
func Shown(w http.ResponseWriter, v any, err error) error {
	if err == nil {
		WriteJSON(w, http.StatusOK, v)
	}
	return err
}

// WriteJSON answers with a value as JSON.
func WriteJSON(w http.ResponseWriter, code int, v any) {
	JSONHeader(w, code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// An error means that the client went away, and nobody can be told.
	_ = enc.Encode(v)
}

// TypeJSON is the media type of all answers that are neither streams nor pages.
const TypeJSON = "application/json"

// JSONHeader sends the header of an answer in JSON.
func JSONHeader(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", TypeJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
}

// LogPanic logs a panic, with the stack of the function that recovers from it.
func LogPanic(log *slog.Logger, path string, p any) {
	log.Error("panic in a handler", "path", path, "panic", p, "stack", string(debug.Stack()))
}
