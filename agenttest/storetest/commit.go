package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// The Committer role: what a commit does to the head, and what it is refused for. The
// files commit_*.go test what else it writes, by Post and Delete as well.

// commitTests test [store.Committer].
func commitTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"the zero position makes a thread":            testNewThread,
		"a new thread needs the zero position":        testNewThreadPosition,
		"every commit moves the head":                 testHeadMoves,
		"a nil state keeps the state":                 testNilState,
		"another fence is fenced":                     testFenced,
		"the epoch alone is not the fence":            testSameEpoch,
		"another etag or number is a conflict":        testConflict,
		"a conflict names both ETags":                 testConflictError,
		"the fence may change in a commit":            testFenceChange,
		"a retry with the same id writes nothing":     testRetry,
		"an older id is not a retry":                  testOldID,
		"a refused commit leaves nothing":             testRefused,
		"a commit needs an id, a thread and names":    testInvalid,
		"a cancelled context":                         testCancelled,
		"the committer's clock is kept":               testUpdatedAt,
		"only a thread's first commit names a parent": testParentOnce,
		"ids are new in the thread":                   testDoubleMessage,
		"parents are known":                           testOrphan,
		"forgotten messages are gone":                 testForget,
		"put, replace and delete":                     testPut,
		"kinds are apart":                             testKinds,
		"clear, then put, then delete":                testOrder,
		"keep trims to the newest":                    testKeep,
		"a replaced value leaves nothing over":        testReplaceLarge,
		"items are numbered as they come":             testInboxNumbers,
		"an item is added once":                       testInboxOnce,
		"a seen item is gone":                         testInboxSeen,
		"a post does not move the head":               testInboxUnfenced,
		"a deleted thread leaves nothing behind":      testDelete,
		"a thread that has moved is not deleted":      testDeleteMoved,
		"a deleted thread can be made again":          testDeleteAgain,
		"trimmed records are gone, numbers continue":  testTrim,
		"what a commit cannot trim":                   testTrimInvalid,
		"one of many commits on a head wins":          func(t *testing.T, s store.Store) { testRace(t, s, false) },
		"one of many claims of a thread wins":         func(t *testing.T, s store.Store) { testRace(t, s, true) },
		"one of many makes a thread":                  testRaceNew,
		"many threads at once":                        testManyThreads,
		"posts beside commits":                        testPostsAndCommits,
	}
}

func testNewThread(t *testing.T, s store.Store) {
	c := &store.Commit{
		Key:       key("t"),
		ID:        "first",
		Expect:    store.Position{Next: 1},
		User:      "alice",
		Fence:     fence(1),
		Process:   "p",
		UpdatedAt: start(),
		State:     []byte("state"),
	}
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	got := must(s.Head(t.Context(), key("t")))(t)
	sameHead(t, *got, store.Head{
		Key:       key("t"),
		User:      "alice",
		Fence:     c.Fence,
		Process:   "p",
		ETag:      "first",
		Next:      1,
		UpdatedAt: start(),
		State:     []byte("state"),
	})
	again := *c
	again.ID = "second"
	wantError(t, s.Commit(t.Context(), &again), store.ErrConflict)
}

func testNewThreadPosition(t *testing.T, s store.Store) {
	commit := func(p store.Position) error {
		return s.Commit(t.Context(), &store.Commit{Key: key("t"), ID: newID(), Expect: p, UpdatedAt: start()})
	}
	wantError(t, commit(store.Position{Next: 0}), store.ErrConflict)
	wantError(t, commit(store.Position{Next: 2}), store.ErrConflict)
	wantError(t, commit(store.Position{Next: 1, ETag: "x"}), store.ErrConflict)
	wantError(t, commit(store.Position{Next: 1, Fence: fence(1)}), store.ErrFenced)
	_, err := s.Head(t.Context(), key("t"))
	wantError(t, err, store.ErrNotFound)
}

func testHeadMoves(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	th.check()
	th.commit(func(c *store.Commit) {
		c.User, c.Process, c.UpdatedAt, c.State = "bob", "p2", start().Add(time.Hour), []byte("new")
		c.Records = [][]byte{[]byte("a"), []byte("b")}
	})
	th.check()
	th.commit(func(c *store.Commit) { c.Process = "" })
	th.check()
}

func testNilState(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.State = []byte("one") })
	for _, state := range [][]byte{nil, []byte("two"), nil, {}, nil, []byte(strings.Repeat("three ", 1000)), nil,
		[]byte("four")} {
		th.commit(func(c *store.Commit) { c.State = state })
		th.check()
	}
}

func testFenced(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	old := th.next()
	th.commit(func(c *store.Commit) { c.Fence = fence(2) })
	wantError(t, s.Commit(t.Context(), old), store.ErrFenced)

	stranger := th.next()
	stranger.Expect.Fence = fence(3)
	wantError(t, s.Commit(t.Context(), stranger), store.ErrFenced)
	th.check()
}

// testSameEpoch: after a store has lost its last writes, an epoch is given out twice.
func testSameEpoch(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	c := th.next()
	c.Expect.Fence.Nonce = fence(1).Nonce
	wantError(t, s.Commit(t.Context(), c), store.ErrFenced)
	c = th.next()
	c.Expect.Fence.Epoch++
	wantError(t, s.Commit(t.Context(), c), store.ErrFenced)
}

func testConflict(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.Records = [][]byte{[]byte("r")} })
	for _, change := range []func(p *store.Position){
		func(p *store.Position) { p.ETag = "other" },
		func(p *store.Position) { p.ETag = "" },
		func(p *store.Position) { p.Next++ },
		func(p *store.Position) { p.Next-- },
		func(p *store.Position) { *p = store.Position{Next: 1} },
	} {
		c := th.next()
		change(&c.Expect)
		wantError(t, s.Commit(t.Context(), c), store.ErrConflict)
	}
	th.check()
}

func testFenceChange(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.Records = [][]byte{[]byte("old")} })
	tag := th.head.Fence.Tag()
	th.commit(func(c *store.Commit) { c.Fence, c.Records = fence(2), [][]byte{[]byte("new")} })
	th.check()
	got := must(s.Records(t.Context(), th.key, store.Cursor{}, 10))(t)
	expect(t, "records", got, []store.Record{
		{Cursor: store.Cursor{Number: 1, Tag: tag}, Data: []byte("old")},
		{Cursor: store.Cursor{Number: 2, Tag: th.head.Fence.Tag()}, Data: []byte("new")},
	})
}

func testRetry(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	c := th.commit(func(c *store.Commit) {
		c.Records = [][]byte{[]byte("once")}
		c.Messages = []store.Message{{ID: "m"}}
		c.Put = []store.Value{{Kind: "k", ID: "v", Data: []byte("1")}}
		c.Fence = fence(2)
	})
	for range 2 {
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatalf("a retry: %v", err)
		}
	}
	th.check()
	expect(t, "records", len(must(s.Records(t.Context(), th.key, store.Cursor{}, 10))(t)), 1)
	expect(t, "messages", len(must(s.Messages(t.Context(), th.key))(t)), 1)
}

func testOldID(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	c := th.commit(nil)
	th.commit(nil)
	wantError(t, s.Commit(t.Context(), c), store.ErrConflict)
	th.check()
}

// full returns a commit that follows th and does everything at once.
func full(th *thread) *store.Commit {
	c := th.next()
	c.User, c.Process, c.Fence, c.UpdatedAt = "eve", "evil", fence(9), start().Add(time.Hour)
	c.State = []byte("evil")
	c.Records = [][]byte{[]byte("evil")}
	c.Messages = []store.Message{{ID: "evil", Parent: "m"}}
	c.Put = []store.Value{{Kind: "k", ID: "evil"}, {Kind: "k", ID: "v", Data: []byte("evil")}}
	c.Delete = []store.ValueID{{Kind: "k", ID: "v"}}
	c.Clear = []store.Kind{"k"}
	c.Keep = map[store.Kind]int{"k": 0}
	c.InboxSeen = 1
	return c
}

func testRefused(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) {
		c.State = []byte("state")
		c.Records = [][]byte{[]byte("r")}
		c.Messages = []store.Message{{ID: "m", Data: []byte("m")}}
		c.Put = []store.Value{{Kind: "k", ID: "v", Data: []byte("v")}}
	})
	if err := s.Post(t.Context(), th.key, store.InboxItem{ID: "i"}); err != nil {
		t.Fatal(err)
	}
	before := everything(t, s, th.key)
	fenced, conflict, double, orphan := full(th), full(th), full(th), full(th)
	fenced.Expect.Fence = fence(7)
	conflict.Expect.ETag = "other"
	double.Messages = append(double.Messages, store.Message{ID: "m"})
	orphan.Messages = append(orphan.Messages, store.Message{ID: "x", Parent: "unknown"})
	wantError(t, s.Commit(t.Context(), fenced), store.ErrFenced)
	wantError(t, s.Commit(t.Context(), conflict), store.ErrConflict)
	wantError(t, s.Commit(t.Context(), double), store.ErrInvalid)
	wantError(t, s.Commit(t.Context(), orphan), store.ErrInvalid)

	expect(t, "the thread after refused commits", everything(t, s, th.key), before)
	expect(t, "threads of eve", len(must(s.Threads(t.Context(), holdfast.Principal{Tenant: "acme", User: "eve"},
		time.Time{}, 10))(t)), 0)
	expect(t, "owned", len(must(s.Owned(t.Context()))(t)), 0)
	th.commit(func(c *store.Commit) { c.Records = [][]byte{[]byte("good")} })
	th.check()
}

// everything returns what can be read of a thread, with its values of the kind k.
func everything(t *testing.T, s store.Store, k store.ThreadKey) []any {
	t.Helper()
	head := must(s.Head(t.Context(), k))(t)
	return []any{
		text(*head), head.State,
		must(s.Records(t.Context(), k, store.Cursor{}, 1000))(t),
		must(s.Messages(t.Context(), k))(t),
		must(s.Values(t.Context(), k, "k", "", 0))(t),
		must(s.Inbox(t.Context(), k))(t),
	}
}

func testInvalid(t *testing.T, s store.Store) {
	long := strings.Repeat("x", store.MaxName+1)
	th := create(t, s, key("t"), nil)
	for name, change := range map[string]func(c *store.Commit){
		"no id":            func(c *store.Commit) { c.ID = "" },
		"no thread":        func(c *store.Commit) { c.Key.Thread = "" },
		"no message id":    func(c *store.Commit) { c.Messages = []store.Message{{}} },
		"a long thread":    func(c *store.Commit) { c.Key.Thread = long },
		"a long id":        func(c *store.Commit) { c.ID = long },
		"a long value id":  func(c *store.Commit) { c.Put = []store.Value{{Kind: "k", ID: long}} },
		"a long message":   func(c *store.Commit) { c.Messages = []store.Message{{ID: long}} },
		"the same message": func(c *store.Commit) { c.Messages = []store.Message{{ID: "m"}, {ID: "m"}} },
	} {
		c := th.next()
		change(c)
		if err := s.Commit(t.Context(), c); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: error is %v, want ErrInvalid", name, err)
		}
	}
	wantError(t, s.Post(t.Context(), th.key, store.InboxItem{ID: long}), store.ErrInvalid)
	th.check()
}

func testCancelled(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, s.Commit(ctx, th.next()), context.Canceled)
	wantError(t, s.Post(ctx, th.key, store.InboxItem{ID: "i"}), context.Canceled)
	_, err := s.Head(ctx, th.key)
	wantError(t, err, context.Canceled)
	th.check()
	expect(t, "inbox", len(must(s.Inbox(t.Context(), th.key))(t)), 0)
}

func testUpdatedAt(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	for _, at := range []time.Time{
		start().Add(time.Nanosecond), start().Add(-48 * time.Hour), {}, time.Unix(0, 0), time.Unix(-61, 5), time.Now(),
		start().In(time.FixedZone("far", 9*3600)),
	} {
		th.commit(func(c *store.Commit) { c.UpdatedAt = at })
		th.check()
	}
}

func testParentOnce(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	c := th.next()
	c.Parent = "p"
	wantError(t, s.Commit(t.Context(), c), store.ErrInvalid)
	own := &store.Commit{Key: key("own"), ID: newID(), Expect: store.Position{Next: 1}, Parent: "own"}
	wantError(t, s.Commit(t.Context(), own), store.ErrInvalid)
}

func testConflictError(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	stale := th.next()
	th.commit(nil)
	var conflict *store.ConflictError
	if err := s.Commit(t.Context(), stale); !errors.As(err, &conflict) || !errors.Is(err, store.ErrConflict) {
		t.Fatalf("the error is %v, want a ConflictError that is ErrConflict", err)
	}
	if conflict.Expected != stale.Expect || conflict.Actual != th.head.Position() {
		t.Errorf("the conflict is %+v; the commit expected %+v, there is %+v", conflict, stale.Expect,
			th.head.Position())
	}
	stale.Expect.Fence = fence(9)
	if err := s.Commit(t.Context(), stale); !errors.As(err, &conflict) || !errors.Is(err, store.ErrFenced) {
		t.Errorf("the error is %v, want a ConflictError that is ErrFenced", err)
	}
	th.check()
}
