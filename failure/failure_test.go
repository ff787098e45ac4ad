package failure_test

import (
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast/failure"
)

// TestKinds: metrics have one series for each kind, so none may be there twice or be empty.
func TestKinds(t *testing.T) {
	t.Parallel()
	kinds := failure.Kinds()
	slices.Sort(kinds)
	if len(slices.Compact(slices.Clone(kinds))) != len(kinds) || slices.Contains(kinds, "") ||
		!slices.Contains(kinds, failure.TooLong) {
		t.Errorf("the kinds are %q", kinds)
	}
}
