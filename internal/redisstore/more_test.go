package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

func aThread(name string) holdfast.ThreadKey {
	return holdfast.ThreadKey{Tenant: "acme", Thread: name}
}

// advance makes a commit that follows the thread's head; change may add to it.
func advance(t *testing.T, s *Store, key holdfast.ThreadKey, change func(c *holdfast.Commit)) {
	t.Helper()
	if err := tryAdvance(t.Context(), s, key, change); err != nil {
		t.Fatal(err)
	}
}

func tryAdvance(ctx context.Context, s *Store, key holdfast.ThreadKey, change func(c *holdfast.Commit)) error {
	h, err := s.Head(ctx, key)
	if errors.Is(err, holdfast.ErrNotFound) {
		h, err = &holdfast.Head{Key: key, Next: 1, Fence: holdfast.Fence{}}, nil
	}
	if err != nil {
		return err
	}
	c := &holdfast.Commit{
		Key: key, ID: fmt.Sprintf("c-%d-%d", h.Next, time.Now().UnixNano()), Expect: h.Position(), User: "alice",
		Fence: holdfast.Fence{Epoch: 1, Nonce: "0123456789abcdef"}, UpdatedAt: time.Now(), Records: [][]byte{[]byte(`{"type":"X"}`)},
	}
	if change != nil {
		change(c)
	}
	return s.Commit(ctx, c)
}

func wantWake(t *testing.T, wake <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s woke nobody", what)
	}
}

// drain takes a wake-up that may be waiting.
func drain(wake <-chan struct{}) {
	select {
	case <-wake:
	default:
	}
}

// TestForgottenScripts: Redis forgets its scripts when it restarts, or when
// somebody flushes them.
func TestForgottenScripts(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	for range 3 {
		if err := s.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		advance(t, s, aThread("t"), nil)
		if err := s.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.Post(t.Context(), aThread("t"), holdfast.InboxItem{ID: "i"}); err != nil {
			t.Error(err)
		}
	}
}

// TestWatchAcrossProcesses: what one store commits wakes the watchers of
// another, also after their connection was cut.
func TestWatchAcrossProcesses(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	here, there := openAt(t, url, "hf:"), openAt(t, url, "hf:")
	key := aThread("t")
	advance(t, here, key, nil)
	records, stop := there.Watch(key)
	defer stop()
	inbox := make(chan struct{}, 100)
	defer there.OnPost(func(holdfast.ThreadKey) { inbox <- struct{}{} })()
	wantWake(t, records, "the subscription") // from now on nothing is missed
	for n := range 3 {
		drain(records)
		advance(t, here, key, nil)
		wantWake(t, records, "a commit")
		drain(inbox)
		if err := here.Post(t.Context(), key, holdfast.InboxItem{ID: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
		wantWake(t, inbox, "a post")
		if err := here.client.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		drain(records)
		wantWake(t, records, "the new subscription")
	}
}

// TestWatchBeforeTheThread: a thread that another process has yet to make.
func TestWatchBeforeTheThread(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	here, there := openAt(t, url, "hf:"), openAt(t, url, "hf:")
	wake, stop := there.Watch(aThread("t"))
	defer stop()
	advance(t, here, aThread("t"), nil)
	wantWake(t, wake, "the first commit")
}

// TestQuietWithoutWatchers: a commit is told only while somebody elsewhere
// watches.
func TestQuietWithoutWatchers(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	s, other := openAt(t, url, "hf:"), openAt(t, url, "hf:")
	advance(t, s, aThread("t"), nil)
	if n := executed(t, s, func() { advance(t, s, aThread("t"), nil) })["publish"]; n != 0 {
		t.Errorf("%d commits were told to nobody", n)
	}
	wake, stop := other.Watch(aThread("t"))
	defer stop()
	for !s.client.HExists(t.Context(), s.keys.thread(tag(aThread("t"))), "w").Val() {
		wantWake(t, wake, "the subscription") // there are two: it begins, and the thread is asked
	}
	if n := executed(t, s, func() { advance(t, s, aThread("t"), nil) })["publish"]; n != 1 {
		t.Errorf("a commit was told %d times, want once", n)
	}
}

// executed counts the commands that Redis executes during f, those inside
// scripts too.
func executed(t *testing.T, s *Store, f func()) map[string]int {
	t.Helper()
	if err := s.client.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	f()
	info, err := s.client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(info) {
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		var n int
		if _, err := fmt.Sscanf(value, "%d", &n); ok && err == nil && name != "config|resetstat" {
			counts[name] = n
		}
	}
	return counts
}

// TestIterationCost: the commit of an iteration with one tool call costs at
// most eight commands, the script itself included, however long the thread.
func TestIterationCost(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	key := aThread("t")
	iteration := func(n int) func(c *holdfast.Commit) {
		return func(c *holdfast.Commit) {
			c.State = []byte("state")
			c.Messages = []holdfast.StoredMessage{{ID: fmt.Sprint("tool", n), Parent: fmt.Sprint("answer", n-1)}, {ID: fmt.Sprint("answer", n), Parent: fmt.Sprint("tool", n)}}
			if n == 0 {
				c.Messages = c.Messages[1:]
				c.Messages[0].Parent = ""
			}
			c.Clear = []holdfast.Kind{holdfast.KindPending, holdfast.KindIntent}
			c.Put = []holdfast.Value{{Kind: holdfast.KindCheckpoint, ID: fmt.Sprintf("%08d", n)}, {Kind: holdfast.KindIntent, ID: fmt.Sprint("call", n)}}
			c.Keep = map[holdfast.Kind]int{holdfast.KindCheckpoint: 1000}
		}
	}
	for n := range 200 {
		var err error
		counts := executed(t, s, func() { err = tryAdvance(t.Context(), s, key, iteration(n)) })
		if err != nil {
			t.Fatal(err)
		}
		total := -1 // the read of the head, which is this test's own
		for _, calls := range counts {
			total += calls
		}
		if n > 0 && counts["zadd"] == 1 && total > 8 {
			t.Fatalf("iteration %d took %d commands: %v", n, total, counts)
		}
	}
}

func TestTooNew(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	key := aThread("t")
	advance(t, s, key, nil)
	h, err := s.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.client.HSet(t.Context(), s.keys.thread(tag(key)), "v", Format+1).Err(); err != nil {
		t.Fatal(err)
	}
	_, headErr := s.Head(t.Context(), key)
	c := &holdfast.Commit{Key: key, ID: "new", Expect: h.Position(), Fence: h.Fence, UpdatedAt: time.Now()}
	for what, err := range map[string]error{
		"Head": headErr, "Commit": s.Commit(t.Context(), c), "Post": s.Post(t.Context(), key, holdfast.InboxItem{ID: "i"}),
	} {
		if !errors.Is(err, holdfast.ErrVersionTooNew) {
			t.Errorf("%s: %v, want ErrVersionTooNew", what, err)
		}
	}
	if etag := s.client.HGet(t.Context(), s.keys.thread(tag(key)), "h").Val(); !strings.Contains(etag, h.ETag) {
		t.Errorf("a thread that is too new was written to: %s", etag)
	}
}

// TestHintsAreMended: hints that are lost or wrong do not hide or invent
// threads for long.
func TestHintsAreMended(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	ctx := t.Context()
	alice := holdfast.Principal{Tenant: "acme", User: "alice"}
	advance(t, s, aThread("real"), func(c *holdfast.Commit) { c.Process = "p" })
	wrong := []redis.Z{{Score: 1, Member: "never"}, {Score: 1, Member: "real"}}
	if err := s.client.ZAdd(ctx, s.keys.active(alice), wrong...).Err(); err != nil {
		t.Fatal(err)
	}
	claims := []redis.Z{{Score: 1, Member: "acme/real"}, {Score: 1, Member: "acme/never"}}
	if err := errors.Join(s.client.ZAdd(ctx, s.keys.owned("q"), claims...).Err(), s.client.ZAdd(ctx, s.keys.processes(), redis.Z{Score: 1, Member: "q"}).Err()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		threads, err := s.Threads(ctx, alice, time.Time{}, 10)
		if err != nil || len(threads) != 1 || threads[0].Key != aThread("real") {
			t.Errorf("threads are %v, %v, want the real one", threads, err)
		}
		owned, err := s.Owned(ctx)
		if err != nil || len(owned) != 1 || owned[0] != (holdfast.OwnedThread{Key: aThread("real"), Process: "p"}) {
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
	if s.client.ZScore(ctx, s.keys.processes(), "q").Err() == nil {
		t.Error("a process that has left nothing was not forgotten")
	}
}

// TestKeysOfAThread: everything about a thread is in one hash slot, under names
// that say so.
func TestKeysOfAThread(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	advance(t, s, aThread("a{b}:c"), func(c *holdfast.Commit) {
		c.Messages = []holdfast.StoredMessage{{ID: "m"}}
		c.Put = []holdfast.Value{{Kind: holdfast.KindCheckpoint, ID: "1"}, {Kind: holdfast.KindBlob, ID: "b"}}
	})
	keys, err := s.client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "hf:{acme/a%7Bb%7D%3Ac}:") && !strings.HasPrefix(key, "hf:active:{") {
			t.Errorf("unexpected key %s", key)
		}
	}
	if got, ok := parseTag(tag(aThread("a{b}:c"))); !ok || got != aThread("a{b}:c") {
		t.Errorf("the thread is named %v", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"http://localhost:6379", "redis://:secret@localhost:port", "redis://:secret@127.0.0.1:1/0?dial_timeout=1s&max_retries=-1",
		"redis://:secret@localhost:6379/x", "redis://:secret@localhost?unknown=1", "redis+sentinel://:secret@localhost:26379",
		"redis+cluster://:secret@localhost:x", "redis://:sec%ret@h",
	} {
		s, err := Open(t.Context(), url, Options{})
		if err == nil {
			t.Errorf("%s was opened", url)
			_ = s.Close()
			continue
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec%ret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
