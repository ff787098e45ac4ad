package clock

import (
	"regexp"
	"testing"
	"time"
)

// TestIDs: ids say what they are of, sort by time, and do not repeat; without a prefix they
// are random letters and digits.
func TestIDs(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	id := NewIDs(Plain(func() time.Time { return now }))
	first := id("msg")
	if !regexp.MustCompile(`^msg_[0-9a-v]{9}[a-z2-7]{10}$`).MatchString(first) {
		t.Errorf("got %q", first)
	}
	if bare := id(""); !regexp.MustCompile(`^[a-z2-7]{16}$`).MatchString(bare) {
		t.Errorf("got %q", bare)
	}
	seen := map[string]bool{}
	for range 1000 {
		if one := id("c"); seen[one] {
			t.Fatalf("%q came twice", one)
		} else {
			seen[one] = true
		}
	}
	now = now.Add(time.Millisecond)
	if later := id("msg"); later <= first {
		t.Errorf("%q does not come after %q", later, first)
	}
}
