package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// posts returns what a store hears of posts to a thread.
func posts(t *testing.T, s *Store, key store.ThreadKey) <-chan struct{} {
	t.Helper()
	heard := make(chan struct{}, 100)
	t.Cleanup(s.OnPost(func(k store.ThreadKey) {
		if k == key {
			heard <- struct{}{}
		}
	}))
	return heard
}

// post leaves an item in the inbox of a thread.
func post(t *testing.T, s *Store, key store.ThreadKey, id string) {
	t.Helper()
	if err := s.Post(t.Context(), key, store.InboxItem{ID: id}); err != nil {
		t.Fatal(err)
	}
}

// ownedThread makes a thread that the process owns.
func ownedThread(t *testing.T, s *Store, name, process string) store.ThreadKey {
	t.Helper()
	key := aThread(name)
	advance(t, s, key, func(c *store.Commit) { c.Process = process })
	return key
}

// TestPostsGoToTheOwner: what is posted to a thread is published on the channel of the process that owns
// it, and on the channel of all only if nobody hears that, as with an owner of the version before.
func TestPostsGoToTheOwner(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	for _, database := range []string{"", "/3"} {
		here, owner, earlier := openAt(t, url+database, "hf:"), openAt(t, url+database, "hf:"),
			openAt(t, url+database, "hf:")
		if err := owner.Announce(t.Context(), "owner", time.Hour); err != nil {
			t.Fatal(err)
		}
		own, all := here.keys.ownInbox("owner"), here.keys.inboxChannel()
		wait.Until(t, "the owner to listen", func() bool {
			return here.client.PubSubNumSub(t.Context(), own).Val()[own] == 1
		})
		listener := here.client.Subscribe(t.Context(), own, all)
		t.Cleanup(func() { _ = listener.Close() })
		for range 2 {
			if _, err := listener.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		said := listener.Channel()
		for name, want := range map[string]string{"owner": own, "earlier": all, "": all} {
			key := ownedThread(t, here, "of "+name, name)
			s := owner
			if name != "owner" {
				s = earlier // which listens to all that have no other listener
			}
			heard := posts(t, s, key)
			post(t, here, key, "p")
			wantWake(t, heard, "a post to "+name)
			if m := <-said; m.Channel != want || m.Payload != tag(key) {
				t.Errorf("database %q: a post to a thread of %q is published on %s", database, name, m.Channel)
			}
		}
		// The version before posts on the channel of all.
		key := aThread("of owner")
		heard := posts(t, owner, key)
		if err := here.client.Publish(t.Context(), all, tag(key)).Err(); err != nil {
			t.Fatal(err)
		}
		wantWake(t, heard, "a post of the version before")
		<-said
	}
}

// TestDamagedHeadsArePostedTo: a post to a thread whose head does not say whose it is reaches everybody.
func TestDamagedHeadsArePostedTo(t *testing.T) {
	t.Parallel()
	here := openShared(t)
	there := openAt(t, shared.Server(t).URL(), here.keys.prefix)
	wait.Until(t, "the other one to listen", func() bool {
		all := here.keys.inboxChannel()
		return here.client.PubSubNumSub(t.Context(), all).Val()[all] == 2
	})
	for n, head := range []string{"", "x", "9", "1:", "99:a", "1:a1:b1,2", "1:a1:b1,2;5:x", "1:a1:b1,2;1:x9:y"} {
		key := aThread(fmt.Sprint(n))
		advance(t, here, key, nil)
		if err := here.client.HSet(t.Context(), here.keys.thread(tag(key)), "h", head).Err(); err != nil {
			t.Fatal(err)
		}
		heard := posts(t, there, key)
		post(t, here, key, "p")
		wantWake(t, heard, fmt.Sprintf("a post to a thread with the head %q", head))
	}
}

// counter counts what a cluster publishes on one channel for all nodes, and on any at shards.
type counter struct {
	*testing.T
	client  *redis.ClusterClient
	channel string
	said    <-chan *redis.Message
}

func newCounter(t *testing.T, s *Store, channel string) *counter {
	t.Helper()
	listener := s.client.Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = listener.Close() })
	if _, err := listener.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &counter{t, s.client.(*redis.ClusterClient), channel, listener.Channel()}
}

// each calls f for each node that has slots.
func (c *counter) each(f func(node *redis.Client) error) {
	c.Helper()
	if err := c.client.ForEachMaster(c.Context(), func(_ context.Context, node *redis.Client) error {
		return f(node)
	}); err != nil {
		c.Fatal(err)
	}
}

// atShards returns how often the nodes have published at shards.
func (c *counter) atShards() int {
	c.Helper()
	var all atomic.Int64
	c.each(func(node *redis.Client) error {
		info, err := node.Info(c.Context(), "commandstats").Result()
		for line := range strings.Lines(info) {
			var n int64
			if _, err := fmt.Sscanf(line, "cmdstat_spublish:calls=%d", &n); err == nil {
				all.Add(n)
			}
		}
		return err
	})
	return int(all.Load())
}

// want checks how often the cluster publishes while f runs.
func (c *counter) want(everywhere, atShards int, f func()) {
	c.Helper()
	before := c.atShards()
	f()
	if n := c.atShards() - before; n != atShards {
		c.Errorf("%d commands publish at shards, want %d", n, atShards)
	}
	const end = "the end"
	var nodes atomic.Int64
	c.each(func(node *redis.Client) error {
		nodes.Add(1)
		return node.Publish(c.Context(), c.channel, end).Err()
	})
	n := 0
	for ends := 0; ends < int(nodes.Load()); {
		if m := <-c.said; m.Payload == end {
			ends++
		} else {
			n++
		}
	}
	if n != everywhere {
		c.Errorf("%d messages are published for all nodes, want %d", n, everywhere)
	}
}

// awaitShard waits until the node that has the channel counts a listener.
func awaitShard(t *testing.T, s *Store, channel string) {
	t.Helper()
	wait.Until(t, "a listener of "+channel, func() bool {
		counts, err := s.peers.count(t.Context(), []string{channel})
		return err == nil && counts[channel] == 1
	})
}

// testShards: in a cluster with channels of the shards, nothing is published for all nodes but what
// nobody else would hear.
func testShards(t *testing.T, nodes []*redistest.Server, open func() *Store) {
	here, there := open(), open()
	if err := there.Announce(t.Context(), "there", time.Hour); err != nil {
		t.Fatal(err)
	}
	awaitShard(t, here, here.keys.ownInbox("there"))
	c := newCounter(t, here, here.keys.inboxChannel())
	for name, everywhere := range map[string]int{"there": 0, "earlier": 1} {
		key := ownedThread(t, here, "of "+name, name)
		heard := posts(t, there, key)
		for range 2 { // the first answer may have been lost
			c.want(everywhere, 1, func() { post(t, here, key, "p") })
			wantWake(t, heard, "a post")
		}
	}

	w := newWatched(t, here, there)
	w.await(fieldWatchedAtShard)
	w.advance(0, 1)

	for _, node := range nodes {
		node.Command(t, "client", "kill", "type", "pubsub")
	}
	w.c = newCounter(t, here, w.c.channel)
	w.await(fieldWatchedAtShard)
	w.advance(0, 1)

	move := beginMove(t, here, w.key, nodes)
	move.Rest(t)
	w.advance(1, 1) // nobody listens at the node that has the keys by now
	move.End(t)
	w.await(fieldWatchedAtShard)
	w.advance(0, 1)

	// A process of the version before knows only the ordinary channel, wherever it listens or publishes.
	elder := redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMicro()), Member: "earlier"}
	if err := here.client.ZAdd(t.Context(), here.keys.leases(), elder).Err(); err != nil {
		t.Fatal(err)
	}
	there.peers.heard(newsCame)
	w.await(fieldWatched)
	w.advance(1, 0)
}

// watched is a thread that another store watches.
type watched struct {
	*testing.T
	here *Store
	key  store.ThreadKey
	wake <-chan struct{}
	c    *counter
}

func newWatched(t *testing.T, here, there *Store) *watched {
	t.Helper()
	key := ownedThread(t, here, "watched", "")
	wake, stop := there.Watch(key)
	t.Cleanup(stop)
	return &watched{t, here, key, wake, newCounter(t, here, here.keys.commitsChannel(tag(key)))}
}

// await waits until the thread is asked to publish by a field, and the watcher listens.
func (w *watched) await(field string) {
	w.Helper()
	wait.Until(w, "the field "+field, func() bool {
		return w.here.client.HExists(w.Context(), w.here.keys.thread(tag(w.key)), field).Val()
	})
	awaitShard(w.T, w.here, w.c.channel)
}

// advance makes commits, each of which wakes the watcher, and is published so often.
func (w *watched) advance(everywhere, atShards int) {
	w.Helper()
	for _, change := range []func(*store.Commit){nil, func(c *store.Commit) { c.State = []byte("state") }} {
		drain(w.wake)
		w.c.want(everywhere, atShards, func() { advance(w.T, w.here, w.key, change) })
		wantWake(w.T, w.wake, "a commit")
	}
}

// testNoShards: in a cluster that has no channels of shards, or does not allow them, everything goes over
// the ordinary ones, and posts still go to the owner only.
func testNoShards(t *testing.T, nodes []*redistest.Server, open func() *Store) {
	for _, node := range nodes {
		node.Command(t, "acl", "setuser", "default", "-ssubscribe", "-spublish")
		defer node.Command(t, "acl", "setuser", "default", "+@all")
	}
	here, there := open(), open()
	if err := there.Announce(t.Context(), "there", time.Hour); err != nil {
		t.Fatal(err)
	}
	key := ownedThread(t, here, "of there", "there")
	heard := posts(t, there, key)
	c, own := newCounter(t, here, here.keys.inboxChannel()), here.keys.ownInbox("there")
	wait.Until(t, "the owner to listen", func() bool {
		var n atomic.Int64
		c.each(func(node *redis.Client) error {
			counts, err := node.PubSubNumSub(t.Context(), own).Result()
			n.Add(counts[own])
			return err
		})
		return n.Load() == 1
	})
	c.want(0, 0, func() { post(t, here, key, "p") })
	wantWake(t, heard, "a post")
	elder := redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMicro()), Member: "earlier"}
	if err := here.client.ZAdd(t.Context(), here.keys.leases(), elder).Err(); err != nil {
		t.Fatal(err)
	}
	here.peers.heard(newsCame)
	c.want(1, 0, func() { post(t, here, key, "q") })
	wantWake(t, heard, "a post while a process may listen only to that of all")
	w := newWatched(t, here, there)
	wait.Until(t, "the thread to publish", func() bool {
		return here.client.HExists(t.Context(), here.keys.thread(tag(w.key)), fieldWatched).Val()
	})
	w.advance(1, 0)
}

// testShardFailsOver: an owner listens at the node that has its channel, also once another one has taken its
// place, although that lives on and keeps the connection.
func testShardFailsOver(t *testing.T, nodes, replicas []*redistest.Server, open func() *Store) {
	here, there := open(), open()
	if err := there.Announce(t.Context(), "there", time.Hour); err != nil {
		t.Fatal(err)
	}
	own := here.keys.ownInbox("there")
	awaitShard(t, here, own)
	primary := func() string {
		here.client.(*redis.ClusterClient).ReloadState(t.Context())
		node, err := here.client.(*redis.ClusterClient).MasterForKey(t.Context(), own)
		if err != nil {
			t.Fatal(err)
		}
		return node.Options().Addr
	}
	at := slices.IndexFunc(nodes, func(n *redistest.Server) bool { return n.Addr == primary() })
	replicas[at].Command(t, "cluster", "failover")
	wait.Until(t, "another primary", func() bool { return primary() == replicas[at].Addr })
	wait.Until(t, "the owner to listen there", func() bool {
		there.client.Exists(t.Context(), own) // the servers' commands tell them who has the slot
		counts, err := here.peers.count(t.Context(), []string{own})
		return err == nil && primary() == replicas[at].Addr && counts[own] == 1
	})
	key := ownedThread(t, here, "a", "there")
	heard := posts(t, there, key)
	newCounter(t, here, here.keys.inboxChannel()).want(0, 1, func() { post(t, here, key, "p") })
	wantWake(t, heard, "a post")
}
