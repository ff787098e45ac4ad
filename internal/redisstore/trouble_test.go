package redisstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// Redis in trouble: it answers, but it is full, read-only, unable to save or loading.
// Nothing may be half written then, and the same commit must succeed afterwards.

// troubled is a store in a Redis that gets into trouble.
type troubled struct {
	*testing.T
	redis *redistest.Server
	store *Store
	ended chan error // the result of a command that lasts as long as the trouble
}

// do runs a command, as an operator would.
func (r *troubled) do(args ...any) {
	r.Helper()
	if err := r.store.client.Do(r.Context(), args...).Err(); err != nil {
		r.Fatalf("%v: %v", args, err)
	}
}

// until runs a command until it fails with the wanted error, or succeeds if want is "".
func (r *troubled) until(want string, args ...any) {
	r.Helper()
	wait.For(r.T, func() error {
		err := r.store.client.Do(r.Context(), args...).Err()
		if err == nil && want == "" || err != nil && want != "" && strings.HasPrefix(err.Error(), want) {
			return nil
		}
		return fmt.Errorf("%v has not answered %q, but %w", args, want, err)
	})
}

// TestTrouble brings Redis into all states in which it answers but does not write. A
// commit then fails with an error after which the caller tries again, and writes
// nothing; when the trouble is over, the same commit is written once.
func TestTrouble(t *testing.T) {
	t.Parallel()
	unsaved := t.TempDir()
	for want, each := range map[string]struct {
		args       []string
		begin, end func(r *troubled)
		unreadable bool
	}{
		"OOM": {
			begin: func(r *troubled) { r.do("CONFIG", "SET", "maxmemory", "1mb") },
			end:   func(r *troubled) { r.do("CONFIG", "SET", "maxmemory", "0") },
		},
		"READONLY": { // a replica whose master is gone, as after a failover
			begin: func(r *troubled) { r.do("REPLICAOF", "127.0.0.1", "1") },
			end:   func(r *troubled) { r.do("REPLICAOF", "NO", "ONE") },
		},
		"MISCONF": { // a folder is where the file should be
			args: []string{"--dir", unsaved, "--save", "3600 1"},
			begin: func(r *troubled) {
				if err := os.MkdirAll(filepath.Join(unsaved, "dump.rdb", "x"), 0o700); err != nil {
					r.Fatal(err)
				}
				r.do("BGSAVE")
				r.until("MISCONF", "SET", "probe", "x")
			},
			end: func(r *troubled) {
				if err := os.RemoveAll(filepath.Join(unsaved, "dump.rdb")); err != nil {
					r.Fatal(err)
				}
				r.do("BGSAVE")
				r.until("", "SET", "probe", "x")
			},
		},
		"LOADING": {
			args: []string{"--enable-debug-command", "yes", "--rdbcompression", "no", "--key-load-delay",
				"30000", "--loading-process-events-interval-bytes", "1024"},
			begin:      reload,
			end:        reloaded,
			unreadable: true,
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, each.args...)
			// The client retries as usual, but without long pauses.
			url := server.URL() + "?min_retry_backoff=1ms&max_retry_backoff=2ms"
			r := &troubled{T: t, redis: server, store: openAt(t, url, "hf:"), ended: make(chan error, 1)}
			r.live(want, each.begin, each.end, !each.unreadable)
		})
	}
}

// reload makes Redis load its data again, slowly.
func reload(r *troubled) {
	for i := range 1000 {
		r.do("SET", fmt.Sprint("filler", i), string(make([]byte, 2000)))
	}
	c := redis.NewClient(&redis.Options{Addr: r.redis.Addr, ReadTimeout: time.Minute})
	go func() {
		r.ended <- errors.Join(c.Do(r.Context(), "DEBUG", "RELOAD").Err(), c.Close())
	}()
	r.until("LOADING", "PING")
}

func reloaded(r *troubled) {
	r.do("CONFIG", "SET", "key-load-delay", "0")
	if err := <-r.ended; err != nil {
		r.Error(err)
	}
}

// live commits before, during and after the trouble.
func (r *troubled) live(want string, begin, end func(*troubled), readable bool) {
	for _, thread := range []string{"appended", "changed"} {
		advance(r.T, r.store, aThread(thread), func(c *store.Commit) {
			c.Messages = []store.Message{{ID: "m0", Data: []byte("m")}}
			c.Put = []store.Value{
				{Kind: store.KindCheckpoint, ID: "c0", Data: []byte("v")},
				{Kind: store.KindIntent, ID: "i0", Data: []byte("v")},
			}
		})
	}
	commits := r.commits()
	before := map[string]store.Position{}
	for _, c := range commits {
		before[c.Key.Thread] = c.Expect
	}
	entry := store.Entry{Account: "a", Amount: 5}
	reserve(r.T, r.store, "held", entry)
	begin(r)
	if err := r.store.CanCommit(r.Context()); !errors.Is(err, store.ErrRefused) {
		r.Errorf("in trouble: whether a commit would be accepted: %v, want ErrRefused", err)
	}
	for range 2 {
		for _, c := range commits {
			r.refused(want, r.store.Commit(r.Context(), c))
			if readable {
				r.at(c.Key, before[c.Key.Thread])
			}
		}
		r.refused(want, r.store.Post(r.Context(), aThread("appended"), store.InboxItem{ID: "i", Data: []byte("x")}))
		r.refused(want, r.store.Reserve(r.Context(), reservation("new", entry)))
		r.refused(want, r.store.Settle(r.Context(), "acme", "held", nil))
	}
	end(r)
	if err := r.store.CanCommit(r.Context()); err != nil {
		r.Errorf("after the trouble: %v", err)
	}
	if used, err := r.store.Used(r.Context(), "acme", []string{"a"}); err != nil || used[0] != 5 {
		r.Errorf("after the trouble %d, %v is used, want 5", used, err)
	}
	for _, c := range commits {
		r.at(c.Key, before[c.Key.Thread])
		for range 2 { // the second one is the retry of a caller that did not get the reply
			if err := r.store.Commit(r.Context(), c); err != nil {
				r.Errorf("%s: the retry: %v", c.Key, err)
			}
		}
		r.at(c.Key, store.Position{Fence: c.Fence, Next: c.Expect.Next + 1, ETag: c.ID})
	}
}

// commits returns the first commit of a thread, one that only appends, and one that
// changes everything, removals first.
func (r *troubled) commits() []*store.Commit {
	r.Helper()
	commits := make([]*store.Commit, 3)
	for i, thread := range []string{"new", "appended", "changed"} {
		key := aThread(thread)
		c := &store.Commit{
			Key:     key,
			ID:      "trouble",
			Expect:  store.Position{Next: 1},
			User:    "alice",
			Process: "p1",
			Fence: store.Fence{
				Epoch: 1,
				Nonce: "0123456789abcdef",
			},
			UpdatedAt: time.Now(),
			Records:   [][]byte{[]byte(`{"type":"Y"}`)},
		}
		if head, err := r.store.Head(r.Context(), key); err == nil {
			c.Expect = head.Position()
		} else if !errors.Is(err, store.ErrNotFound) {
			r.Fatal(err)
		}
		commits[i] = c
	}
	commits[0].Messages = []store.Message{{ID: "m1", Data: []byte("m")}}
	commits[0].State, commits[0].Parent = []byte("s"), "appended"
	all := commits[2]
	all.Messages, all.State = []store.Message{{ID: "m1", Data: []byte("m")}}, []byte("s")
	all.Forget, all.Clear, all.Trim = []string{"m0"}, []store.Kind{store.KindIntent}, 1
	all.Delete = []store.ValueID{{Kind: store.KindCheckpoint, ID: "c0"}}
	all.Put = []store.Value{{Kind: store.KindCheckpoint, ID: "c1", Data: []byte("v")}}
	return commits
}

// refused checks that the error is one after which its caller tries again, and that it
// contains what Redis said, once.
func (r *troubled) refused(want string, err error) {
	r.Helper()
	for _, final := range []error{store.ErrFenced, store.ErrConflict, store.ErrInvalid, store.ErrNotFound,
		store.ErrVersionTooNew} {
		if err == nil || errors.Is(err, final) {
			r.Fatalf("in trouble: %v, want an error of Redis", err)
		}
	}
	var cause redis.Error
	if !errors.As(err, &cause) || !strings.HasPrefix(cause.Error(), want) ||
		!strings.Contains(err.Error(), "redis: "+want) {
		r.Errorf("in trouble: %v, want what Redis said, %s", err, want)
	}
	if !errors.Is(err, store.ErrRefused) {
		r.Errorf("in trouble: %v, want ErrRefused", err)
	}
	if strings.Count(err.Error(), want+" ") != 1 {
		r.Errorf("in trouble: %q, want what Redis said once", err)
	}
}

// at checks the thread's position, and that its log agrees with its head.
func (r *troubled) at(key store.ThreadKey, want store.Position) {
	r.Helper()
	head, err := r.store.Head(r.Context(), key)
	if want.Next == 1 {
		if !errors.Is(err, store.ErrNotFound) {
			r.Errorf("%s: %+v, %v, want none", key, head, err)
		}
		return
	}
	if err != nil || head.Position() != want {
		r.Errorf("%s is at %+v, %v, want %+v", key, head, err, want)
		return
	}
	records, err := r.store.Records(r.Context(), key, store.Cursor{}, 100)
	messages, err2 := r.store.Messages(r.Context(), key)
	last := want.Next - 1
	if err := errors.Join(err, err2); err != nil || len(records) == 0 || records[len(records)-1].Number != last ||
		len(messages) != 1 {
		r.Errorf("%s: %d records, %d messages, %v, want records up to %d and 1 message", key, len(records),
			len(messages), err, last)
	}
}
