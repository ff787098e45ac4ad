// Package kinds lists the built-in middleware by the names that a configuration file uses.
// It imports all of it, and none of it imports this package.
package kinds

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
)

// All returns the kinds of middleware that come with Holdfast. Their names are part of the
// file's format and never change.
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
		kind("largeResults", middleware.LargeResults),
		kind("redaction", redaction.New),
	}
}

// options are the options of a kind.
type options interface{ Validate() error }

// kind turns a function and its options into a kind. Invalid options are an error here and
// a panic in the function.
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
