package routine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/routine"
)

// TestCaught: an error is returned as it is, a panic with its value and where it happened.
func TestCaught(t *testing.T) {
	failed := errors.New("failed")
	for _, want := range []error{nil, failed} {
		if got := routine.Caught(func() error { return want }); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	var none []int
	err := routine.Caught(func() error { none[len(none)-1]++; return nil })
	var p *routine.PanicError
	if !errors.As(err, &p) || !strings.Contains(err.Error(), "index out of range") ||
		!strings.Contains(p.Stack, "panics_test.go") {
		t.Errorf("got %v", err)
	}
}
