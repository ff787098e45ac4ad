package fakeredis

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// The way of a server to Redis, and what may become of what is sent on it.

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
	c := &conn{line: l, requests: newQueue(), told: newQueue()}
	c.client = newEnd(func(batch []value) { c.requests.put(batch...) }, func() { c.end(false) })
	c.peer = peerOf(writer(c.says))
	c.ctx, c.cancel = context.WithCancel(context.Background())
	l.dialed++
	c.number = l.dialed
	l.conns[c] = true
	l.open.Go(c.work)
	return c.client, nil
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

// all returns the connections, in an order that does not hang on which of several a client has taken: those
// on which somebody waits come first, by what that is.
func (l *Line) all() (all []*conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		all = append(all, c)
	}
	busy := func(c *conn) int { return min(1, len(c.what)) }
	slices.SortFunc(all, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(busy(b), busy(a)), cmp.Compare(a.what, b.what), cmp.Compare(a.number, b.number))
	})
	return all
}

// conn is a connection.
type conn struct {
	line     *Line
	number   int // of those that there were
	client   *end
	peer     *server.Peer // its end at Redis
	ctx      context.Context
	cancel   context.CancelFunc
	requests *queue // that the server has sent
	told     *queue // what Redis has told a subscriber
	what     string // is under way on it; line.mu guards it

	mu      sync.Mutex
	listens bool   // it is subscribed
	replies []byte // what Redis has said, unless it is subscribed; then it is a part of a value
}

// end breaks the connection. One of a server that has vanished only does so by force.
func (c *conn) end(force bool) {
	c.client.hangUp()
	l := c.line
	l.mu.Lock()
	if !force && l.frozen || !l.conns[c] {
		l.mu.Unlock()
		return
	}
	delete(l.conns, c)
	l.mu.Unlock()
	c.cancel()
	c.mu.Lock()
	listens := c.listens
	c.mu.Unlock()
	if listens {
		l.redis.leave(c.peer)
	}
}

// says takes what Redis says.
func (c *conn) says(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies = append(c.replies, b...)
	if c.listens {
		var told []value
		told, c.replies, _ = valuesOf(c.replies) // Redis writes what can be read
		c.replies = slices.Clip(c.replies)
		c.told.put(told...)
	}
}

// answer takes what Redis has said.
func (c *conn) answer() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := c.replies
	c.replies = nil
	return said
}

// carries notes what is under way on the connection; empty for nothing.
func (c *conn) carries(what string) {
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	c.what = what
}

// work carries out what the server sends.
func (c *conn) work() {
	for {
		batch := c.requests.take(c.ctx, math.MaxInt)
		if batch == nil || !c.carry(batch) {
			c.end(false)
			return
		}
		if c.listens { // which only this goroutine changes
			c.tell()
			return
		}
	}
}

// carry carries requests out. It reports false if the connection breaks.
func (c *conn) carry(batch []value) bool {
	r, seams := requestOf(batch), c.line.seams
	switch {
	case subscribes(batch):
		c.mu.Lock()
		c.listens = true
		c.mu.Unlock()
		c.carries(r.Detail)
		c.subscribe(batch, r)
		return true
	case r.greets:
		c.line.redis.carry(c.peer, batch)
		c.client.put(c.answer())
		return true
	}
	c.carries(r.Name + " " + r.Detail)
	defer c.carries("")
	verdict := seams.Request(c.ctx, r, func() {
		c.line.redis.play(batch)
		seams.Carried(r)
	})
	if verdict == Lose || c.ctx.Err() != nil {
		return false
	}
	c.line.redis.carry(c.peer, batch)
	said := c.answer()
	seams.Carried(r)
	if verdict == Mute || verdict == Late && !seams.Reply(c.ctx, r) {
		return false
	}
	c.client.put(said)
	return true
}

// subscribe carries out what a subscriber sends. Nobody decides about that, so it only has its turn.
func (c *conn) subscribe(batch []value, r Request) {
	if c.line.seams.Turn(c.ctx, r.Name, r.Detail); c.ctx.Err() != nil {
		return
	}
	if c.line.redis.carry(c.peer, batch); c.ctx.Err() != nil { // it has ended meanwhile
		c.line.redis.leave(c.peer)
	}
}

// tell passes on what Redis tells a subscriber, and what that sends.
func (c *conn) tell() {
	c.line.open.Go(func() {
		for {
			batch := c.requests.take(c.ctx, math.MaxInt)
			if batch == nil {
				c.end(false)
				return
			}
			c.subscribe(batch, requestOf(batch))
		}
	})
	for {
		told := c.told.take(c.ctx, 1)
		if told == nil {
			return
		}
		if p := told[0].parts; len(p) == 3 && p[0] == "message" && !c.line.seams.Told(c.ctx, p[1]+" "+p[2]) {
			c.end(false)
			return
		}
		c.client.put(told[0].raw)
	}
}
