package thread

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// TestCallKey: whatever sets two calls apart sets their keys apart, also where the parts
// read the same one after the other.
func TestCallKey(t *testing.T) {
	t.Parallel()
	seen := map[string][6]string{}
	for _, p := range [][6]string{
		{"acme", "alice", "pay", "inc1", "r1", "call_0"},
		{"evil", "alice", "pay", "inc1", "r1", "call_0"},
		{"acme", "mallory", "pay", "inc1", "r1", "call_0"},
		{"acme", "alice", "pay2", "inc1", "r1", "call_0"},
		{"acme", "alice", "pay", "inc2", "r1", "call_0"},
		{"acme", "alice", "pay", "inc1", "r2", "call_0"},
		{"acme", "alice", "pay", "inc1", "r1", "call_1"},
		{"acm", "ealice", "pay", "inc1", "r1", "call_0"},
		{"acme", "alicepay", "", "inc1", "r1", "call_0"},
		{"acme", "alice", "pay", "inc1", "r1/call_0", ""},
		{"acme", "alice", "pay", "inc1", "", "r1/call_0"},
	} {
		st := New()
		st.Incarnation = p[3]
		key := st.CallKey(store.ThreadKey{Tenant: p[0], Thread: p[2]}, p[1], &Call{Run: p[4], ID: p[5]})
		if other, double := seen[key]; double {
			t.Errorf("%q and %q have the same key", p, other)
		}
		seen[key] = p
		if !regexp.MustCompile(`^[a-z2-7]{52}$`).MatchString(key) {
			t.Errorf("%q has the key %q", p, key)
		}
	}
}

// TestEditedKey: the arguments that a person has chosen tell a call from the same one with
// others, whatever becomes of its thread.
func TestEditedKey(t *testing.T) {
	t.Parallel()
	here, there := store.ThreadKey{Tenant: "acme", Thread: "t"}, store.ThreadKey{Tenant: "acme", Thread: "fork"}
	st := New()
	st.Incarnation = "first"
	st.Calls = []Call{
		{ID: "c1", Run: "r1"},
		{ID: "c1", Run: "r1", Edited: CallHash("pay", `{"n":7}`)},
		{ID: "c1", Run: "r1", Edited: CallHash("pay", `{"n":8}`)},
	}
	seen := map[string]bool{}
	for i := range st.Calls {
		seen[st.CallKey(here, "alice", &st.Calls[i])] = true
	}
	if len(seen) != 3 {
		t.Errorf("there are %d keys, want 3", len(seen))
	}
	fork := st.Clone()
	fork.Incarnate(here, "alice", "second")
	fork = looked(t, fork)
	fork.Calls[0].Edited = st.Calls[1].Edited // the fork is answered like the thread
	for i, call := range []*Call{&st.Calls[1], &st.Calls[1], &st.Calls[2]} {
		if got, want := fork.CallKey(there, "alice", &fork.Calls[i]), st.CallKey(here, "alice", call); got != want {
			t.Errorf("in the fork the key of call %d is %q, want %q", i, got, want)
		}
	}
}

// looked returns the state as a reader finds it.
func looked(t *testing.T, st *State) *State {
	t.Helper()
	found, err := DecodeState(st.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestIncarnate: a call keeps the key under which it was made, whatever becomes of its
// thread.
func TestIncarnate(t *testing.T) {
	t.Parallel()
	here, there := store.ThreadKey{Tenant: "acme", Thread: "t"}, store.ThreadKey{Tenant: "acme", Thread: "fork"}
	st := New()
	st.Incarnate(here, "alice", "first")
	st.Calls = []Call{{ID: "c1", Run: "r1"}}
	made := st.CallKey(here, "alice", &st.Calls[0])
	st.Incarnate(here, "alice", "first")
	if st.Calls[0].Key != "" {
		t.Error("the key is stored although it can be derived")
	}
	fork := st.Clone()
	fork.Incarnate(here, "alice", "second")
	if got := fork.CallKey(there, "alice", &fork.Calls[0]); got != made || fork.Incarnation != "second" {
		t.Errorf("in the fork the key is %q, want %q", got, made)
	}
	fork.Calls = []Call{{ID: "c2", Run: "r1"}}
	st.Calls = fork.Calls
	if fork.CallKey(there, "alice", &fork.Calls[0]) == st.CallKey(here, "alice", &st.Calls[0]) {
		t.Error("a new call of the fork has the key of one of its origin")
	}
}

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

// TestLoseOwner: an owner that is gone may have used ids that nobody knows, unless it had calls
// open, whose answer is stored.
func TestLoseOwner(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work Work
		used bool
	}{
		"before an answer": {Work{}, true},
		"among its calls":  {Work{Open: true, Calls: []Call{{ID: "c1"}}}, false},
		"after its calls":  {Work{Open: true}, false},
		"with a client's":  {Work{Calls: []Call{{ID: "c1"}}}, false},
	} {
		st := New()
		st.Work = c.work
		st.TakeBack("call_0")
		LoseOwner(&st.Work)
		if st.Used("new") != c.used || !st.Used("call_0") {
			t.Errorf("%s: an id that nobody has seen counts as used: %t, want %t", name, st.Used("new"), c.used)
		}
	}
}
