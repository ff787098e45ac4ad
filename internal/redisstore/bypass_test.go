package redisstore

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
)

// counting counts the calls of a script that a client sends.
type counting struct {
	script string
	sent   atomic.Int64
}

func (c *counting) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if args := cmd.Args(); len(args) > 1 && args[1] == c.script {
			c.sent.Add(1)
		}
	}
}

var _ redis.Hook = (*counting)(nil)

func (c *counting) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds...)
		return next(ctx, cmds)
	}
}

// TestDirect: commits go to Redis without the client, once it has made the first. It makes those
// that fail there: after the connection broke, and when the script is not known.
func TestDirect(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openAt(t, server.URL(), newPrefix())
	words := func(c *store.Commit) { c.Records = [][]byte{[]byte("word")} }
	for range 2 * senders { // until each of them has its connection
		advance(t, s, aThread("t"), words)
	}
	client := &counting{script: s.scripts.append.Hash()}
	s.client.AddHook(client)
	sends := func(what string, want bool) {
		t.Helper()
		client.sent.Store(0)
		for range 4 {
			advance(t, s, aThread("t"), words)
		}
		if n := client.sent.Load(); n > 0 != want {
			t.Errorf("%s: the client has sent %d commits", what, n)
		}
	}
	sends("usually", false)
	server.Command(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	sends("after the connections broke", true)
	sends("once they are there again", false)
	server.Command(t, "SCRIPT", "FLUSH")
	sends("without the script", true)
}
