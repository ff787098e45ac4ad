package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-agents/holdfast/store"
)

// places is where somebody who looks into Redis finds the ids of a thread's checkpoints.
type places struct {
	newest []string // in the fields x0, x1 and so on of hf:{thread}:t
	own    []string // the fields of hf:{thread}:v:checkpoint
	listed []string // the members of hf:{thread}:h
}

// lookAt reads the keys as redis-cli would: TYPE, HGET, HKEYS, ZRANGE.
func lookAt(t *testing.T, redis *miniredis.Miniredis, s *Store, key store.ThreadKey) (p places) {
	t.Helper()
	tag := tag(key)
	number, _, _ := strings.Cut(redis.HGet(s.keys.thread(tag), "x"), ":")
	n, _ := strconv.Atoi(number)
	for i := range n {
		slot := redis.HGet(s.keys.thread(tag), fmt.Sprint("x", i))
		p.newest = append(p.newest, slot[1:1+slot[0]])
	}
	if own := s.keys.values(tag, store.KindCheckpoint); redis.Exists(own) {
		if kind := redis.Type(own); kind != "hash" {
			t.Errorf("the checkpoints are in a %s", kind)
		}
		p.own, _ = redis.HKeys(own)
		slices.Sort(p.own)
	}
	if history := s.keys.history(tag); redis.Exists(history) {
		if kind := redis.Type(history); kind != "zset" {
			t.Errorf("the history is a %s", kind)
		}
		p.listed, _ = redis.ZMembers(history)
		slices.Sort(p.listed)
	}
	return p
}

// TestWhereCheckpointsAre: each checkpoint of a thread is either in the fields x0 to x15 of the
// thread's hash, which has the newest, or in the hash of checkpoints and in the sorted set; also
// after retention and pruning. docs/operations.md says so.
func TestWhereCheckpointsAre(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t)
	s := openAt(t, "redis://"+redis.Addr(), "hf:")
	id := func(n int) string { return fmt.Sprintf("%08d", n) }
	put := func(key store.ThreadKey, n, keep int) {
		advance(t, s, key, func(c *store.Commit) {
			c.Put = []store.Value{{Kind: store.KindCheckpoint, ID: id(n)}}
			if keep > 0 {
				c.Keep = map[store.Kind]int{store.KindCheckpoint: keep}
			}
		})
	}
	check := func(key store.ThreadKey, when string, newest, moved []string) {
		t.Helper()
		p := lookAt(t, redis, s, key)
		if !slices.Equal(p.newest, newest) || !slices.Equal(p.own, moved) || !slices.Equal(p.listed, moved) {
			t.Errorf("%s: in the thread's hash are %v, in their own %v, listed %v; want %v and twice %v", when,
				p.newest, p.own, p.listed, newest, moved)
		}
	}
	ids := func(from, to int) (all []string) {
		for n := from; n < to; n++ {
			all = append(all, id(n))
		}
		return all
	}
	key := aThread("grows")
	for n := range 3*maxRecent + 1 {
		put(key, n, 100)
		moved := n / maxRecent * maxRecent
		check(key, fmt.Sprintf("with %d checkpoints", n+1), ids(moved, n+1), ids(0, moved))
	}
	advance(t, s, key, func(c *store.Commit) { // pruned
		c.Delete = []store.ValueID{
			{Kind: store.KindCheckpoint, ID: id(0)},
			{Kind: store.KindCheckpoint, ID: id(3*maxRecent - 1)},
		}
	})
	check(key, "pruned", nil, append(ids(1, 3*maxRecent-1), id(3*maxRecent)))
	put(key, 3*maxRecent+1, 5)
	check(key, "with fewer to keep", ids(3*maxRecent+1, 3*maxRecent+2), append(ids(1, 3*maxRecent-1), id(3*maxRecent)))
	if left, err := s.Values(t.Context(), key, store.KindCheckpoint, "", 0); err != nil || len(left) != 5 {
		t.Errorf("%d of 5 are read, %v", len(left), err)
	}
	latest := aThread("latest")
	for n := range 3 {
		put(latest, n, 1)
	}
	if left, err := s.Values(t.Context(), latest, store.KindCheckpoint, "", 0); err != nil || len(left) != 1 ||
		left[0].ID != id(2) {
		t.Errorf("of the newest one, %d are read, %v", len(left), err)
	}
	for _, key := range []store.ThreadKey{key, latest} {
		head, err := s.Head(t.Context(), key)
		if err == nil {
			err = s.Delete(t.Context(), key, head.Position())
		}
		if err != nil {
			t.Fatal(err)
		}
		check(key, "deleted", nil, nil)
	}
}
