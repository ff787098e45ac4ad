package journal

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

func records(from, to uint64, size int) (out []store.Record) {
	for n := from; n <= to; n++ {
		out = append(out, store.Record{Cursor: store.Cursor{Number: n}, Data: []byte(strings.Repeat("x", size))})
	}
	return out
}

// TestFeedAfter: a cursor gets exactly the suffix, or hears that the feed does not reach
// back to it.
func TestFeedAfter(t *testing.T) {
	f := NewFeed(100)
	f.Append(records(5, 9, 1))
	for after, want := range map[uint64]struct {
		n      int
		behind bool
	}{3: {0, true}, 4: {5, false}, 7: {2, false}, 9: {0, false}} {
		got, behind, wake := f.After(store.Cursor{Number: after})
		if len(got) != want.n || behind != want.behind || wake == nil {
			t.Errorf("after %d: %d records, behind %t", after, len(got), behind)
		}
		if len(got) > 0 && got[0].Number != after+1 {
			t.Errorf("after %d comes %d", after, got[0].Number)
		}
	}
}

// TestFeedWakes: a watcher that is up to date is woken by more, and by the end.
func TestFeedWakes(t *testing.T) {
	f := NewFeed(100)
	f.Append(records(1, 1, 1))
	_, _, wake := f.After(store.Cursor{Number: 1})
	f.Append(records(2, 2, 1))
	<-wake
	_, _, wake = f.After(store.Cursor{Number: 2})
	f.End()
	f.End() // twice is once
	<-wake
	if _, _, wake := f.After(store.Cursor{Number: 2}); wake != nil {
		t.Error("an ended feed says that there may be more")
	}
}

// TestFeedIsBounded: the oldest records go; a slice that was handed out stays whole.
func TestFeedIsBounded(t *testing.T) {
	f := NewFeed(100)
	f.Append(records(1, 10, 10))
	first, _, _ := f.After(store.Cursor{})
	for n := uint64(11); n <= 100; n++ {
		f.Append(records(n, n, 10))
	}
	if len(first) != 10 || first[0].Number != 1 {
		t.Errorf("what was handed out has changed: %d records", len(first))
	}
	held, behind, _ := f.After(store.Cursor{Number: 95})
	if behind || len(held) != 5 {
		t.Errorf("of the newest: %d records, behind %t", len(held), behind)
	}
	if _, behind, _ := f.After(store.Cursor{Number: 1}); !behind {
		t.Error("the feed still holds its oldest records")
	}
}
