package netguard

// Unsent is the error of a request that was certainly not sent: no connection was allowed or
// could be made, or there is no credential. Retrying it repeats nothing.
type Unsent struct{ Err error }

// Error implements error.
func (e Unsent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e Unsent) Unwrap() error { return e.Err }

// NotSent reports true. Hooks that retry a call ask for the method, so errors of anybody's tools can have it.
func (Unsent) NotSent() bool { return true }
