package middleware

import (
	"fmt"
	"time"
)

// Duration is a [time.Duration] that reads "30s" in a configuration file.
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

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
