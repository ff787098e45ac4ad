package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
)

// TestForgottenScripts: Redis forgets its scripts when it restarts, or when
// somebody flushes them.
func TestForgottenScripts(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	for range 3 {
		if err := s.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		advance(t, s, aThread("t"), nil)
		if err := s.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.Post(t.Context(), aThread("t"), store.InboxItem{ID: "i"}); err != nil {
			t.Error(err)
		}
	}
}

// executed counts the commands that Redis executes during f, including those in
// scripts. Those that a new connection begins with do not count, because the pool makes one when it likes.
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
		if _, err := fmt.Sscanf(value, "%d", &n); ok && err == nil && !slices.Contains(notCounted, name) {
			counts[name] = n
		}
	}
	return counts
}

// notCounted are the commands that prepare a count or a connection.
var notCounted = []string{"config|resetstat", "hello", "auth", "select", "client|setname", "client|setinfo"}

// TestIterationCost: the commit of an iteration with one tool call takes at most four commands,
// including the script itself, however long the thread is; and every 16th one six more, which
// move checkpoints.
func TestIterationCost(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	key := aThread("t")
	iteration := func(n int) func(c *store.Commit) {
		return func(c *store.Commit) {
			c.State = []byte("state")
			c.Messages = []store.Message{
				{ID: fmt.Sprint("tool", n), Parent: fmt.Sprint("answer", n-1)},
				{ID: fmt.Sprint("answer", n), Parent: fmt.Sprint("tool", n)},
			}
			if n == 0 {
				c.Messages = c.Messages[1:]
				c.Messages[0].Parent = ""
			}
			c.Clear = []store.Kind{store.KindPending, store.KindIntent}
			c.Put = []store.Value{
				{Kind: store.KindCheckpoint, ID: fmt.Sprintf("%08d", n)},
				{Kind: store.KindIntent, ID: fmt.Sprint("call", n)},
			}
			c.Keep = map[store.Kind]int{store.KindCheckpoint: 1000}
		}
	}
	for n := range 200 {
		var err error
		counts := executed(t, s, func() { err = tryAdvance(t.Context(), s, key, iteration(n)) })
		if err != nil {
			t.Fatal(err)
		}
		total := total(counts) - 1 // without the read of the head, which is the test's
		if n > 0 && total > 4+6*counts["zadd"] {
			t.Fatalf("iteration %d took %d commands: %v", n, total, counts)
		}
	}
}

// TestLongParents: the script reads a message's parent out of its data, whatever its length.
func TestLongParents(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	key := aThread("t")
	parent := ""
	for n, length := range []int{1, 127, 128, 129, 1020, 1023, 1024} {
		id := strings.Repeat(fmt.Sprint(n), length)
		orphan := store.Message{ID: "x", Parent: "x" + parent[min(1, len(parent)):]}
		if err := tryAdvance(t.Context(), s, key, func(c *store.Commit) {
			c.Messages = []store.Message{orphan}
		}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a parent that is not there: %v", err)
		}
		advance(t, s, key, func(c *store.Commit) {
			c.Messages = []store.Message{{ID: id, Parent: parent, Data: []byte("data")}}
		})
		parent = id
	}
	stored, err := s.Messages(t.Context(), key)
	if err != nil || len(stored) != 7 || stored[6].Parent != stored[5].ID || len(stored[6].Parent) != 1023 {
		t.Errorf("%d messages are stored: %v", len(stored), err)
	}
}

func TestTooNew(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	key := aThread("t")
	advance(t, s, key, nil)
	h, err := s.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.client.HSet(t.Context(), s.keys.thread(tag(key)), fieldLayout, layout+1).Err(); err != nil {
		t.Fatal(err)
	}
	_, headErr := s.Head(t.Context(), key)
	c := &store.Commit{Key: key, ID: "new", Expect: h.Position(), Fence: h.Fence, UpdatedAt: time.Now()}
	for what, err := range map[string]error{
		"Head": headErr, "Commit": s.Commit(t.Context(), c), "Post": s.Post(t.Context(), key, store.InboxItem{ID: "i"}),
	} {
		if !errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("%s: %v, want ErrVersionTooNew", what, err)
		}
	}
	if etag := s.client.HGet(t.Context(), s.keys.thread(tag(key)), "h").Val(); !strings.Contains(etag, h.ETag) {
		t.Errorf("a thread that is too new was written to: %s", etag)
	}
}

// TestManyMessagesTakeNoPhrases: a commit of more messages than one conversation adds at a time
// does not spend the time that phrases take on each of them.
func TestManyMessagesTakeNoPhrases(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	text := []byte(`{"role":"user","content":"`)
	for n := range 100 { // letters that are unlike phrases
		text = strconv.AppendInt(text, int64(n)*7_654_321, 36)
	}
	codecs := func(n int) map[byte]bool {
		c := &store.Commit{Key: aThread("t"), ID: "c"}
		for i := range n {
			c.Messages = append(c.Messages, store.Message{ID: fmt.Sprint("m", i), Data: text})
		}
		seen, args := map[byte]bool{}, s.calls.commit(tag(c.Key), c, nil).args[3:]
		for i := range n {
			seen[args[2*i+1].([]byte)[len(appendName(nil, ""))]] = true
		}
		return seen
	}
	few, many := codecs(manyMessages), codecs(manyMessages+1)
	if len(few) != 1 || len(many) != 1 || maps.Equal(few, many) {
		t.Errorf("few messages have the codecs %v, many have %v", few, many)
	}
}

// TestAppendsTogether: the commits of several threads that only append are one call, and one
// that fails leaves the others as they are.
func TestAppendsTogether(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	const all, fenced, damaged = 6, 2, 4
	var batch []*request
	commits := make([]*store.Commit, all)
	for n := range all {
		key := aThread(fmt.Sprint("t", n))
		advance(t, s, key, nil)
		head, err := s.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		commits[n] = &store.Commit{
			Key:     key,
			Expect:  head.Position(),
			ID:      fmt.Sprint("second", n),
			User:    head.User,
			Fence:   head.Fence,
			Process: head.Process,
			Records: [][]byte{[]byte("a word")},
		}
		batch = append(batch, &request{do: s.calls.append(tag(key), commits[n]), done: make(chan result, 1)})
	}
	advance(t, s, aThread(fmt.Sprint("t", fenced)), nil)
	s.client.HSet(t.Context(), s.keys.thread(tag(aThread(fmt.Sprint("t", damaged)))), "e", "damaged")
	counts := executed(t, s, func() { s.sender.send(batch) })
	if counts["evalsha"] != 1 || counts["hmget"] != all || counts["hset"] != all-2 {
		t.Errorf("Redis has executed %v", counts)
	}
	for n, r := range batch {
		want := codeOK
		if n == fenced || n == damaged {
			want = codeUnclear
		}
		if got := <-r.done; got.err != nil || got.code != want {
			t.Errorf("commit %d: %+v, want the code %d", n, got, want)
		}
		head, err := s.Head(t.Context(), commits[n].Key)
		if written := err == nil && head.ETag == commits[n].ID; written != (want == codeOK) {
			t.Errorf("thread %d: %+v, %v", n, head, err)
		}
	}
}
