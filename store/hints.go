package store

import (
	"context"
	"fmt"
	"time"
)

// Hints are what the processes that share a store tell each other and can do without: that
// a model does not answer at the moment, for example. A store may forget a hint at any time,
// and it may keep hints in memory if only one process can have it open. Nobody waits for
// hints, and nothing that must be right depends on one.
type Hints interface {
	// PutHint tells every process something for as long as ttl, by the store's clock. It
	// replaces the hint that has the name. It returns [ErrInvalid] for a hint that no store
	// takes: see [ValidateHint].
	PutHint(ctx context.Context, name string, data []byte, ttl time.Duration) error
	// Hints returns those whose time is not over, in any order. It leaves out what no
	// version of the store has written.
	Hints(ctx context.Context) ([]Hint, error)
}

// The bounds of a hint.
const (
	// MaxHintAge is how long a hint may last.
	MaxHintAge = time.Hour
	// MaxHintData is how long its data may be, in bytes.
	MaxHintData = 1024
)

// Hint is something that a process has told the others.
type Hint struct {
	// Name says what it is about.
	Name string
	// Data is the hint itself, opaque to the store.
	Data []byte
	// Left is how long it lasts from now, by the store's clock: more than 0, and at most
	// [MaxHintAge].
	Left time.Duration
}

// ValidateHint returns [ErrInvalid] for a hint without a name, with a name longer than
// [MaxName] or data longer than [MaxHintData], and for one that would end at once or last
// longer than [MaxHintAge]. Every store calls it first.
func ValidateHint(name string, data []byte, ttl time.Duration) error {
	switch {
	case name == "":
		return fmt.Errorf("a hint needs a name: %w", ErrInvalid)
	case len(data) > MaxHintData:
		return fmt.Errorf("the hint %.32q has %d bytes, but only %d are allowed: %w", name, len(data), MaxHintData,
			ErrInvalid)
	case ttl <= 0 || ttl > MaxHintAge:
		return fmt.Errorf("the hint %.32q would last %s, but only times up to %s are allowed: %w", name, ttl,
			MaxHintAge, ErrInvalid)
	}
	return validateNames(name)
}
