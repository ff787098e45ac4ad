package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// Commits at the same time: of those that build on the same head exactly one succeeds,
// those to different threads do not disturb each other, and neither do posts.

// race makes all commits at the same time and returns the one that won.
func race(t *testing.T, s store.Store, commits []*store.Commit, allowed ...error) *store.Commit {
	t.Helper()
	var wg sync.WaitGroup
	results := make([]error, len(commits))
	for i, c := range commits {
		wg.Go(func() { results[i] = s.Commit(t.Context(), c) })
	}
	wg.Wait()
	var winner *store.Commit
	for i, err := range results {
		switch {
		case err == nil && winner == nil:
			winner = commits[i]
		case err == nil:
			t.Fatalf("commits %s and %s both won", winner.ID, commits[i].ID)
		default:
			wantOneOf(t, err, allowed)
		}
	}
	if winner == nil {
		t.Fatal("no commit won")
	}
	return winner
}

// wantOneOf checks that the error is one of those allowed.
func wantOneOf(t *testing.T, err error, allowed []error) {
	t.Helper()
	for _, want := range allowed {
		if errors.Is(err, want) {
			return
		}
	}
	t.Errorf("error is %v, want one of %v", err, allowed)
}

// testRace: claims are commits that change the fence, so those that lose are fenced.
func testRace(t *testing.T, s store.Store, claim bool) {
	const rounds, racers = 15, 8
	th := create(t, s, key("t"), nil)
	var want []string
	for range rounds {
		var commits []*store.Commit
		for range racers {
			c := th.next()
			c.Records = [][]byte{[]byte(c.ID)}
			if claim {
				c.Fence = fence(c.Expect.Fence.Epoch + 1)
			}
			commits = append(commits, c)
		}
		allowed := store.ErrConflict
		if claim {
			allowed = store.ErrFenced
		}
		winner := race(t, s, commits, allowed)
		th.head = headAfter(th.head, winner)
		want = append(want, winner.ID)
	}
	th.check()
	var got []string
	for _, r := range must(s.Records(t.Context(), th.key, store.Cursor{}, 1000))(t) {
		got = append(got, string(r.Data))
	}
	expect(t, "records", got, want)
}

func testRaceNew(t *testing.T, s store.Store) {
	for round := range 10 {
		k := key(fmt.Sprint("t", round))
		var commits []*store.Commit
		for range 8 {
			commits = append(commits, &store.Commit{
				Key:       k,
				ID:        newID(),
				Expect:    store.Position{Next: 1},
				User:      "alice",
				Fence:     fence(1),
				UpdatedAt: start(),
			})
		}
		winner := race(t, s, commits, store.ErrConflict)
		sameHead(t, *must(s.Head(t.Context(), k))(t), headAfter(store.Head{Key: k, Next: 1}, winner))
	}
}

func testManyThreads(t *testing.T, s store.Store) {
	const threads, commits = 16, 20
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() {
			th := &thread{
				t:    t,
				s:    s,
				key:  key(fmt.Sprint("t", i)),
				head: store.Head{User: "alice", Next: 1, Fence: store.Fence{}},
			}
			if err := th.grow(commits); err != nil {
				t.Errorf("thread %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	expect(t, "threads", len(must(s.Threads(t.Context(), alice(), time.Time{}, 1000))(t)), threads)
}

// grow commits, and reads what it has written. It returns errors instead of ending the
// test, so that it can run in any goroutine.
func (th *thread) grow(commits int) error {
	for n := range commits {
		c := th.next()
		c.Fence = fence(uint64(n))
		c.Records = [][]byte{fmt.Appendf(nil, "%s %d", th.key, n)}
		c.Put = []store.Value{{Kind: "k", ID: fmt.Sprintf("%04d", n), Data: c.Records[0]}}
		c.Keep = map[store.Kind]int{"k": 5}
		if err := th.s.Commit(th.t.Context(), c); err != nil {
			return err
		}
		th.head = headAfter(th.head, c)
		after := store.Cursor{}
		records, err := th.s.Records(th.t.Context(), th.key, after, commits)
		if err != nil {
			return err
		}
		if len(records) != n+1 || string(records[n].Data) != string(c.Records[0]) {
			return fmt.Errorf("%d records after %d commits", len(records), n+1)
		}
	}
	return nil
}

func testPostsAndCommits(t *testing.T, s store.Store) {
	const posts = 40
	th := create(t, s, key("t"), nil)
	var wg sync.WaitGroup
	var posted atomic.Int32
	for i := range posts {
		wg.Go(func() {
			if err := s.Post(t.Context(), th.key, store.InboxItem{ID: fmt.Sprint(i)}); err != nil {
				t.Errorf("Post: %v", err)
			}
			posted.Add(1)
		})
	}
	seen := map[uint64]bool{}
	for last := false; !last; {
		last = posted.Load() == posts // if so, the next read is the last one
		var newest uint64
		for _, it := range must(s.Inbox(t.Context(), th.key))(t) {
			if seen[it.Number] || it.Number <= newest {
				t.Errorf("item %d came again, or after %d", it.Number, newest)
			}
			seen[it.Number], newest = true, it.Number
		}
		th.commit(func(c *store.Commit) { c.InboxSeen = newest })
	}
	wg.Wait()
	expect(t, "items seen", len(seen), posts)
	th.wantInbox()
}
