package owner

import (
	"fmt"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// TestHeirs: for each thread, each process that lives comes at another place; those that cannot go on
// with its agent come after those that can, and the work is shared.
func TestHeirs(t *testing.T) {
	t.Parallel()
	about := func(recovers bool, agents ...string) *abilities {
		a := &abilities{Agents: map[string]string{}, Recovers: recovers}
		for _, name := range agents {
			a.Agents[name] = ""
		}
		return a
	}
	living := map[string]*abilities{
		"one": about(true, "a", "b"), "two": about(true, "a", "b"), "three": about(true, "a"),
		"off": about(false, "a", "b"), "silent": {silent: true},
	}
	orders := map[string]*heirs{}
	for name := range living {
		orders[name] = newHeirs(name, living)
	}
	first := map[string]int{}
	for i := range 600 {
		key := store.ThreadKey{Tenant: "acme", Thread: fmt.Sprint(i)}
		for agent, able := range map[string]int{"a": 4, "b": 3} {
			places := map[int]bool{}
			for name, h := range orders {
				n := h.turn("lost", key, agent)
				if n < able {
					places[n] = true
				} else if name != "off" && (name != "three" || agent != "b") {
					t.Errorf("%s comes at place %d for a thread of %s", name, n, agent)
				}
				if n < h.soonest("lost", key) {
					t.Errorf("%s comes at place %d, sooner than at the soonest", name, n)
				}
				if n == 0 && agent == "a" {
					first[name]++
				}
			}
			if len(places) != able {
				t.Errorf("for thread %d of %s there are places %v", i, agent, places)
			}
		}
	}
	for _, name := range []string{"one", "two", "three", "silent"} {
		if n := first[name]; n < 100 || n > 200 {
			t.Errorf("%s comes first for %d threads of 600, which four share", name, n)
		}
	}
	watching := 0
	for _, h := range orders {
		if h.watches("lost") {
			watching++
		}
	}
	if watching != watchers {
		t.Errorf("%d look after what is left", watching)
	}
	key := store.ThreadKey{Thread: "t"}
	if alone := newHeirs("me", nil); alone.turn("x", key, "a") != 0 || alone.soonest("x", key) != 0 ||
		!alone.watches("x") {
		t.Error("a process that is alone does not come first")
	}
	if h := newHeirs("three", living); h.turn("lost", key, "nobody's") >= len(living) {
		t.Error("a thread of an agent that nobody has is nobody's turn")
	}
}
