package middleware

import "fmt"

// mustBeValid panics if the options passed to the named function are invalid, which is
// a mistake in the program.
func mustBeValid(function string, o interface{ Validate() error }) {
	if err := o.Validate(); err != nil {
		panic(fmt.Sprintf("middleware.%s: %v", function, err))
	}
}
