package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// TestHintsAreMended: a hint that is lost or wrong does not hide or invent a thread,
// and is corrected.
func TestHintsAreMended(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	ctx := t.Context()
	alice := holdfast.Principal{Tenant: "acme", User: "alice"}
	advance(t, s, aThread("real"), func(c *store.Commit) { c.Process = "p" })
	wrong := []redis.Z{{Score: 1, Member: "never"}, {Score: 1, Member: "real"}}
	if err := s.client.ZAdd(ctx, s.keys.active(alice), wrong...).Err(); err != nil {
		t.Fatal(err)
	}
	claims := []redis.Z{{Score: 1, Member: "acme/real"}, {Score: 1, Member: "acme/never"}}
	if err := errors.Join(s.client.ZAdd(ctx, s.keys.owned("q"), claims...).Err(),
		s.client.ZAdd(ctx, s.keys.leases(), redis.Z{Score: 1, Member: "q"}).Err()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		threads, err := s.Threads(ctx, alice, time.Time{}, 10)
		if err != nil || len(threads) != 1 || threads[0].Key != aThread("real") {
			t.Errorf("threads are %v, %v, want the real one", threads, err)
		}
		owned, err := s.Owned(ctx)
		if err != nil || len(owned) != 1 || owned[0] != (store.OwnedThread{Key: aThread("real"), Process: "p"}) {
			t.Errorf("owned are %v, %v, want the real one by p", owned, err)
		}
	}
	scores, err := s.client.ZRangeWithScores(ctx, s.keys.active(alice), 0, -1).Result()
	if err != nil || len(scores) != 1 || int64(scores[0].Score) < minuteOf(time.Now().Add(-time.Hour)) {
		t.Errorf("the hints of alice were not mended: %v, %v", scores, err)
	}
	if left := s.client.ZCard(ctx, s.keys.owned("q")).Val(); left != 0 {
		t.Errorf("%d wrong hints of q were left", left)
	}
	if _, err := s.Owned(ctx); err != nil {
		t.Fatal(err)
	}
	if s.client.ZScore(ctx, s.keys.leases(), "q").Err() == nil {
		t.Error("a process that has left nothing was not forgotten")
	}
}

// TestDeadOwnersLeaveNoHints: who has lost a thread to another process is not looked at in
// every list that is made later. A hint stays while its commit may be on the way.
func TestDeadOwnersLeaveNoHints(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	ctx := t.Context()
	fence := store.Fence{Epoch: 1, Nonce: "0123456789abcdef"}
	own := func(process string) {
		t.Helper()
		advance(t, s, aThread("busy"), func(c *store.Commit) {
			if process != "" {
				fence.Epoch++
			}
			c.Process, c.Fence = process, fence
			if process == "" {
				c.Process = "last"
			}
		})
	}
	hints := func(process string) int64 {
		t.Helper()
		owned, err := s.Owned(ctx)
		if err != nil || len(owned) != 1 || owned[0].Key != aThread("busy") {
			t.Fatalf("owned are %v, %v", owned, err)
		}
		return s.client.ZCard(ctx, s.keys.owned(process)).Val()
	}
	own("dead")
	own("last")
	for range 2 {
		if hints("dead") != 1 {
			t.Error("a hint is gone, and its commit may be on the way: nothing was committed since it was seen first")
		}
	}
	own("") // its commit can only be refused now
	if hints("dead") != 0 {
		t.Error("the hint of one that has lost the thread stays")
	}
	if hints("last") != 1 {
		t.Error("the owner's hint is gone")
	}
	own("dead") // it comes back, and is about to commit
	own("last")
	hints("dead")
	if err := s.client.ZAdd(ctx, s.keys.owned("dead"),
		redis.Z{Score: float64(time.Now().Add(time.Second).UnixMicro()), Member: "acme/busy"}).
		Err(); err != nil {
		t.Fatal(err)
	}
	own("")
	if hints("dead") != 1 {
		t.Error("a hint is gone that was written again after it was seen")
	}
}

// TestMendedPages: hints that are removed while a list is read page by page do not hide the
// threads after them.
func TestMendedPages(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	ctx := t.Context()
	alice := holdfast.Principal{Tenant: "acme", User: "alice"}
	group := store.List{Name: store.ListAsking, Group: "alice"}
	for i := range 30 {
		at := time.Unix(int64(60*i), 0)
		advance(t, s, aThread(fmt.Sprint("real", i)), func(c *store.Commit) {
			c.UpdatedAt, c.Listings = at, []store.Listing{{List: group, At: at}}
		})
		never, tag := fmt.Sprint("never", i), tag(aThread(fmt.Sprint("never", i)))
		first := store.Listing{List: group, At: at.Add(-time.Hour)}
		if err := errors.Join(s.client.ZAdd(ctx, s.keys.active(alice), redis.Z{Score: float64(100 + i), Member: never}).
			Err(), s.client.ZAdd(ctx, s.keys.list(first), listingMember(tag, first)).Err()); err != nil {
			t.Fatal(err)
		}
	}
	threads, err := s.Threads(ctx, alice, time.Time{}, 10)
	if err != nil || len(threads) != 10 || threads[0].Key != aThread("real29") {
		t.Errorf("%d threads, %v, want 10 from the last one on", len(threads), err)
	}
	for range 2 { // the first time their commits may be on the way
		found, err := s.Find(ctx, store.Query{List: group, Limit: 10})
		if err != nil || len(found) != 10 || found[0].Key != aThread("real0") {
			t.Errorf("%d threads in the list, %v, want 10 from the first one on", len(found), err)
		}
		s.clock.Local = func() time.Time { return time.Now().Add(hintAge + time.Minute) }
	}
}
