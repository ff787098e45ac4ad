package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// TestValidateHint: hints that stores could not all keep in the same way are refused before
// they reach one.
func TestValidateHint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name string
		data int
		ttl  time.Duration
		good bool
	}{
		"good":            {"n", store.MaxHintData, store.MaxHintAge, true},
		"no name":         {"", 1, time.Second, false},
		"a long name":     {strings.Repeat("n", store.MaxName+1), 1, time.Second, false},
		"too much":        {"n", store.MaxHintData + 1, time.Second, false},
		"over at once":    {"n", 1, 0, false},
		"much too long":   {"n", 1, store.MaxHintAge + 1, false},
		"it has no bytes": {"n", 0, time.Second, true},
	} {
		err := store.ValidateHint(c.name, make([]byte, c.data), c.ttl)
		if (err == nil) != c.good || err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
