package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// TestDamage: a bit that flips in what Redis holds of a thread is never taken for
// content.
func TestDamage(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	key := aThread("t")
	large := strings.Repeat("a large value ", 200)
	err := s.Commit(t.Context(), &store.Commit{
		Key: key, ID: "c1", Expect: store.Position{Next: 1}, User: "alice", Process: "p1", UpdatedAt: time.Unix(1_800_000_000, 5),
		Fence: store.Fence{Epoch: 1, Nonce: "abcdefgh"}, Records: [][]byte{[]byte("one"), []byte("two")}, State: []byte("state"),
		Messages: []store.Message{{ID: "m1", Data: []byte("hello")}, {ID: "m2", Parent: "m1", Data: []byte(large)}},
		Put:      []store.Value{{Kind: store.KindRun, ID: "r1", Data: []byte("run")}, {Kind: store.KindCheckpoint, ID: "1", Data: []byte("checkpoint")}},
	})
	if err == nil {
		err = s.Post(t.Context(), key, store.InboxItem{ID: "i1", Data: []byte("item")})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := readAll(t.Context(), s, key); err != nil {
		t.Fatal(err)
	}
	tag := tag(key)
	for _, place := range []struct{ hash, field string }{
		{s.keys.thread(tag), "h"}, {s.keys.thread(tag), "s"}, {s.keys.thread(tag), "m:m1"}, {s.keys.thread(tag), "m:m2"},
		{s.keys.values(tag, store.KindRun), "r1"}, {s.keys.values(tag, store.KindCheckpoint), "1"}, {s.keys.inbox(tag), "i1"},
	} {
		whole, err := s.client.HGet(t.Context(), place.hash, place.field).Result()
		if err != nil {
			t.Fatal(err)
		}
		flips(t, s, key, whole, place.field, func(damaged string) error {
			return s.client.HSet(t.Context(), place.hash, place.field, damaged).Err()
		})
	}
	log, err := s.client.XRange(t.Context(), s.keys.log(tag), "-", "+").Result()
	if err != nil || len(log) != 1 {
		t.Fatalf("%d entries, %v", len(log), err)
	}
	flips(t, s, key, fmt.Sprint(log[0].Values[""]), "the log", func(damaged string) error {
		return errors.Join(s.client.Del(t.Context(), s.keys.log(tag)).Err(), s.client.Do(t.Context(), "XADD", s.keys.log(tag), log[0].ID, "", damaged).Err())
	})
	if err := readAll(t.Context(), s, key); err != nil {
		t.Fatal(err)
	}
}

// flips writes the value with each of its bits flipped, and then as it was. The number
// that messages and inbox items begin with is their place, and no content.
func flips(t *testing.T, s *Store, key store.ThreadKey, whole, name string, write func(string) error) {
	t.Helper()
	from := 0
	if number, _, found := strings.Cut(whole, ":"); found && (strings.HasPrefix(name, "m:") || name == "i1") {
		from = len(number) + 1
	}
	for bit := 8 * from; bit < 8*len(whole); bit++ {
		b := []byte(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if err := write(string(b)); err != nil {
			t.Fatal(err)
		}
		if err := readAll(t.Context(), s, key); !errors.Is(err, store.ErrUnreadable) {
			t.Errorf("%s, bit %d: %v, want ErrUnreadable", name, bit, err)
		}
	}
	if err := write(whole); err != nil {
		t.Fatal(err)
	}
}

// readAll reads everything of a thread.
func readAll(ctx context.Context, s *Store, key store.ThreadKey) error {
	_, err1 := s.Head(ctx, key)
	_, err2 := s.Messages(ctx, key)
	_, err3 := s.Records(ctx, key, store.Cursor{}, 10)
	_, err4 := s.Value(ctx, key, store.KindRun, "r1")
	_, err5 := s.Values(ctx, key, store.KindCheckpoint, "", 0)
	_, err6 := s.Inbox(ctx, key)
	return errors.Join(err1, err2, err3, err4, err5, err6)
}
