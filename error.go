package holdfast

// The errors of the whole server: Error, which has a part for the caller and a part
// for the log; the codes that callers can rely on; and the sentinel errors with which
// a Store reports what happened to a read or a commit.

import (
	"errors"
	"fmt"
)

// Error is an error for two readers. Code, Message, Hint and Details are safe to
// show to the caller and say what to do next. Err is the cause, which is only logged.
type Error struct {
	// Code is stable and machine-readable, one of the Code constants or a
	// lower_snake_case name of an extension.
	Code string
	// Message says in one sentence what is wrong, for a person.
	Message string
	// Hint says what to do next.
	Hint string
	// Details identifies what is affected: the thread, the run, the open interrupts.
	Details map[string]any
	// Err is the cause. It never leaves the server.
	Err error
}

// The codes of the errors that the server itself returns.
const (
	CodeAgentNotFound            = "agent_not_found"
	CodeBudgetExceeded           = "budget_exceeded"
	CodeCheckpointConflict       = "checkpoint_conflict"
	CodeCheckpointInvalid        = "checkpoint_invalid"
	CodeCheckpointStale          = "checkpoint_stale"
	CodeCheckpointUnreadable     = "checkpoint_unreadable"
	CodeCircuitOpen              = "circuit_open"
	CodeCutOff                   = "cut_off"
	CodeForbiddenHost            = "forbidden_host"
	CodeForbiddenOrigin          = "forbidden_origin"
	CodeHistoryDiverged          = "history_diverged"
	CodeHistoryNotKept           = "history_not_kept"
	CodeInternal                 = "internal"
	CodeInterruptAlreadyAnswered = "interrupt_already_answered"
	CodeInterruptExpired         = "interrupt_expired"
	CodeInterrupted              = "interrupted"
	CodeInvalidInput             = "invalid_input"
	CodeMaxIterations            = "max_iterations"
	CodeMethodNotAllowed         = "method_not_allowed"
	CodeMidExecution             = "mid_execution"
	CodeModelFailed              = "model_failed"
	CodeNotFound                 = "not_found"
	CodeNothingToRun             = "nothing_to_run"
	CodePayloadTooLarge          = "payload_too_large"
	CodeRateLimited              = "rate_limited"
	CodeRecoveryGaveUp           = "recovery_gave_up"
	CodeRunIDReused              = "run_id_reused"
	CodeRunInProgress            = "run_in_progress"
	CodeStoreUnavailable         = "store_unavailable"
	CodeStreamCut                = "stream_cut"
	CodeNotAcceptable            = "not_acceptable"
	CodeThreadExists             = "thread_exists"
	CodeThreadTooLarge           = "thread_too_large"
	CodeTooManyErrors            = "too_many_errors"
	CodeTooManyRuns              = "too_many_runs"
	CodeUnauthenticated          = "unauthenticated"
	CodeShuttingDown             = "shutting_down"
	CodeUnknownToolCall          = "unknown_tool_call"
	CodeUnsupportedMediaType     = "unsupported_media_type"
	CodeVersionTooNew            = "version_too_new"
	CodeMiddlewareFailed         = "middleware_failed"
	CodeSchemaChanged            = "schema_changed"
	CodeStateMigration           = "state_migration_failed"
	CodeStateTooNew              = "state_too_new"
	CodeStateUnreadable          = "state_unreadable"
	CodeStateUnwritable          = "state_unwritable"
	CodeWrongAgent               = "wrong_agent"
)

// Error returns the log text: code, message and cause.
func (e *Error) Error() string {
	s := e.Code
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an [Error] with a code and a message that is safe to show.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of e that says what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// With returns a copy of e with one more detail.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = make(map[string]any, len(e.Details)+1)
	for k, v := range e.Details {
		c.Details[k] = v
	}
	c.Details[key] = value
	return &c
}

// Wrap returns a copy of e whose cause is err.
func (e *Error) Wrap(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// AsError returns the [Error] in err's chain, and nil for nil. Any other error
// becomes a [CodeInternal] with a fixed text and err as its cause, so that internals
// never reach a caller.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(CodeInternal, "The server could not complete this request.").
		WithHint("Try again; if it happens again, the server's log has the cause.").Wrap(err)
}

// The errors a [Store] returns. Test for them with [errors.Is].
var (
	// ErrNotFound: there is no such thread, run, blob or checkpoint.
	ErrNotFound = errors.New("not found")
	// ErrFenced: the thread's fence is not the one the commit names, so somebody
	// else owns the thread now. The writer must stop and never retry.
	ErrFenced = errors.New("fenced: the thread has another owner")
	// ErrConflict: the fence is right (or both are new), but the head has moved
	// since it was read. Read it again and decide again.
	ErrConflict = errors.New("conflict: the head has moved")
	// ErrCursor: the log has no record with the cursor's number and tag. The reader
	// must resynchronize.
	ErrCursor = errors.New("the log does not hold this cursor")
	// ErrVersionTooNew: the data was written by a newer version of Holdfast.
	ErrVersionTooNew = errors.New("written by a newer version")
	// ErrStoreLocked: another process has the store open.
	ErrStoreLocked = errors.New("the store is in use by another process")
)
