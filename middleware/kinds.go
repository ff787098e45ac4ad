package middleware

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// Kinds are the middleware that a configuration file can name.
func Kinds() []holdfast.MiddlewareKind {
	return []holdfast.MiddlewareKind{
		kind("circuitBreaker", CircuitBreaker),
		kind("errorTracking", ErrorTracking),
		kind("continuation", Continuation),
		kind("toolPermission", ToolPermission),
		kind("rateLimit", RateLimit),
		kind("budget", Budget),
		kind("retry", Retry),
		kind("timeout", Timeout),
		kind("historyWindow", HistoryWindow),
		kind("redaction", Redaction),
	}
}

// kind makes a kind of a function and its options.
func kind[O options](name string, f func(O) holdfast.Middleware) holdfast.MiddlewareKind {
	return holdfast.MiddlewareKind{Name: name, New: func(raw json.RawMessage) (holdfast.Middleware, error) {
		var o O
		if err := holdfast.DecodeOptions(raw, &o); err != nil {
			return holdfast.Middleware{}, err
		}
		if err := o.validate(); err != nil {
			return holdfast.Middleware{}, err
		}
		return f(o), nil
	}}
}
