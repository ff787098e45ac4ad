// Package fakeredis is a Redis in memory, and the way to it: what one server sends arrives, is carried
// out and is answered when somebody says so, and connections break when somebody says so. It is
// for simulations, in which no goroutine may wait for a real network.
package fakeredis

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/redis/go-redis/v9"
)

// Redis is the Redis.
type Redis struct {
	mini    *miniredis.Miniredis
	server  *server.Server
	scripts *scripts

	mu sync.Mutex // held while commands are carried out, so that a script is one
}

// quiet has the client not write that connections break, which they do all the time.
var quiet = sync.OnceFunc(func() { redis.SetLogger(connection.Log{Log: slog.New(slog.DiscardHandler)}) })

// New returns an empty one. Its clock is that of the process, and its keys expire by it.
func New() *Redis {
	quiet()
	r := &Redis{mini: miniredis.NewMiniRedis()}
	r.mini.ClockTTL(true)
	r.mini.Seed(1)
	if c, err := r.mini.Dial(); err == nil { // which starts it, without a network
		_ = c.Close()
	}
	r.server = r.mini.Server()
	r.scripts = newScripts(r.server)
	r.server.SetPreHook(r.scripts.hook)
	return r
}

// Close ends it. All connections must have been closed.
func (r *Redis) Close() { r.mini.Close() }

// Client returns a client whose connections are made by a line; without one, of connections on
// which nothing happens.
func (r *Redis) Client(l *Line) *redis.Client {
	dial := func(context.Context, string, string) (net.Conn, error) { return r.direct(), nil }
	if l != nil {
		dial = l.dial
	}
	client := redis.NewClient(&redis.Options{
		Addr:                  "127.0.0.1:6379", // nobody is asked for a name
		Protocol:              2,
		PoolSize:              32,
		ReadBufferSize:        4 << 10,
		WriteBufferSize:       16 << 10,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		Dialer:                dial,
		// The client of subscriptions keeps a lock while it connects, so it must not sleep then.
		DialerRetries: 1,
		// Always the same, since a seed has one story.
		MinRetryBackoff: pause,
		MaxRetryBackoff: pause,
	})
	if l != nil {
		client.AddHook(order{l.seams.Turn})
	}
	return client
}

// pause is how long a client waits before it repeats a command whose connection broke.
const pause = 8 * time.Millisecond

// carry carries commands out, one after the other. When it returns, Redis has said all that it says of them.
func (r *Redis) carry(peer *server.Peer, batch []value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range batch {
		if len(v.parts) > 0 {
			r.server.Dispatch(peer, v.parts)
		}
	}
	peer.Flush()
}

// leave ends the subscriptions of a connection.
func (r *Redis) leave(peer *server.Peer) { r.carry(peer, []value{{parts: []string{"UNSUBSCRIBE"}}}) }

// play carries a request out without the connection that it came from.
func (r *Redis) play(request []value) { r.carry(peerOf(io.Discard), request) }

// peerOf returns a peer of Redis to which it says what it has to say.
func peerOf(w io.Writer) *server.Peer { return server.NewPeer(bufio.NewWriter(w)) }

// direct returns a connection on which nothing happens.
func (r *Redis) direct() net.Conn {
	var client *end
	peer := peerOf(writer(func(b []byte) { client.put(b) }))
	listens := false
	client = newEnd(func(batch []value) {
		listens = listens || subscribes(batch)
		r.carry(peer, batch)
	}, func() {
		if listens {
			r.leave(peer)
		}
	})
	return client
}

// writer is a function as an [io.Writer].
type writer func([]byte)

// Write implements [io.Writer].
func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

// subscribes reports whether a request subscribes its connection.
func subscribes(batch []value) bool {
	for _, v := range batch {
		if len(v.parts) > 0 && isSubscription(v.parts[0]) {
			return true
		}
	}
	return false
}
