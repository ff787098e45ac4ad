package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/agenttest/storetest"
	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// openFailover opens a store of which one replica must have each write.
func openFailover(t *testing.T, url, prefix string) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, Options{Prefix: prefix, Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestFailover has what needs a primary and a replica, because starting them takes a while.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary, replicas := redistest.StartReplicas(t, 1)
	if rareSuite(t, 0) {
		t.Run("Suite", func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store { return openFailover(t, primary.URL(), newPrefix()) },
				storetest.Options{})
		})
	}
	t.Run("Level", func(t *testing.T) {
		d, err := openFailover(t, primary.URL(), newPrefix()).Durability(t.Context())
		if err != nil || d.Level != store.LevelFailover ||
			strings.Contains(strings.Join(d.Notes, "\n"), "a failover to") {
			t.Errorf("%+v, %v", d, err)
		}
		extra := redistest.Start(t)
		extra.Follow(t, primary)
		extra.FollowNow(primary)
		primary.AwaitReplicas(t, 2)
		d, err = openFailover(t, primary.URL(), newPrefix()).Durability(t.Context())
		if err != nil || d.Level != store.LevelFailover ||
			!strings.Contains(strings.Join(d.Notes, "\n"), "use --durability=failover:2") {
			t.Errorf("with one replica more: %+v, %v", d, err)
		}
		extra.Command(t, "replicaof", "no", "one")
		redistest.Await(t, func() error {
			if err := primary.HasReplicas(2); err == nil {
				return errors.New("the other replica is still there")
			}
			return nil
		})
	})
	t.Run("Stalled", func(t *testing.T) { testStalled(t, primary.URL(), replicas[0]) })
	t.Run("Forgotten", func(t *testing.T) {
		s := openFailover(t, primary.URL(), newPrefix())
		advance(t, s, aThread("a"), nil)
		primary.Command(t, "script", "flush", "sync")
		advance(t, s, aThread("a"), nil)
		primary.Command(t, "script", "flush", "sync")
		if err := s.Post(t.Context(), aThread("a"), store.InboxItem{ID: "i"}); err != nil {
			t.Error(err)
		}
	})
	t.Run("Refused", func(t *testing.T) {
		primary.Command(t, "acl", "setuser", "app", "on", ">pw", "~*", "&*", "+@all", "-wait")
		_, err := Open(t.Context(), "redis://app:pw@"+primary.Addr, Options{Replicas: 1})
		if err == nil || !strings.Contains(err.Error(), "+wait") || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("without WAIT: %v", err)
		}
		_, err = Open(t.Context(), primary.URL(), Options{Replicas: 2})
		if err == nil || !strings.Contains(err.Error(), "only 1 of 2 replicas") ||
			!strings.Contains(err.Error(), "failover:N") {
			t.Errorf("with a replica too few: %v", err)
		}
	})
}

// testStalled: what the replica does not have is neither acknowledged nor shown, however often
// it is tried; then it is, as one commit.
func testStalled(t *testing.T, url string, replica *redistest.Server) {
	ctx, key, prefix := t.Context(), aThread("a"), newPrefix()
	owner, other := openFailover(t, url, prefix), openFailover(t, url, prefix)
	advance(t, owner, key, nil)
	head, err := owner.Head(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := other.Records(ctx, key, store.Cursor{}, 10)
	if err != nil || len(seen) != 1 {
		t.Fatalf("%d records, %v", len(seen), err)
	}
	replica.Suspend(t)
	owner.replicas.within, other.replicas.within = 50*time.Millisecond, 50*time.Millisecond
	next := &store.Commit{
		Key:       key,
		ID:        "next",
		Expect:    head.Position(),
		User:      "alice",
		Fence:     head.Fence,
		UpdatedAt: head.UpdatedAt,
		Records:   [][]byte{[]byte("{}")},
	}
	var few connection.UnacknowledgedError
	for range 2 { // the second time it is written already
		if err := owner.Commit(ctx, next); !errors.As(err, &few) {
			t.Fatalf("without a replica: %v", err)
		}
	}
	for what, read := range map[string]func() error{
		"records": func() error { _, err := other.Records(ctx, key, seen[0].Cursor, 10); return err },
		"head":    func() error { _, err := other.Head(ctx, key); return err },
		"values":  func() error { _, err := other.Values(ctx, key, store.KindRun, "", 0); return err },
		"post":    func() error { return other.Post(ctx, key, store.InboxItem{ID: "i"}) },
	} {
		if err := read(); !errors.As(err, &few) {
			t.Errorf("%s: %v, although no replica has it", what, err)
		}
	}
	replica.Resume(t)
	owner.replicas.within, other.replicas.within = ackTimeout, ackTimeout
	if err := owner.Commit(ctx, next); err != nil {
		t.Fatal(err)
	}
	seen, err = other.Records(ctx, key, seen[0].Cursor, 10)
	if err != nil || len(seen) != 1 || seen[0].Number != 2 {
		t.Errorf("afterwards %d records, %v", len(seen), err)
	}
	// Commits known to be acknowledged are shown without the replica.
	replica.Suspend(t)
	defer replica.Resume(t)
	if _, err := other.Records(ctx, key, store.Cursor{}, 10); err != nil {
		t.Errorf("what was acknowledged: %v", err)
	}
	if h, err := owner.Head(ctx, key); err != nil || h.ETag != "next" {
		t.Errorf("the owner reads %v, %v", h, err)
	}
}

// TestFailoverOfPrimaries: a primary dies and its replica takes its place, with Sentinel and in
// a cluster, while a writer writes on: nothing that was acknowledged is missing, the stores that
// were open go on, and a cursor stays valid.
func TestFailoverOfPrimaries(t *testing.T) {
	t.Parallel()
	t.Run("Sentinel", func(t *testing.T) {
		t.Parallel()
		primary, replicas := redistest.StartReplicas(t, 2)
		sentinels := redistest.StartSentinels(t, primary, 300)
		sentinels.AwaitReady(t, 2)
		testPrimaryDies(t, sentinels.URL, primary, replicas)
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		nodes, replicas := redistest.StartClusterOf(t, 3)
		url := "redis+cluster://" + nodes[0].Addr + "?addr=" + nodes[1].Addr
		if rareSuite(t, 1) {
			t.Run("Suite", func(t *testing.T) {
				storetest.Run(t, func(t *testing.T) store.Store { return openFailover(t, url, newPrefix()) },
					storetest.Options{})
			})
		}
		s := openFailover(t, url, "hf:")
		node, err := s.replicas.nodeOf(t.Context(), s.keys.thread(tag(aThread("a"))))
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range nodes {
			if n.Addr == node.(*redis.Client).Options().Addr {
				testPrimaryDies(t, url, n, replicas[i:i+1])
			}
		}
	})
}

// testPrimaryDies kills the primary that has thread a. When one of its replicas has taken its
// place, it comes back, as a replica.
func testPrimaryDies(t *testing.T, url string, primary *redistest.Server, replicas []*redistest.Server) {
	ctx, key := t.Context(), aThread("a")
	owner, other := openFailover(t, url, "hf:"), openFailover(t, url, "hf:")
	at, fence := store.Position{Next: 1}, store.Fence{Epoch: 1, Nonce: "0123456789abcdef"}
	write := func() { // until it is acknowledged, as a run does
		c := &store.Commit{
			Key:       key,
			ID:        fmt.Sprint("c", at.Next),
			Expect:    at,
			User:      "alice",
			Fence:     fence,
			Process:   "p",
			UpdatedAt: time.Now(),
			Records:   [][]byte{[]byte("{}")},
		}
		redistest.Await(t, func() error { return owner.Commit(ctx, c) })
		at = store.Position{Fence: fence, Next: at.Next + 1, ETag: c.ID}
	}
	for range 20 {
		write()
	}
	primary.Kill(t)
	redistest.Await(t, func() error {
		for _, r := range replicas {
			if r.Role() == "master" {
				primary.Follow(t, r)
				return nil
			}
		}
		return errors.New("no replica has taken the primary's place")
	})
	primary.Run(t)
	for range 20 {
		write()
	}
	redistest.Await(t, func() error { return other.Announce(ctx, "q", time.Minute) })
	var seen []store.Record
	redistest.Await(t, func() (err error) {
		seen, err = other.Records(ctx, key, store.Cursor{Number: 5, Tag: fence.Tag()}, 100)
		return err
	})
	if len(seen) != 35 || seen[34].Number != 40 {
		t.Errorf("of 40 records that were acknowledged, %d follow the fifth", len(seen))
	}
	if owned, err := other.Owned(ctx); err != nil || len(owned) != 1 || owned[0].Process != "p" {
		t.Errorf("the owner is found as %v, %v", owned, err)
	}
}
