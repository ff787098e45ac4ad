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
	c := &store.Commit{
		Key:       key,
		ID:        "c1",
		Expect:    store.Position{Next: 1},
		User:      "alice",
		Process:   "p1",
		UpdatedAt: time.Unix(1_800_000_000, 5),
		Fence: store.Fence{
			Epoch: 1,
			Nonce: "abcdefgh",
		},
		Records:  [][]byte{[]byte("one"), []byte("two")},
		State:    []byte("state"),
		Messages: []store.Message{{ID: "m1", Data: []byte("hello")}, {ID: "m2", Parent: "m1", Data: []byte(large)}},
		Put: []store.Value{
			{
				Kind: store.KindRun,
				ID:   "r1",
				Data: []byte("run"),
			},
			{Kind: store.KindCheckpoint, ID: "1", Data: []byte("checkpoint")},
			{Kind: store.KindIntent, ID: "i1", Data: []byte("intent")},
		},
	}
	err := s.Commit(t.Context(), c)
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
	type place struct{ hash, field string }
	damage := func(places ...place) {
		for _, place := range places {
			whole, err := s.client.HGet(t.Context(), place.hash, place.field).Result()
			if err != nil {
				t.Fatal(place, err)
			}
			flips(t, s, key, whole, place.field, func(damaged string) error {
				return s.client.HSet(t.Context(), place.hash, place.field, damaged).Err()
			})
		}
	}
	thread := s.keys.thread(tag)
	damage(place{thread, "h"}, place{thread, "s"}, place{thread, "m:m1"}, place{thread, "m:m2"}, place{thread, "x0"},
		place{thread, "n"}, place{thread, "e"}, place{s.keys.values(tag, store.KindRun), "r1"},
		place{s.keys.inbox(tag), "i1"})
	// Another checkpoint with the same id moves the first one, and another entry has both in the
	// stream.
	c.Expect = store.Position{Fence: c.Fence, Next: 3, ETag: c.ID}
	c.ID, c.Messages, c.Put, c.Records = "c2", nil, c.Put[1:2], c.Records[:1]
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	damage(place{s.keys.values(tag, store.KindCheckpoint), "1"})
	log, err := s.client.XRange(t.Context(), s.keys.log(tag), "-", "+").Result()
	if err != nil || len(log) != 1 || len(log[0].Values) != 2 {
		t.Fatalf("%v, %v", log, err)
	}
	for field, value := range log[0].Values {
		flips(t, s, key, fmt.Sprint(value), "the log", func(damaged string) error {
			log[0].Values[field] = damaged
			values := []any{"XADD", s.keys.log(tag), log[0].ID}
			for field, value := range log[0].Values {
				values = append(values, field, value)
			}
			return errors.Join(s.client.Del(t.Context(), s.keys.log(tag)).Err(),
				s.client.Do(t.Context(), values...).Err())
		})
	}
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
	_, err7 := s.Values(ctx, key, store.KindIntent, "", 0)
	return errors.Join(err1, err2, err3, err4, err5, err6, err7)
}

// TestKeysOfAnotherType: a key that all threads share, and that somebody else has written, is
// told by its name, and with what to do.
func TestKeysOfAnotherType(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	terms := store.FormatTerms{Reads: 9}
	for _, c := range []struct {
		key string
		ask map[string]func() error
	}{
		{s.keys.formats(), map[string]func() error{
			"agree":   func() error { _, err := s.AgreeFormat(t.Context(), "p", terms); return err },
			"formats": func() error { _, err := s.Formats(t.Context()); return err },
		}},
		{s.keys.leases(), map[string]func() error{
			"announce": func() error { return s.Announce(t.Context(), "p", time.Minute) },
		}},
	} {
		if err := s.client.Set(t.Context(), c.key, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for name, ask := range c.ask {
			err := ask()
			if !errors.Is(err, store.ErrUnreadable) ||
				!strings.Contains(err.Error(), fmt.Sprintf("%q is a string", c.key)) ||
				!strings.Contains(err.Error(), "delete it") {
				t.Errorf("%s with %s as a string: %v", name, c.key, err)
			}
		}
		if err := s.client.Del(t.Context(), c.key).Err(); err != nil {
			t.Fatal(err)
		}
		for name, ask := range c.ask {
			if err := ask(); err != nil {
				t.Errorf("%s afterwards: %v", name, err)
			}
		}
	}
}
