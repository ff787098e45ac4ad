// Package fakeredis is a Redis in memory, and the way to it: what one server sends arrives, is carried
// out and is answered when somebody says so, and connections break when somebody says so. It is
// for simulations, in which no goroutine may wait for a real network.
package fakeredis

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/redis/go-redis/v9"
)

// Redis is the Redis.
type Redis struct{ mini *miniredis.Miniredis }

// quiet has the client not write that connections break, which they do all the time.
var quiet = sync.OnceFunc(func() { redis.SetLogger(connection.Log{Log: slog.New(slog.DiscardHandler)}) })

// New returns an empty one. Its clock is that of the process, and its keys expire by it.
func New() *Redis {
	quiet()
	r := &Redis{miniredis.NewMiniRedis()}
	r.mini.ClockTTL(true)
	r.mini.Seed(1)
	return r
}

// Close ends it. All connections must have been closed.
func (r *Redis) Close() { r.mini.Close() }

// Client returns a client whose connections are made by a line; without one, of connections on
// which nothing happens.
func (r *Redis) Client(l *Line) *redis.Client {
	dial := func(context.Context, string, string) (net.Conn, error) { return r.mini.Dial() }
	if l != nil {
		dial = l.dial
	}
	client := redis.NewClient(&redis.Options{
		Addr:                  "127.0.0.1:6379", // nobody is asked for a name
		Protocol:              2,
		PoolSize:              32,
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

// play carries a request out without the connection that it came from.
func (r *Redis) play(request []value) {
	c, err := r.mini.Dial()
	if err != nil {
		return
	}
	defer c.Close()
	go func() { _ = write(c, request) }()
	from := bufio.NewReader(c)
	for range request {
		if _, err := readValue(from); err != nil {
			return
		}
	}
}

// write writes values.
func write(c net.Conn, values []value) error {
	var raw []byte
	for _, v := range values {
		raw = append(raw, v.raw...)
	}
	_, err := c.Write(raw)
	return err
}

// Verdict is what becomes of a request.
type Verdict int

const (
	Carry Verdict = iota // it is carried out and answered
	Lose                 // the connection breaks before it arrives
	Mute                 // the connection breaks before its answer arrives
	Late                 // its answer is held back
)

// Seams decide what becomes of a server's requests. Each waits until it has decided.
type Seams interface {
	// Turn is called before a client asks something.
	Turn(ctx context.Context, name, detail string)
	// Reachable reports whether a connection can be made. Its greeting is then carried out at once.
	Reachable() bool
	// Request is called before requests are carried out. land carries them out although nobody
	// waits for them any more.
	Request(ctx context.Context, r Request, land func()) Verdict
	// Carried is called when they have been, before anybody can know it.
	Carried(r Request)
	// Reply is called for an answer that is held back. It reports whether that arrives.
	Reply(ctx context.Context, r Request) bool
	// Told is called before something that was published is told. It reports whether it arrives;
	// otherwise the connection breaks.
	Told(ctx context.Context, what string) bool
}

// Line is the way of one server to a Redis.
type Line struct {
	redis *Redis
	seams Seams

	mu     sync.Mutex
	conns  map[*conn]bool
	down   bool // nothing can be dialed
	dialed int  // how many connections there were
	frozen bool // nobody reads or writes at the server any more, and connections stay
	open   sync.WaitGroup
}

// NewLine returns the way of a server.
func (r *Redis) NewLine(seams Seams) *Line {
	return &Line{redis: r, seams: seams, conns: map[*conn]bool{}}
}

var errRefused = errors.New("connection refused")

// dial makes a connection.
func (l *Line) dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down || l.frozen || !l.seams.Reachable() {
		return nil, errRefused
	}
	far, err := l.redis.mini.Dial()
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	c := &conn{
		line:     l,
		near:     near,
		far:      far,
		requests: newQueue(),
		heard:    newQueue(),
		out:      newQueue(),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	l.dialed++
	c.number = l.dialed
	l.conns[c] = true
	for _, part := range []func(){c.read, c.work, c.hear, c.send} {
		l.open.Go(part)
	}
	return client, nil
}

// Break breaks all connections, one right after the other: clients repeat what they have asked after the
// same pause, and those who do so at the same moment would take each other's connections. It takes as long
// however many there are, since nothing else depends on how many a client keeps.
func (l *Line) Break() {
	began := time.Now()
	for _, c := range l.all() {
		c.end(true)
		time.Sleep(apart)
	}
	time.Sleep(100*apart - time.Since(began))
}

// apart is what passes between two connections that break. It divides no pause.
const apart = 1009 * time.Nanosecond

// Refuse says whether connections can be made.
func (l *Line) Refuse(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// Freeze has the server vanish without a trace: its connections stay.
func (l *Line) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
}

// Close breaks all connections for good, and waits until nothing of them is left.
func (l *Line) Close() {
	l.Refuse(true)
	l.Break()
	l.open.Wait()
}

func (l *Line) all() (all []*conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.number, b.number) })
	return all
}

func (l *Line) isFrozen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frozen
}

// conn is a connection: near is its end at the server, far that at Redis.
type conn struct {
	line      *Line
	number    int // of those that there were
	near, far net.Conn
	ctx       context.Context
	cancel    context.CancelFunc
	requests  *queue // that the server has sent
	heard     *queue // what Redis has answered or told
	out       *queue // what arrives at the server
}

// end breaks the connection. One of a server that has vanished only does so by force.
func (c *conn) end(force bool) {
	_ = c.near.Close()
	if !force && c.line.isFrozen() {
		return
	}
	c.cancel()
	_ = c.far.Close()
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	delete(c.line.conns, c)
}

// read takes what the server sends, so that it never waits for that.
func (c *conn) read() {
	defer c.end(false)
	r := bufio.NewReaderSize(c.near, maxFlush)
	for {
		var batch []value
		for len(batch) == 0 || r.Buffered() > 0 { // what was sent together stays together
			v, err := readValue(r)
			if err != nil {
				return
			}
			batch = append(batch, v)
		}
		c.requests.put(batch...)
	}
}

// maxFlush is more than a client writes at once.
const maxFlush = 64 << 10

// hear takes what Redis sends, so that it never waits for that.
func (c *conn) hear() {
	defer c.end(true)
	r := bufio.NewReader(c.far)
	for {
		v, err := readValue(r)
		if err != nil {
			return
		}
		c.heard.put(v)
	}
}

// send writes what arrives at the server.
func (c *conn) send() {
	for {
		values := c.out.take(c.ctx, math.MaxInt)
		if values == nil {
			return
		}
		if write(c.near, values) != nil {
			c.end(false)
			return
		}
	}
}

// work carries out what the server sends.
func (c *conn) work() {
	for {
		batch := c.requests.take(c.ctx, math.MaxInt)
		if batch == nil || !c.carry(batch) {
			c.end(false)
			return
		}
		if c.subscribed(batch) {
			c.tell()
			return
		}
	}
}

// subscribed reports whether a request subscribes the connection.
func (c *conn) subscribed(batch []value) bool {
	for _, v := range batch {
		if len(v.parts) > 0 && isSubscription(v.parts[0]) {
			return true
		}
	}
	return false
}

// carry carries requests out. It reports false if the connection breaks.
func (c *conn) carry(batch []value) bool {
	if c.subscribed(batch) {
		return write(c.far, batch) == nil
	}
	r := requestOf(batch)
	if r.greets {
		return c.greet(batch)
	}
	seams := c.line.seams
	verdict := seams.Request(c.ctx, r, func() {
		c.line.redis.play(batch)
		seams.Carried(r)
	})
	if verdict == Lose || write(c.far, batch) != nil {
		return false
	}
	replies := c.replies(len(batch))
	seams.Carried(r)
	if replies == nil || verdict == Mute || verdict == Late && !seams.Reply(c.ctx, r) {
		return false
	}
	c.out.put(replies...)
	return true
}

// replies waits for so many; nil if the connection breaks.
func (c *conn) replies(n int) (replies []value) {
	for len(replies) < n {
		some := c.heard.take(c.ctx, n-len(replies))
		if some == nil {
			return nil
		}
		replies = append(replies, some...)
	}
	return replies
}

// greet is carry for what greets Redis.
func (c *conn) greet(batch []value) bool {
	if write(c.far, batch) != nil {
		return false
	}
	replies := c.replies(len(batch))
	c.out.put(replies...)
	return replies != nil
}

// tell passes on what Redis tells a subscriber, and what that sends.
func (c *conn) tell() {
	c.line.open.Go(func() {
		for {
			batch := c.requests.take(c.ctx, math.MaxInt)
			if batch == nil || write(c.far, batch) != nil {
				c.end(false)
				return
			}
		}
	})
	for {
		told := c.heard.take(c.ctx, 1)
		if told == nil {
			return
		}
		if p := told[0].parts; len(p) == 3 && p[0] == "message" && !c.line.seams.Told(c.ctx, p[1]+" "+p[2]) {
			c.end(false)
			return
		}
		c.out.put(told...)
	}
}
