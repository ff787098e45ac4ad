package thread

import (
	"fmt"
	"testing"
)

// TestTakeBack: what was taken back counts as used for good, in a head that does not grow.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	st := New()
	for n := range 1000 {
		st.TakeBack("call_0", fmt.Sprint("random", n))
		before := st.Clone()
		st.TakeBack("call_0")
		if size := len(st.Encode()); size != len(before.Encode()) || size > 600 {
			t.Fatalf("after %d answers the head takes %d bytes", n, size)
		}
		for m := range n + 1 {
			if !st.Used(fmt.Sprint("random", m)) || !st.Used("call_0") {
				t.Fatalf("after %d answers an id of answer %d can be used again", n, m)
			}
		}
		if n < 10 && st.Used("new") {
			t.Fatalf("after %d answers no id can be used", n)
		}
	}
}
