// Package panics keeps a mistake that concerns one thread from ending a loop that is there
// for all of them.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is what became of a panic.
type Error struct {
	Value any    // that was given to panic
	Stack string // of the goroutine, where it happened
}

// Error has the stack too: it is for the log.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Caught calls f and returns its error. If f panics, that is an [*Error].
func Caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Value: p, Stack: string(debug.Stack())}
		}
	}()
	return f()
}
