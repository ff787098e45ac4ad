package e2e

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// link is a slow link to a Redis: a proxy that delays each direction, and whose connections the
// test can reset.
type link struct {
	// Addr is where to connect to.
	Addr   string
	to     string
	oneWay time.Duration
	listen net.Listener
	done   sync.WaitGroup

	mu    sync.Mutex
	open  map[*linked]bool
	ended bool
}

// linked is one connection through the link.
type linked struct{ client, server *net.TCPConn }

// startLink begins a link to an address that takes so long for one way. It ends with the test.
func startLink(t testing.TB, to string, oneWay time.Duration) *link {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{
		Addr:   listen.Addr().String(),
		to:     to,
		oneWay: oneWay,
		listen: listen,
		open:   map[*linked]bool{},
	}
	l.done.Go(l.accept)
	t.Cleanup(func() {
		l.mu.Lock()
		l.ended = true
		l.mu.Unlock()
		_ = l.listen.Close() // it only listens
		l.Reset()
		l.done.Wait()
	})
	return l
}

// URL is the one of the Redis at its other end.
func (l *link) URL() string { return "redis://" + l.Addr }

// Reset resets all connections. The server notices at once, and the client one way later.
func (l *link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.open {
		// Nothing follows on either side, so their errors say nothing.
		_, _ = w.server.SetLinger(0), w.server.Close()
		l.done.Go(func() {
			wait.Pass(l.oneWay)
			_, _ = w.client.SetLinger(0), w.client.Close()
		})
	}
	clear(l.open)
}

// accept serves connections until the link ends.
func (l *link) accept() {
	for {
		c, err := l.listen.Accept()
		if err != nil {
			return
		}
		l.done.Go(func() { l.serve(c.(*net.TCPConn)) })
	}
}

// serve connects one client. A connection over such a link takes a round trip to begin.
func (l *link) serve(client *net.TCPConn) {
	wait.Pass(2 * l.oneWay)
	s, err := net.Dial("tcp", l.to)
	if err != nil {
		_ = client.Close() // which is all that the client learns
		return
	}
	w := &linked{client, s.(*net.TCPConn)}
	l.mu.Lock()
	ended := l.ended
	l.open[w] = !ended
	l.mu.Unlock()
	if ended {
		l.Reset()
		return
	}
	l.done.Go(func() { l.carry(w.server, w.client) })
	l.carry(w.client, w.server)
}

// carry carries what comes from one end to the other, one way later.
func (l *link) carry(from, to *net.TCPConn) {
	type chunk struct {
		data []byte
		at   time.Time
	}
	chunks := make(chan chunk, 1<<12)
	l.done.Go(func() {
		for c := range chunks {
			wait.Pass(time.Until(c.at))
			if _, err := to.Write(c.data); err != nil {
				_ = from.Close() // so that nothing more comes
			}
		}
		_ = to.CloseWrite() // it may be closed already
	})
	defer close(chunks)
	for {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		if n > 0 {
			chunks <- chunk{buf[:n], time.Now().Add(l.oneWay)}
		}
		if err != nil {
			return
		}
	}
}
