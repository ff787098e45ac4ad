package redistest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// Servers that belong together: replicas, sentinels, and a cluster with replicas.

// replicaArgs make replication begin at once, and detect what is gone quickly.
var replicaArgs = []string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--repl-timeout", "60"}

// StartReplicas starts a server and replicas of it, and waits until they have its data.
func StartReplicas(t testing.TB, replicas int, args ...string) (*Server, []*Server) {
	t.Helper()
	args = append(args, replicaArgs...)
	primary := Start(t, args...)
	var all []*Server
	for range replicas {
		host, port := primary.hostPort()
		all = append(all, Start(t, append(args, "--replicaof", host+" "+port)...))
	}
	primary.AwaitReplicas(t, replicas)
	return primary, all
}

func (s *Server) hostPort() (host, port string) {
	host, port, _ = strings.Cut(s.Addr, ":")
	return host, port
}

// Follow has the server be a replica of another one when it is started again. In a cluster, the
// nodes know that themselves.
func (s *Server) Follow(t testing.TB, primary *Server) {
	t.Helper()
	if busPort(s) != "" {
		return
	}
	host, port := primary.hostPort()
	for i, a := range s.args {
		if a == "--replicaof" {
			s.args[i+1] = host + " " + port
			return
		}
	}
	s.args = append(s.args, "--replicaof", host+" "+port)
}

// FollowNow asks the server to be a replica of another one at once.
func (s *Server) FollowNow(primary *Server) {
	host, port := primary.hostPort()
	c := s.client()
	defer c.Close()
	// Whether it has done so is seen in its role.
	_ = c.Do(context.Background(), "replicaof", host, port).Err()
}

// AwaitReplicas waits until so many replicas have all that was written.
func (s *Server) AwaitReplicas(t testing.TB, n int) {
	t.Helper()
	wait.For(t, func() error { return s.HasReplicas(n) })
}

// HasReplicas returns an error unless so many replicas have all that was written.
func (s *Server) HasReplicas(n int) error {
	ctx := context.Background()
	c := s.client()
	defer c.Close()
	pipe := c.Pipeline()
	pipe.Publish(ctx, "redistest", "")
	have := pipe.Do(ctx, "wait", n, 100)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	if got, _ := have.Int(); got < n {
		return fmt.Errorf("%d of %d replicas are connected", got, n)
	}
	return nil
}

// Role returns what the server says it is: master or slave; empty if it does not answer.
func (s *Server) Role() string {
	c := s.client()
	defer c.Close()
	role, err := c.Do(context.Background(), "role").Slice()
	if err != nil || len(role) == 0 {
		return ""
	}
	return fmt.Sprint(role[0])
}

// PrimaryPort returns the port of the server's primary; empty if it is no replica.
func (s *Server) PrimaryPort() string {
	c := s.client()
	defer c.Close()
	role, err := c.Do(context.Background(), "role").Slice()
	if err != nil || len(role) < 3 || role[0] != "slave" {
		return ""
	}
	return fmt.Sprint(role[2])
}

// Port returns the server's port.
func (s *Server) Port() string { return port(s.Addr) }

// Command sends a command to the server.
func (s *Server) Command(t testing.TB, args ...any) {
	t.Helper()
	c := s.client()
	defer c.Close()
	if err := c.Do(context.Background(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func (s *Server) client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:            s.Addr,
		MaxRetries:      -1,
		DialerRetries:   1,
		Protocol:        2,
		DisableIdentity: true,
	})
}

// Suspend stops the server's process, and Resume lets it go on. A suspended server is killed,
// too, when the test ends.
func (s *Server) Suspend(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Resume is the reverse of Suspend.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Sentinels are three of them, which watch one primary under the name "primary".
type Sentinels struct {
	// URL is that of a store.
	URL string
	all []*redis.SentinelClient
}

// StartSentinels starts three sentinels that take a primary for dead that has been silent for
// so many milliseconds.
func StartSentinels(t testing.TB, primary *Server, silence int) *Sentinels {
	t.Helper()
	var addrs []string
	for range 3 {
		_, port := primary.hostPort()
		addr := FreeAddr(t)
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor primary 127.0.0.1 %s 2\nsentinel down-after-milliseconds primary %d\n"+
			"sentinel failover-timeout primary 10000\nsentinel parallel-syncs primary 5\n", port, silence)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, own := (&Server{Addr: addr}).hostPort()
		cmd := exec.Command("redis-server", file, "--sentinel", "--port", own, "--bind", "127.0.0.1", "--dir",
			filepath.Dir(file), "--daemonize", "no")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// It ends by the signal, which Wait reports as an error.
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		addrs = append(addrs, addr)
	}
	s := &Sentinels{URL: "redis+sentinel://" + addrs[0] + "?master_name=primary&addr=" + addrs[1] + "&addr=" + addrs[2]}
	for _, addr := range addrs {
		c := redis.NewSentinelClient(&redis.Options{Addr: addr, MaxRetries: -1, Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { _ = c.Close() })
		s.all = append(s.all, c)
	}
	return s
}

// AwaitReady waits until the sentinels know each other, and so many replicas that can take the
// primary's place.
func (s *Sentinels) AwaitReady(t testing.TB, replicas int) {
	t.Helper()
	for _, c := range s.all {
		wait.For(t, func() error {
			ctx := context.Background()
			others, err := c.Sentinels(ctx, "primary").Result()
			if err != nil {
				return err
			}
			known, err := c.Replicas(ctx, "primary").Result()
			if err != nil {
				return err
			}
			able := 0
			for _, r := range known {
				if r["flags"] == "slave" {
					able++
				}
			}
			if len(others) < 2 || able < replicas {
				return fmt.Errorf("a sentinel knows %d others and these replicas: %v", len(others), known)
			}
			return nil
		})
	}
}

// Primary returns the address of the primary; empty while the sentinels do not agree.
func (s *Sentinels) Primary() string {
	is := ""
	for n, c := range s.all {
		addr, err := c.GetMasterAddrByName(context.Background(), "primary").Result()
		if err != nil || len(addr) != 2 || n > 0 && is != addr[0]+":"+addr[1] {
			return ""
		}
		is = addr[0] + ":" + addr[1]
	}
	return is
}

// Urge has a sentinel begin a failover now, if it is not at it already.
func (s *Sentinels) Urge() {
	// It refuses while there is no need.
	_ = s.all[0].Failover(context.Background(), "primary").Err()
}

// Await tries until f succeeds, for up to a minute: Redis gives no signal that could be
// waited for.
func Await(t testing.TB, f func() error) {
	t.Helper()
	wait.For(t, f)
}

// StartClusterOf starts a cluster of so many primaries with a replica each. The replica of the
// nth primary is the nth of the replicas.
func StartClusterOf(t testing.TB, primaries int) (nodes, replicas []*Server) {
	t.Helper()
	start := func() *Server {
		return Start(t, append(
			[]string{
				"--cluster-enabled",
				"yes",
				"--cluster-port",
				port(FreeAddr(t)),
				"--cluster-node-timeout",
				"1000",
			},
			replicaArgs...)...)
	}
	for range primaries {
		nodes = append(nodes, start())
	}
	for range primaries {
		replicas = append(replicas, start())
	}
	first := nodes[0]
	host, firstPort := first.hostPort()
	for i, s := range append(append([]*Server{}, nodes...), replicas...) {
		s.Command(t, "cluster", "set-config-epoch", i+1)
		if s != first {
			s.Command(t, "cluster", "meet", host, firstPort, busPort(first))
		}
	}
	for i, s := range nodes {
		from, to := 16384*i/primaries, 16384*(i+1)/primaries-1
		s.Command(t, "cluster", "addslotsrange", from, to)
	}
	for i, s := range replicas {
		id := nodes[i].nodeID(t)
		wait.For(t, func() error {
			c := s.client()
			defer c.Close()
			return c.ClusterReplicate(context.Background(), id).Err()
		})
	}
	for i, s := range nodes {
		s.AwaitReplicas(t, 1)
		for _, each := range []*Server{s, replicas[i]} {
			wait.For(t, func() error {
				c := each.client()
				defer c.Close()
				info, err := c.ClusterInfo(context.Background()).Result()
				if err == nil && (!strings.Contains(info, "cluster_state:ok") ||
					!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", 2*primaries))) {
					err = fmt.Errorf("the cluster is not ready: %s", info)
				}
				return err
			})
		}
	}
	return nodes, replicas
}

// Move is a hash slot of a cluster that is on its way from one node to another.
type Move struct {
	slot           int64
	from, to       *Server
	fromID, toID   string
	toHost, toPort string
	nodes          []*Server
}

// BeginMove begins to move a slot, as redis-cli does: from now on, the node that has it sends
// those who ask for a key that is not there to the other one. The nodes are all primaries.
func BeginMove(t testing.TB, slot int64, from, to *Server, nodes []*Server) *Move {
	t.Helper()
	m := &Move{
		slot:   slot,
		from:   from,
		to:     to,
		fromID: from.nodeID(t),
		toID:   to.nodeID(t),
		nodes:  nodes,
	}
	m.toHost, m.toPort = to.hostPort()
	to.Command(t, "cluster", "setslot", slot, "importing", m.fromID)
	from.Command(t, "cluster", "setslot", slot, "migrating", m.toID)
	return m
}

// Keys moves keys. Those that are not there are left out.
func (m *Move) Keys(t testing.TB, keys ...string) {
	t.Helper()
	args := []any{"migrate", m.toHost, m.toPort, "", 0, 10_000, "keys"}
	for _, k := range keys {
		args = append(args, k)
	}
	m.from.Command(t, args...)
}

// Rest moves all keys that are still there.
func (m *Move) Rest(t testing.TB) {
	t.Helper()
	c := m.from.client()
	defer c.Close()
	keys, err := c.ClusterGetKeysInSlot(context.Background(), int(m.slot), 1000).Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) > 0 {
		m.Keys(t, keys...)
	}
}

// End makes the other node the owner of the slot, and waits until all primaries say so. The
// new owner is told first, and takes a new epoch because it was importing: without that, the
// others would go on to believe the old owner, and it the new one.
func (m *Move) End(t testing.TB) {
	t.Helper()
	for _, s := range append([]*Server{m.to, m.from}, m.nodes...) {
		s.Command(t, "cluster", "setslot", m.slot, "node", m.toID)
	}
	for _, s := range m.nodes {
		wait.For(t, func() error {
			c := s.client()
			defer c.Close()
			shards, err := c.ClusterShards(context.Background()).Result()
			if err != nil {
				return err
			}
			for _, shard := range shards {
				owns := slices.ContainsFunc(shard.Slots, func(r redis.SlotRange) bool {
					return r.Start <= m.slot && m.slot <= r.End
				})
				if owns && slices.ContainsFunc(shard.Nodes, func(n redis.Node) bool { return n.ID == m.toID }) {
					return nil
				}
			}
			return fmt.Errorf("%s does not know the new owner of slot %d: %v", s.Addr, m.slot, shards)
		})
	}
}

// nodeID returns the name of the node in its cluster.
func (s *Server) nodeID(t testing.TB) string {
	t.Helper()
	c := s.client()
	defer c.Close()
	id, err := c.ClusterMyID(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// busPort returns the port on which the node talks to the others.
func busPort(s *Server) string {
	for i, a := range s.args {
		if a == "--cluster-port" {
			return s.args[i+1]
		}
	}
	return ""
}
