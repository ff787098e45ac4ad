package redisstore

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// Presence where Redis is more than one server: in a cluster, and with Sentinel.

// TestPresenceOutlivesFailovers: the death of a process is seen as with a single Redis. When
// a primary dies, nobody is taken for dead who lives, and when another one has taken its place,
// deaths are seen again.
func TestPresenceOutlivesFailovers(t *testing.T) {
	t.Parallel()
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		nodes, _ := redistest.StartClusterOf(t, 3)
		a, b := openServers(t, connectTo(t,
			"redis+cluster://"+nodes[0].Addr+"?addr="+nodes[1].Addr+"&addr="+nodes[2].Addr))
		owner := ownerOfPresence(t, a)
		for _, node := range nodes {
			node.AwaitReplicas(t, 1) // or nobody knows afterwards that a owns a thread
		}
		for _, node := range nodes {
			if node.Addr == owner {
				node.Kill(t)
			}
		}
		wantPresence(t, a, b, func(x *server) error { return notThere(ownerOfPresence(t, x), owner) })
	})
	t.Run("a slot that moves", func(t *testing.T) {
		t.Parallel()
		nodes, _ := redistest.StartClusterOf(t, 3)
		a, b := openServers(t, connectTo(t,
			"redis+cluster://"+nodes[0].Addr+"?addr="+nodes[1].Addr+"&addr="+nodes[2].Addr))
		slot, err := b.client.ClusterKeySlot(t.Context(), a.keys.presence("a")).Result()
		if err != nil {
			t.Fatal(err)
		}
		owner := ownerOfPresence(t, a)
		at := slices.IndexFunc(nodes, func(n *redistest.Server) bool { return n.Addr == owner })
		// There is nothing in the slot but subscribers.
		redistest.BeginMove(t, slot, nodes[at], nodes[(at+1)%len(nodes)], nodes).End(t)
		wantPresence(t, a, b, func(x *server) error { return notThere(ownerOfPresence(t, x), owner) })
	})
	for name, fail := range map[string]func(*testing.T, *redistest.Server, *redis.SentinelClient){
		"sentinel": func(t *testing.T, primary *redistest.Server, _ *redis.SentinelClient) { primary.Kill(t) },
		"sentinel, asked to": func(t *testing.T, _ *redistest.Server, c *redis.SentinelClient) {
			if err := c.Failover(t.Context(), "primary").Err(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, _ := redistest.StartReplicas(t, 2)
			s := redistest.StartSentinels(t, primary, 500)
			s.AwaitReady(t, 2)
			a, b := openServers(t, connectTo(t, s.URL))
			o, err := redis.ParseFailoverURL("redis" + s.URL[len("redis+sentinel"):])
			if err != nil {
				t.Fatal(err)
			}
			c := redis.NewSentinelClient(&redis.Options{Addr: o.SentinelAddrs[0]})
			defer c.Close()
			primary.AwaitReplicas(t, 2)
			fail(t, primary, c)
			redistest.Await(t, func() error { return notThere(s.Primary(), primary.Addr) })
			wantPresence(t, a, b, func(x *server) error {
				said, err := x.client.Info(t.Context(), "server").Result()
				if err == nil && strings.Contains(said, "tcp_port:"+primary.Port()+"\r\n") {
					err = errors.New("its commands go to the Redis of before")
				}
				return err
			})
		})
	}
}

// connectTo returns a function that makes clients for the URL.
func connectTo(t *testing.T, url string) func(string) redis.UniversalClient {
	return func(string) redis.UniversalClient {
		redis.SetLogger(connection.Log{Log: slog.New(slog.DiscardHandler)})
		client, err := connection.To(url, "")
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
}

// notThere returns an error if something is where it was before, or nobody knows where it is.
func notThere(now, before string) error {
	if now == "" || now == before {
		return fmt.Errorf("it is at %q, before it was at %q", now, before)
	}
	return nil
}

// ownerOfPresence returns the node that counts subscribers.
func ownerOfPresence(t *testing.T, x *server) string {
	t.Helper()
	cluster, ok := x.client.(*redis.ClusterClient)
	if !ok {
		t.Fatal("this is no cluster")
	}
	cluster.ReloadState(t.Context())
	node, err := cluster.MasterForKey(t.Context(), x.keys.presence("a"))
	if err != nil {
		return ""
	}
	return node.Options().Addr
}

// wantPresence waits until both have left the Redis that was there before, which is when left returns
// no error, and are where the other one is, and b counts a, and checks that nobody was taken for dead.
// Then a dies, and b sees it.
//
// The sentinels, or the nodes, know before a client does that another one is the primary. A process that
// dies in between is not missed: b counts again where it comes to, and nobody was there. Its lease
// decides then.
func wantPresence(t *testing.T, a, b *server, left func(*server) error) {
	t.Helper()
	channels := []string{a.keys.presence("a"), a.keys.presence("b")}
	redistest.Await(t, func() error {
		for _, x := range []*server{a, b} {
			// As the owner of a lease does; while there is no primary it fails.
			if err := x.Announce(t.Context(), x.process, time.Hour); err != nil {
				return err
			}
		}
		for _, x := range []*server{a, b} {
			if err := left(x); err != nil {
				return fmt.Errorf("%s: %w", x.process, err)
			}
			x.followed(t)
			counts, err := x.peers.count(t.Context(), channels)
			if err != nil || counts[channels[0]] < presences || counts[channels[1]] < presences {
				return fmt.Errorf("%s counts %v, %v", x.process, counts, err)
			}
		}
		return nil
	})
	b.counts(t, "a")
	a.announce(t)
	for _, x := range []*server{a, b} {
		for len(x.heard) > 0 {
			t.Errorf("%s is told %+v, while everybody lives", x.process, <-x.heard)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b.wantDeparture(t, store.Departure{Process: "a"})
}
