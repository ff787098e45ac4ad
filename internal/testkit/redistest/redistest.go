// Package redistest starts real Redis servers for tests.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// Server is a redis-server process that a test started.
type Server struct {
	// Addr is host:port.
	Addr string
	cmd  *exec.Cmd
	args []string

	databases atomic.Int64
}

// Start starts a redis-server on a free port, with its data in a folder of the test, and
// stops it when the test ends. It is started with the further arguments. If the machine
// has no redis-server, the test is skipped, or fails if HOLDFAST_REQUIRE_ALL is set.
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
	s.args = append([]string{
		"--port",
		port,
		"--bind",
		"127.0.0.1",
		"--dir",
		dir,
		"--databases",
		strconv.Itoa(databases),
		"--save",
		"",
		"--daemonize",
		"no",
	}, args...)
	s.Run(t)
	return s
}

// Shared is one server for all tests of a package that do not change its settings. Each
// of them writes under a prefix of its own, or to a [Server.Database]. The zero Shared
// starts the server when the first test asks for it; TestMain must call Stop.
//
// Redis sends what is published to the subscribers of all databases. A test of who is
// notified needs a server of its own.
type Shared struct {
	mu     sync.Mutex
	server *Server
	dir    string
}

// Server returns the server. Without redis-server, it does what [Start] does.
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
	s.server.databases.Store(1) // the first one is what the URL names
	return s.server
}

// Stop ends the server, if there is one, and removes its data.
func (s *Shared) Stop() error {
	if s.server == nil {
		return os.RemoveAll(s.dir)
	}
	return errors.Join(s.server.kill(), os.RemoveAll(s.dir))
}

// StartCluster starts a cluster of one node, which refuses commands that span hash slots.
// It takes Redis two seconds to accept commands.
func StartCluster(t testing.TB) *Server {
	t.Helper()
	s := Start(t, "--cluster-enabled", "yes", "--cluster-port", port(FreeAddr(t)))
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	ctx := context.Background()
	if err := c.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	wait.For(t, func() error {
		info, err := c.ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = fmt.Errorf("the cluster is not ready: %s", info)
		}
		return err
	})
	return s
}

// quiet is a logger that drops everything: a server that is starting refuses connections,
// which is not worth a message.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// Run starts the server's process again after Kill, with the data on its disk.
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
	wait.For(t, func() error { return c.Ping(context.Background()).Err() })
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
	// The process ends by the signal, which Wait reports as an error.
	_ = s.cmd.Wait()
	s.cmd = nil
	return nil
}

// URL returns the server's URL, in the form that configures a store.
func (s *Server) URL() string { return "redis://" + s.Addr }

// databases is how many databases a server has. An empty one costs it nothing.
const databases = 1024

// Database returns the URL of a database that no other call has returned. A server has
// 1024 of them; more fail the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	n := s.databases.Add(1) - 1
	if n >= databases {
		t.Fatalf("the server has only %d databases", databases)
	}
	return fmt.Sprintf("%s/%d", s.URL(), n)
}

// ports counts the ports that were handed out, so that no two tests get the same one.
var ports atomic.Int64

// FreeAddr returns an address on this machine whose port is free. The port is below those
// that systems assign to connections: a server that is started again must not find its
// port taken by a client of another test.
func FreeAddr(t testing.TB) string {
	t.Helper()
	var failed error
	for range 100 {
		// Test programs that run at the same time begin at different ports.
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
