// Package redistest starts real Redis servers for tests.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server process that belongs to a test.
type Server struct {
	// Addr is host:port.
	Addr string
	cmd  *exec.Cmd
	args []string

	databases atomic.Int64
}

// Start starts a redis-server on a free port, with what it keeps in a folder of
// the test, and stops it when the test ends. Further arguments are given to it.
// Without redis-server on this machine the test is skipped, or fails where
// HOLDFAST_REQUIRE_ALL is set.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := start(t, t.TempDir(), args)
	t.Cleanup(func() { s.Kill(t) })
	return s
}

// start starts a server that keeps its data in the folder.
func start(t testing.TB, dir string, args []string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("HOLDFAST_REQUIRE_ALL") != "" {
			t.Fatal("redis-server is missing: run scripts/install-test-deps.sh")
		}
		t.Skip("redis-server is missing: run scripts/install-test-deps.sh")
	}
	_, port, err := net.SplitHostPort(FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: "127.0.0.1:" + port}
	s.args = append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--daemonize", "no"}, args...)
	s.Run(t)
	return s
}

// Shared is one server for all the tests of a package that leave its settings
// alone. What they write has a prefix of its own, or is in a [Server.Database]. The
// zero Shared starts the server when the first test asks for it; TestMain stops it.
type Shared struct {
	mu     sync.Mutex
	server *Server
	dir    string
}

// Server returns the server, as [Start] does.
func (s *Shared) Server(t testing.TB) *Server {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return s.server
	}
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "redistest")
		if err != nil {
			t.Fatal(err)
		}
		s.dir = dir
	}
	s.server = start(t, s.dir, nil)
	s.server.databases.Store(1) // the first one is everybody's, by the URL
	return s.server
}

// Stop ends the server, if there is one, when all tests have ended.
func (s *Shared) Stop() error {
	if s.server == nil {
		return os.RemoveAll(s.dir)
	}
	return errors.Join(s.server.kill(), os.RemoveAll(s.dir))
}

// StartCluster starts a one-node cluster, which refuses what spans hash slots.
func StartCluster(t testing.TB) *Server {
	t.Helper()
	s := Start(t, "--cluster-enabled", "yes", "--cluster-port", port(FreeAddr(t)))
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	ctx := context.Background()
	if err := c.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, func() error {
		info, err := c.ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = fmt.Errorf("the cluster is not ready: %s", info)
		}
		return err
	})
	return s
}

// quiet is a logger: that a server which is starting refuses connections is
// nothing to tell.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// Run starts the server's process again after Kill, with what is on its disk.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	redis.SetLogger(quiet{})
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	await(t, func() error { return c.Ping(context.Background()).Err() })
}

// Kill ends the server at once, as a crash would.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.kill(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) kill() error {
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	// It ends by the signal, which Wait reports as an error.
	_ = s.cmd.Wait()
	s.cmd = nil
	return nil
}

// URL names the server, as a store is configured.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Database names a database of the server that no other call has named; there
// are 16.
func (s *Server) Database(t *testing.T) string {
	t.Helper()
	n := s.databases.Add(1) - 1
	if n > 15 {
		t.Fatal("the server has 16 databases only")
	}
	return fmt.Sprintf("%s/%d", s.URL(), n)
}

// await tries until f succeeds: there is no signal to wait for.
func await(t testing.TB, f func() error) {
	t.Helper()
	var err error
	for begun := time.Now(); time.Since(begun) < 15*time.Second; time.Sleep(10 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("redis-server does not get ready: %v", err)
}

// ports counts the ports that were given away, so that no two tests get the same.
var ports atomic.Int64

// FreeAddr finds a port that nobody uses. It is below those that systems give to
// connections: a server that is started again must not find its port taken by a
// client of another test.
func FreeAddr(t testing.TB) string {
	t.Helper()
	var failed error
	for range 100 {
		// Two test programs at a time begin at different ports.
		port := 10000 + (int64(os.Getpid())*499+ports.Add(1))%20000
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
		failed = err
	}
	t.Fatalf("no port is free: %v", failed)
	return ""
}

func port(addr string) string {
	_, p, _ := strings.Cut(addr, ":")
	return p
}
