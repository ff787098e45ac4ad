package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// server is one of several servers on one Redis: a store with an announced process.
type server struct {
	*Store
	process string
	heard   chan store.Departure
}

// openServer opens a store for the process, which may be called so in Redis's list of
// clients, too.
func openServer(t *testing.T, client redis.UniversalClient, prefix, process string) *server {
	t.Helper()
	s, err := New(t.Context(), client, Options{Prefix: prefix, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	x := &server{s, process, make(chan store.Departure, 100)}
	t.Cleanup(s.OnDeparture(process, func(d store.Departure) { x.heard <- d }))
	x.announce(t)
	return x
}

// openServers opens stores for the processes a and b, of which a owns a thread, and waits
// until b has counted a.
func openServers(t *testing.T, client func(name string) redis.UniversalClient) (a, b *server) {
	t.Helper()
	prefix := newPrefix()
	a, b = openServer(t, client("a"), prefix, "a"), openServer(t, client("b"), prefix, "b")
	advance(t, a.Store, aThread("t"), func(c *store.Commit) { c.Process = "a" })
	b.counts(t, "a")
	return a, b
}

func (x *server) announce(t *testing.T) {
	t.Helper()
	if err := x.Announce(t.Context(), x.process, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// until waits until f holds of what the server knows of a process. While a server of Redis
// is replaced by another one, nothing may be known.
func (x *server) until(t *testing.T, process string, f func(*other) bool) {
	t.Helper()
	wait.Until(t, process, func() bool {
		if _, err := x.Owned(t.Context()); err != nil {
			t.Log(err)
			return false
		}
		x.peers.mu.Lock()
		defer x.peers.mu.Unlock()
		o := x.peers.judge.others[process]
		return o != nil && f(o)
	})
}

// counts waits until the server has counted the process in its present contact.
func (x *server) counts(t *testing.T, process string) {
	t.Helper()
	x.until(t, process, func(o *other) bool { return o.counted == x.peers.judge.contact })
}

// followed waits until the look for other connections is over that every renewal of the lease
// begins. After it, the server's contact ends only when a connection breaks.
func (x *server) followed(t *testing.T) {
	t.Helper()
	wait.Until(t, "the look after the renewal", func() bool { return !x.peers.following.Load() })
}

// wantDeparture waits for a departure.
func (x *server) wantDeparture(t *testing.T, want store.Departure) {
	t.Helper()
	select {
	case d := <-x.heard:
		if d != want {
			t.Errorf("%s is told %+v, want %+v", x.process, d, want)
		}
	case <-time.After(wait.Limit):
		x.peers.mu.Lock()
		defer x.peers.mu.Unlock()
		t.Errorf("%s is not told %+v; it is in contact %d, the crowd is %+v", x.process, want, x.peers.judge.contact,
			x.peers.crowd)
		for name, o := range x.peers.judge.others {
			t.Errorf("%s: %+v", name, *o)
		}
		t.FailNow()
	}
}

// clients returns a function that makes clients of the server with names.
func clients(addr string) func(name string) redis.UniversalClient {
	return func(name string) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: addr, ClientName: name, Protocol: 2, ContextTimeoutEnabled: true})
	}
}

// TestDeathIsSeen: when the connections of a process that owns threads are closed, as the
// kernel does when it dies, the others know that it is gone long before its lease ends.
func TestDeathIsSeen(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*testing.T) func(string) redis.UniversalClient{
		"redis":     func(t *testing.T) func(string) redis.UniversalClient { return clients(shared.Server(t).Addr) },
		"miniredis": func(t *testing.T) func(string) redis.UniversalClient { return clients(miniredis.RunT(t).Addr()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testDeath(t, client(t))
		})
	}
}

func testDeath(t *testing.T, client func(string) redis.UniversalClient) {
	a, b := openServers(t, client)
	if l, err := b.Lease(t.Context(), "a"); err != nil || !l.Alive() {
		t.Fatalf("the lease of the living is %+v, %v", l, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b.wantDeparture(t, store.Departure{Process: "a"})
	if l, err := b.Lease(t.Context(), "a"); err != nil || !l.Gone || l.Alive() || l.Left < time.Minute {
		t.Errorf("the lease of the dead is %+v, %v", l, err)
	}
	// It was only cut off after all.
	back := openServer(t, client("a"), a.keys.prefix, "a")
	b.until(t, "a", func(o *other) bool { return o.counted != 0 })
	if l, err := b.Lease(t.Context(), "a"); err != nil || !l.Alive() {
		t.Errorf("the lease of one that is back is %+v, %v", l, err)
	}
	if err := back.Retire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	b.wantDeparture(t, store.Departure{Process: "a", Retired: true})
}

// presenceClients returns the ids of the connections that show that the process lives.
func (x *server) presenceClients(t *testing.T) []string {
	t.Helper()
	return presenceAt(t, x.client, x.process)
}

// presenceAt returns the ids of those of a process that there are at a Redis.
func presenceAt(t *testing.T, client redis.UniversalClient, process string) (ids []string) {
	t.Helper()
	list, err := client.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(list, "\n") {
		fields := map[string]string{}
		for f := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(f, "=")
			fields[name] = value
		}
		if fields["name"] == process && fields["sub"] == "2" {
			ids = append(ids, fields["id"])
		}
	}
	return ids
}

// cut ends connections of the server, with a pause between them, as a network does.
func (x *server) cut(t *testing.T, pause time.Duration, ids ...string) {
	t.Helper()
	for i, id := range ids {
		if i > 0 {
			wait.Pass(pause)
		}
		if err := x.client.ClientKillByFilter(t.Context(), "ID", id).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlappingIsNoDeath: one connection that breaks, or one after the other, does not look
// like a death. If both break at once, the process is usually back before anybody judges.
func TestFlappingIsNoDeath(t *testing.T) {
	t.Parallel()
	a, b := openServers(t, clients(redistest.Start(t).Addr))
	const flaps = 20
	flap := func(pause time.Duration, n int) (deaths int) {
		for range flaps {
			wait.Until(t, "both connections", func() bool { return len(a.presenceClients(t)) == presences })
			b.counts(t, "a")
			a.cut(t, pause, a.presenceClients(t)[:n]...)
			wait.Until(t, "both connections", func() bool { return len(a.presenceClients(t)) == presences })
			wait.Pass(lookEvery + lookAgain) // for two looks, which would see it
		}
		for ; len(b.heard) > 0; deaths++ {
			<-b.heard
		}
		return deaths
	}
	if n := flap(0, 1); n > 0 {
		t.Errorf("one connection broke %d times, and %d times the process was dead", flaps, n)
	}
	t.Logf("one after the other, with 5 ms in between: %d deaths of %d; both at once: %d", flap(5*time.Millisecond, 2),
		flaps, flap(0, 2))
}

// TestNobodyIsJudgedAfterARestart: when Redis has been away, everybody has lost their
// connections, and who is slower to come back is not dead.
func TestNobodyIsJudgedAfterARestart(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t, "--appendonly", "yes")
	a, b := openServers(t, clients(r.Addr))
	// From now on a cannot come back.
	a.peers.stop()
	r.Kill(t)
	r.Run(t)
	wait.Until(t, "b's own connections", func() bool { return len(b.presenceClients(t)) == presences })
	b.until(t, "a", func(o *other) bool { return o.counted != b.peers.judge.contact })
	for range 5 {
		wait.Pass(lookEvery)
		b.peers.look()
	}
	if len(b.heard) > 0 {
		t.Errorf("b is told %+v", <-b.heard)
	}
}

// TestNewcomersAreTold: who has just begun to listen is told of claims that were published a
// moment before, and so are not published again.
func TestNewcomersAreTold(t *testing.T) {
	t.Parallel()
	prefix, client := newPrefix(), clients(shared.Server(t).Addr)
	a := openServer(t, client("a"), prefix, "a")
	advance(t, a.Store, aThread("t"), func(c *store.Commit) { c.Process = "a" })
	b := openServer(t, client("b"), prefix, "b")
	wait.Until(t, "the word that a claims threads", func() bool {
		b.peers.mu.Lock()
		defer b.peers.mu.Unlock()
		return b.peers.judge.others["a"] != nil
	})
}

// TestNobodyToWatch: a server looks only while others own threads.
func TestNobodyToWatch(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	a, b := openServers(t, clients(r.Addr))
	looks := func() int { return executed(t, b.Store, func() { wait.Pass(10 * lookEvery) })["pubsub|numsub"] }
	wait.Until(t, "looks in the time of ten, while another server owns a thread", func() bool { return looks() >= 2 })
	advance(t, a.Store, aThread("t"), func(c *store.Commit) { c.Process = "" })
	for _, s := range []*Store{a.Store, b.Store} { // one that has just started looks until it knows
		if _, err := s.Owned(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// One that has begun may not be over.
	wait.Until(t, "no look in the time of ten, while nobody owns anything", func() bool { return looks() == 0 })
}

// TestWithoutPermission: a server that may not count subscribers says so once, and goes on
// with leases.
func TestWithoutPermission(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"channels": "resetchannels", "pubsub": "-pubsub"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			admin := redis.NewClient(&redis.Options{Addr: r.Addr})
			defer admin.Close()
			if err := admin.Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">secret", "allkeys", "allchannels",
				"allcommands", rule).
				Err(); err != nil {
				t.Fatal(err)
			}
			said := wait.NewLines("count subscribers")
			open := func(process string) *Store {
				s, err := Open(t.Context(), fmt.Sprintf("redis://limited:secret@%s", r.Addr),
					Options{Log: said.Logger()})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				t.Cleanup(s.OnDeparture(process, func(d store.Departure) { t.Errorf("%s is told %+v", process, d) }))
				if err := s.Announce(t.Context(), process, time.Hour); err != nil {
					t.Fatal(err)
				}
				return s
			}
			a := open("a")
			b := open("b")
			// Publishing the claim fails, which does not keep the commit from being made.
			err := tryAdvance(context.Background(), a, aThread("t"), func(c *store.Commit) { c.Process = "a" })
			if _, lost := b.Owned(t.Context()); err != nil || lost != nil {
				t.Fatal(err, lost)
			}
			select {
			case <-said.Found:
			case <-time.After(wait.Limit):
				t.Error("the log does not say that subscribers cannot be counted")
			}
			if l, err := b.Lease(t.Context(), "a"); err != nil || !l.Alive() {
				t.Errorf("the lease is %+v, %v", l, err)
			}
		})
	}
}

// roaming returns a client of a that connects to whatever the address is by then.
func roaming(at *atomic.Pointer[string]) *redis.Client {
	return redis.NewClient(&redis.Options{
		Dialer:     func(context.Context, string, string) (net.Conn, error) { return net.Dial("tcp", *at.Load()) },
		ClientName: "a", Protocol: 2, ContextTimeoutEnabled: true,
	})
}

// TestSubscriptionsFollow: where another Redis has taken the place of the first one, which
// lives on, subscriptions must not stay behind: nobody counts them there, and nothing is
// published.
func TestSubscriptionsFollow(t *testing.T) {
	t.Parallel()
	first, second := redistest.Start(t), redistest.Start(t)
	var at atomic.Pointer[string]
	at.Store(&first.Addr)
	client := roaming(&at)
	a := openServer(t, client, newPrefix(), "a")
	key := aThread("t")
	_, stop := a.Watch(key)
	defer stop()
	subscribers := func(s *redistest.Server, channel string) int64 {
		c := redis.NewClient(&redis.Options{Addr: s.Addr})
		defer c.Close()
		n, err := c.PubSubNumSub(t.Context(), channel).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n[channel]
	}
	wait.Until(t, "subscriptions", func() bool {
		return subscribers(first, a.keys.presence("a")) == presences && subscribers(first, a.keys.log(tag(key))) == 1
	})
	at.Store(&second.Addr)
	old := redis.NewClient(&redis.Options{Addr: first.Addr})
	defer old.Close()
	if err := old.ClientKillByFilter(t.Context(), "TYPE", "normal").Err(); err != nil {
		t.Fatal(err)
	}
	// An announcement may find a connection broken, and every one is followed by another.
	wait.Until(t, "subscriptions at the other one", func() bool {
		_ = a.Announce(t.Context(), "a", time.Hour)
		return subscribers(second, a.keys.presence("a")) == presences &&
			subscribers(second, a.keys.log(tag(key))) == 1 && subscribers(second, a.keys.peersChannel()) == 1
	})
	wait.Until(t, "no subscription that has stayed behind", func() bool {
		return subscribers(first, a.keys.peersChannel()) == 0
	})
	// One of two connections may go elsewhere alone.
	a.followed(t) // or both would follow it
	there := redis.NewClient(&redis.Options{Addr: second.Addr})
	defer there.Close()
	before := presenceAt(t, old, "a") // which stay for a while, as long as the machine takes to come here
	at.Store(&first.Addr)
	if err := there.ClientKillByFilter(t.Context(), "ID", presenceAt(t, there, "a")[0]).Err(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "one subscription elsewhere", func() bool {
		return slices.ContainsFunc(presenceAt(t, old, "a"), func(id string) bool {
			return !slices.Contains(before, id)
		})
	})
	at.Store(&second.Addr)
	wait.Until(t, "both subscriptions", func() bool {
		_ = a.Announce(t.Context(), "a", time.Hour)
		return subscribers(second, a.keys.presence("a")) >= presences
	})
}

// miscount answers how many subscribers there are with none, as Redis does when they have
// just come back since.
type miscount struct{ on atomic.Bool }

func (m *miscount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *miscount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if counted, ok := cmd.(*redis.MapStringIntCmd); ok && m.on.Load() {
			clear(counted.Val())
		}
		return err
	}
}

func (m *miscount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestFollowingLeavesNoGap: a process whose subscriptions were not there when it looked, and
// are back since, keeps them until it has others, or the rest would take it for dead.
func TestFollowingLeavesNoGap(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	var refuse atomic.Bool
	client := redis.NewClient(&redis.Options{
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if refuse.Load() {
				return nil, errors.New("refused")
			}
			return net.Dial("tcp", r.Addr)
		},
		ClientName: "a", Protocol: 2, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	counts := &miscount{}
	client.AddHook(counts)
	a := openServer(t, client, newPrefix(), "a")
	wait.Until(t, "both connections", func() bool { return len(a.presenceClients(t)) == presences })
	before := a.presenceClients(t)
	counts.on.Store(true)
	refuse.Store(true)
	a.announce(t)
	a.followed(t)
	if after := a.presenceClients(t); !slices.Equal(after, before) {
		t.Errorf("while there are no others, the connections are %v, before they were %v", after, before)
	}
	refuse.Store(false)
	a.announce(t)
	a.followed(t)
	if after := a.presenceClients(t); len(after) != 2*presences {
		t.Errorf("the connections are %v, before they were %v, which stay for a while", after, before)
	}
}

// TestFollowersDoNotLookDead: a process that has followed Redis to another place is not
// taken for dead by one that has not yet.
func TestFollowersDoNotLookDead(t *testing.T) {
	t.Parallel()
	first, second := redistest.Start(t), redistest.Start(t)
	var at atomic.Pointer[string]
	at.Store(&first.Addr)
	a, b := openServers(t, func(name string) redis.UniversalClient {
		if name == "b" {
			return clients(first.Addr)(name)
		}
		return roaming(&at)
	})
	at.Store(&second.Addr)
	if err := b.client.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "no").Err(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "both connections", func() bool {
		_ = a.Announce(t.Context(), "a", time.Hour)
		n, err := a.client.PubSubNumSub(t.Context(), a.keys.presence("a")).Result()
		return err == nil && n[a.keys.presence("a")] == presences
	})
	for range 5 {
		wait.Pass(lookEvery)
		b.peers.look()
	}
	for len(b.heard) > 0 {
		t.Errorf("b is told %+v", <-b.heard)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b.wantDeparture(t, store.Departure{Process: "a"})
}

// TestFollowingDoesNotHoldTheLease: connections that cannot be made, because whatever lies
// between swallows them, do not keep a process from renewing its lease in time.
func TestFollowingDoesNotHoldTheLease(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	var swallow atomic.Bool
	client := redis.NewClient(&redis.Options{
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if swallow.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return net.Dial("tcp", r.Addr)
		},
		ClientName: "a", Protocol: 2, ContextTimeoutEnabled: true, DialTimeout: time.Hour,
	})
	counts := &miscount{}
	client.AddHook(counts)
	a := openServer(t, client, newPrefix(), "a")
	wait.Until(t, "the word that it has come, which needs a connection too", func() bool {
		return strings.Contains(a.client.Info(t.Context(), "commandstats").Val(), "cmdstat_publish")
	})
	wait.Until(t, "both connections", func() bool { return len(a.presenceClients(t)) == presences })
	counts.on.Store(true)
	swallow.Store(true)
	renewed := make(chan error, 1)
	go func() { renewed <- a.Announce(t.Context(), "a", 300*time.Millisecond) }()
	select {
	case err := <-renewed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(wait.Limit):
		t.Error("a renewal waits for connections")
	}
}
