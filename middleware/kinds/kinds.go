// Package kinds lists the built-in middleware by the names that a configuration file
// has for it. It imports all of them, and none of them imports it.
package kinds

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
)

// All returns the kinds of middleware that come with Holdfast. The names are part of
// the file's format: they never change.
func All() []holdfast.MiddlewareKind {
	return []holdfast.MiddlewareKind{
		kind("circuitBreaker", middleware.CircuitBreaker),
		kind("errorTracking", middleware.ErrorTracking),
		kind("continuation", middleware.Continuation),
		kind("toolPermission", permission.New),
		kind("rateLimit", middleware.RateLimit),
		kind("budget", budget.New),
		kind("retry", middleware.Retry),
		kind("timeout", middleware.Timeout),
		kind("historyWindow", middleware.HistoryWindow),
		kind("redaction", redaction.New),
	}
}

// options are what a kind is made of.
type options interface{ Validate() error }

// kind makes a kind of a function and its options. A mistake in the options is an
// error here, and a panic in the function.
func kind[O options](name string, f func(O) holdfast.Middleware) holdfast.MiddlewareKind {
	return holdfast.MiddlewareKind{Name: name, New: func(raw json.RawMessage) (holdfast.Middleware, error) {
		var o O
		if err := holdfast.DecodeOptions(raw, &o); err != nil {
			return holdfast.Middleware{}, err
		}
		if err := o.Validate(); err != nil {
			return holdfast.Middleware{}, err
		}
		return f(o), nil
	}}
}
