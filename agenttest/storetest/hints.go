package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// The Hints role: what is told, for how long, and that nothing else is touched by it.

// hintTests test [store.Hints].
func hintTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"told until its time is over": testHintEnds,
		"told again":                  testHintAgain,
		"odd names and data":          testOddHints,
		"invalid hints":               testInvalidHints,
		"hints belong to the caller":  testHintsAreCopies,
		"cancelled":                   testHintsCancelled,
		"hints and threads are apart": testHintsAndThreads,
	}
}

func putHint(t *testing.T, s store.Store, name, data string, ttl time.Duration) {
	t.Helper()
	if err := s.PutHint(t.Context(), name, []byte(data), ttl); err != nil {
		t.Fatalf("PutHint(%.40q): %v", name, err)
	}
}

// hints returns what the store tells, as "name data", sorted. Each hint must last at least
// as long as least, if that is not 0.
func hints(t *testing.T, s store.Store, least time.Duration) []string {
	t.Helper()
	told := []string{}
	for _, h := range must(s.Hints(t.Context()))(t) {
		if h.Left <= 0 || h.Left < least || h.Left > store.MaxHintAge {
			t.Errorf("the hint %.40q lasts %s", h.Name, h.Left)
		}
		told = append(told, h.Name+" "+string(h.Data))
	}
	slices.Sort(told)
	return told
}

func testHintEnds(t *testing.T, s store.Store) {
	expect(t, "the hints of an empty store", hints(t, s, 0), []string{})
	putHint(t, s, "long", "1", store.MaxHintAge)
	begun := time.Now()
	putHint(t, s, "short", "2", shortLease)
	await(t, "the end of a hint of "+shortLease.String(), func() bool { return len(hints(t, s, 0)) == 1 })
	if lasted := time.Since(begun); lasted < shortLease {
		t.Errorf("the hint of %s was over after %s", shortLease, lasted)
	}
	expect(t, "the hints", hints(t, s, store.MaxHintAge/2), []string{"long 1"})
	putHint(t, s, "short", "3", time.Minute)
	expect(t, "the hints", hints(t, s, time.Second), []string{"long 1", "short 3"})
}

// testHintAgain: the newer hint counts, with its time, even if it ends earlier.
func testHintAgain(t *testing.T, s store.Store) {
	putHint(t, s, "a", "1", time.Minute)
	putHint(t, s, "b", "", time.Minute)
	putHint(t, s, "a", "2", store.MaxHintAge)
	expect(t, "the hints", hints(t, s, 0), []string{"a 2", "b "})
	for _, h := range must(s.Hints(t.Context()))(t) {
		if (h.Left > time.Minute) != (h.Name == "a") {
			t.Errorf("the hint %s lasts %s", h.Name, h.Left)
		}
	}
	putHint(t, s, "a", "3", time.Minute)
	for _, h := range must(s.Hints(t.Context()))(t) {
		if h.Left > time.Minute {
			t.Errorf("the hint %s lasts %s", h.Name, h.Left)
		}
	}
}

func testOddHints(t *testing.T, s store.Store) {
	want := []string{}
	for _, name := range oddNames() {
		if len(name) > store.MaxHintData {
			continue
		}
		putHint(t, s, name, name, time.Hour)
		want = append(want, name+" "+name)
	}
	slices.Sort(want)
	expect(t, "the hints", hints(t, s, time.Minute), want)
}

func testInvalidHints(t *testing.T, s store.Store) {
	long := strings.Repeat("x", store.MaxName+1)
	for what, h := range map[string]store.Hint{
		"no name":     {Left: time.Minute},
		"a long name": {Name: long, Left: time.Minute},
		"much data":   {Name: "a", Data: make([]byte, store.MaxHintData+1), Left: time.Minute},
		"no time":     {Name: "a"},
		"a past time": {Name: "a", Left: -time.Second},
		"a long time": {Name: "a", Left: store.MaxHintAge + 1},
	} {
		if err := s.PutHint(t.Context(), h.Name, h.Data, h.Left); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a hint with %s: %v, want ErrInvalid", what, err)
		}
	}
	expect(t, "the hints", hints(t, s, 0), []string{})
}

func testHintsAreCopies(t *testing.T, s store.Store) {
	putHint(t, s, "a", "data", time.Minute)
	for _, h := range must(s.Hints(t.Context()))(t) {
		clear(h.Data)
	}
	expect(t, "the hints", hints(t, s, 0), []string{"a data"})
}

func testHintsCancelled(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.PutHint(ctx, "a", nil, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("PutHint: %v", err)
	}
	if _, err := s.Hints(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Hints: %v", err)
	}
	expect(t, "the hints", hints(t, s, 0), []string{})
}

// testHintsAndThreads: a hint is no thread, whatever its name.
func testHintsAndThreads(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { fillWith(c, "t") })
	for _, name := range []string{"t", th.key.Tenant, th.key.String(), "{" + th.key.String() + "}:t"} {
		putHint(t, s, name, "data", time.Minute)
	}
	th.post("item", "t")
	th.holdsOnly("t")
	if all := must(s.Owned(t.Context()))(t); len(all) != 0 {
		t.Errorf("owned threads: %v", all)
	}
	found := map[store.ThreadKey]bool{}
	for after := ""; ; {
		heads, next, err := s.Walk(t.Context(), after, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range heads {
			found[h.Key] = true
		}
		if after = next; after == "" {
			break
		}
	}
	if len(found) != 1 || !found[th.key] {
		t.Errorf("a walk finds %v", found)
	}
	if err := s.Delete(t.Context(), th.key, th.next().Expect); err != nil {
		t.Fatal(err)
	}
	expect(t, "how many hints there are", len(hints(t, s, 0)), 4)
}
