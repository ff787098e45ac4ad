package middleware

import "fmt"

// notNegative returns what is wrong with a count that was stored: none is ever written
// below zero, and one that is would put off the limit that it is compared with.
func notNegative(name string, n int) error {
	if n < 0 {
		return fmt.Errorf("%s is %d", name, n)
	}
	return nil
}
