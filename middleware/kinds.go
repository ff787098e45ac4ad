package middleware

import (
	"encoding/json"
	"fmt"
	"time"

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

// options is what every kind is made of.
type options interface {
	// validate says what is wrong, and what to write instead.
	validate() error
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

// must panics for options that cannot be: a mistake in the program.
func must(name string, o options) {
	if err := o.validate(); err != nil {
		panic(fmt.Sprintf("middleware.%s: %v", name, err))
	}
}

// Duration is a [time.Duration] that a configuration file writes as "30s".
type Duration time.Duration

// UnmarshalText reads "30s", "2m" or "1h30m".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration; write it with its unit, like 30s or 2m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
