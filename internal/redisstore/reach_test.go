package redisstore

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// opening opens a store in the background, and returns once it has logged that it waits.
func opening(t *testing.T, url string) <-chan error {
	t.Helper()
	said := wait.NewLines("waiting for Redis")
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), url, Options{Patience: 30 * time.Second, Log: said.Logger()})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	select {
	case <-said.Found:
	case err := <-opened:
		t.Fatalf("it did not wait: %v", err)
	}
	return opened
}

// TestOpenWaits: a store is opened before Redis runs, or while it loads its data.
func TestOpenWaits(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		server.Kill(t)
		opened := opening(t, server.URL())
		server.Run(t)
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
	t.Run("loading", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, "--enable-debug-command", "yes", "--rdbcompression", "no", "--key-load-delay",
			"30000", "--loading-process-events-interval-bytes", "1024")
		r := &troubled{T: t, redis: server, store: openAt(t, server.URL(), "hf:"), ended: make(chan error, 1)}
		reload(r)
		opened := opening(t, server.URL())
		reloaded(r)
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
	t.Run("accepted and closed", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
		defer func() { _ = l.Close(); <-closed }()
		said := wait.NewLines("waiting for Redis")
		if _, err := Open(t.Context(), "redis://"+l.Addr().String(),
			Options{Patience: 5 * time.Second, Log: said.Logger()}); err == nil ||
			!strings.Contains(err.Error(), "is it running") {
			t.Errorf("got %v", err)
		}
		select {
		case <-said.Found:
		default: // one try that takes as long as the patience would not say it
			t.Error("it did not say that it waits")
		}
	})
}
