package server

import (
	"container/list"
	"net"
	"net/http"
	"runtime"
	"sync"
)

// The connections of a server that listens itself: how many may be open, which are closed to
// make room, and how one is served again that a stream had taken over.

// connections is a listener that bounds how many connections are open. While all are in
// use, new ones wait in the kernel, and those that are only kept for a next request are
// closed to make room: whoever opens connections and leaves them idle takes them from
// nobody. (netutil.LimitListener hides what a TCP connection can do besides reading and
// writing, which net/http uses to close one without losing the response.)
type connections struct {
	net.Listener
	slots   chan struct{} // has room for as many as may be open
	changed func(n int)   // one more or one less is open
	closed  chan struct{}
	once    sync.Once

	mu      sync.Mutex
	idle    *list.List // of net.Conn, the longest idle first
	places  map[net.Conn]*list.Element
	waiting bool // a new connection waits for a slot
}

func newConnections(l net.Listener, most int, changed func(n int)) *connections {
	return &connections{
		Listener: l, slots: make(chan struct{}, most), changed: changed, closed: make(chan struct{}),
		idle: list.New(), places: map[net.Conn]*list.Element{},
	}
}

// Accept implements [net.Listener]. When many come at once, whoever is ready goes first: the
// streams that go on, and the connection that came before.
func (l *connections) Accept() (net.Conn, error) {
	runtime.Gosched()
	select {
	case l.slots <- struct{}{}:
	default:
		if err := l.wait(); err != nil {
			return nil, err
		}
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	l.changed(1)
	done := sync.OnceFunc(func() {
		l.changed(-1)
		<-l.slots
	})
	if tcp, ok := c.(*net.TCPConn); ok {
		return &tcpConn{TCPConn: tcp, done: done}, nil
	}
	return &otherConn{Conn: c, done: done}, nil
}

// wait makes room, and waits for it.
func (l *connections) wait() error {
	l.mu.Lock()
	l.waiting = true
	var victim net.Conn
	if first := l.idle.Front(); first != nil {
		victim, _ = first.Value.(net.Conn)
		l.drop(victim)
	}
	l.mu.Unlock()
	if victim != nil {
		_ = victim.Close() // it has done what it was for
	}
	defer func() {
		l.mu.Lock()
		l.waiting = false
		l.mu.Unlock()
	}()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-l.closed:
		return net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *connections) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// state is the [http.Server]'s ConnState: it notes which connections are idle.
func (l *connections) state(c net.Conn, s http.ConnState) {
	l.mu.Lock()
	l.drop(c)
	victim := s == http.StateIdle && l.waiting
	if s == http.StateIdle && !victim {
		l.places[c] = l.idle.PushBack(c)
	}
	l.mu.Unlock()
	if victim {
		_ = c.Close()
	}
}

// drop forgets an idle connection. The caller holds mu.
func (l *connections) drop(c net.Conn) {
	if e := l.places[c]; e != nil {
		l.idle.Remove(e)
		delete(l.places, c)
	}
}

// tcpConn and otherConn are connections that give their slot back when they are closed.
type (
	tcpConn struct {
		*net.TCPConn
		done   func()
		unread []byte
	}
	otherConn struct {
		net.Conn
		done   func()
		unread []byte
	}
)

// Read implements [net.Conn].
func (c *tcpConn) Read(b []byte) (int, error) { return readFirst(&c.unread, c.TCPConn, b) }

// Close implements [net.Conn].
func (c *tcpConn) Close() error {
	defer c.done()
	return c.TCPConn.Close()
}

// Read implements [net.Conn].
func (c *otherConn) Read(b []byte) (int, error) { return readFirst(&c.unread, c.Conn, b) }

// Close implements [net.Conn].
func (c *otherConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}

// readFirst reads what is unread before anything else.
func readFirst(unread *[]byte, c net.Conn, b []byte) (int, error) {
	if len(*unread) == 0 {
		return c.Read(b)
	}
	n := copy(b, *unread)
	*unread = (*unread)[n:]
	return n, nil
}

// again is a listener of one connection that was served before.
type again struct {
	net.Listener
	conn net.Conn
}

// serveAgain has a server serve a connection that has been taken from it; unread is what has
// been read of the next request.
func serveAgain(s *http.Server, of net.Listener, c net.Conn, unread []byte) {
	switch c := c.(type) {
	case *tcpConn:
		c.unread = unread
	case *otherConn:
		c.unread = unread
	}
	l := &again{of, c}
	// The error says that there is no further connection, or that the server has stopped.
	_ = s.Serve(l)
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// Accept implements [net.Listener].
func (l *again) Accept() (net.Conn, error) {
	c := l.conn
	if l.conn = nil; c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements [net.Listener]. The one that the connection came from stays open.
func (l *again) Close() error { return nil }
