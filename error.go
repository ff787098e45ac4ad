package holdfast

import (
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/codes"
)

// The errors of the whole server: Error, which has a part for the caller and a part
// for the log; the codes that callers can rely on; and the sentinel errors with which
// a Store reports what happened to a read or a commit.

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
// becomes a [codes.Internal] with a fixed text and err as its cause, so that internals
// never reach a caller.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(codes.Internal, "The server could not complete this request.").
		WithHint("Try again; if it happens again, the server's log has the cause.").Wrap(err)
}
