package redisstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
)

// TestWalkAfterARestart: a walk that was at some place as Redis restarted comes past every thread that
// there was. The new process of Redis has its keys in another order, to which the old cursor means nothing.
func TestWalkAfterARestart(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := openAt(t, r.URL(), "hf:")
	const threads = 300
	for i := range threads {
		advance(t, s, aThread(fmt.Sprint(i)), func(*store.Commit) {})
	}
	_, next, err := s.Walk(t.Context(), "", 10)
	if err != nil || next == "" {
		t.Fatalf("the first page ends at %q: %v", next, err)
	}
	r.Kill(t)
	r.Run(t)
	seen := map[string]bool{}
	for page := 0; next != ""; page++ {
		if page > 10*threads {
			t.Fatal("the walk does not end")
		}
		var heads []store.Head
		if heads, next, err = s.Walk(t.Context(), next, 10); err != nil {
			t.Fatal(err)
		}
		for _, h := range heads {
			seen[h.Key.Thread] = true
		}
	}
	if len(seen) != threads {
		t.Errorf("the walk has come past %d of %d threads", len(seen), threads)
	}
}

// TestWalkAmongOtherServers: if the servers are others than before, a walk begins again.
func TestWalkAmongOtherServers(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	advance(t, s, aThread("a"), func(*store.Commit) {})
	for _, after := range []string{"0/5/elsewhere/x", "7/0/elsewhere/", "1/5"} {
		n := 0
		for next := after; ; {
			heads, more, err := s.Walk(t.Context(), next, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if n += len(heads); more == "" {
				break
			}
			next = more
		}
		if n != 1 {
			t.Errorf("from %s on, the walk has come past %d threads", after, n)
		}
	}
	for _, after := range []string{"x", "0/-1/a/b", "-1/0/a/b", "0/" + strings.Repeat("9", 30)} {
		if _, _, err := s.Walk(t.Context(), after, 10); err == nil {
			t.Errorf("%s is a position", after)
		}
	}
}
