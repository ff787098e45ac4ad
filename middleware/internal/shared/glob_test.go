package shared_test

import (
	"testing"

	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"refund", "refund", true},
		{"refund", "refunds", false},
		{"refund", "refun", false},
		{"refund*", "refund", true},
		{"refund*", "refund_all", true},
		{"*", "", true},
		{"*", "anything", true},
		{"", "", true},
		{"", "x", false},
		{"a*b*c", "a-bb-b-c", true},
		{"a*b*c", "a-bb-b-d", false},
		{"*@example.com", "eve@example.com.evil.org", false},
		{"*@example.com", "ann@example.com", true},
		{"a**", "a", true},
		{"r?fund", "refund", false}, // only * is special
	} {
		if got := shared.Matches(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q and %q: got %v", tt.pattern, tt.text, got)
		}
	}
}
