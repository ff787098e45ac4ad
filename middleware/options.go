package middleware

import "fmt"

// options is what every kind is made of.
type options interface {
	// validate says what is wrong, and what to write instead.
	validate() error
}

// must panics for options that cannot be: a mistake in the program.
func must(name string, o options) {
	if err := o.validate(); err != nil {
		panic(fmt.Sprintf("middleware.%s: %v", name, err))
	}
}
