package routine

import (
	"fmt"
	"runtime/debug"
)

// PanicError is what became of a panic.
type PanicError struct {
	Value any    // that was given to panic
	Stack string // of the goroutine, where it happened
}

// Error has the stack too: it is for the log.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Caught calls f and returns its error. If f panics, that is a [*PanicError]: a mistake that
// concerns one thread must not end a loop that is there for all of them.
func Caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: string(debug.Stack())}
		}
	}()
	return f()
}
