package connections

import (
	"context"
	"net"
	"net/http"
)

// Connections that give their slot back when they are closed, and how one is served again that
// a stream had taken over.

// heldConn is a connection that has a slot.
type heldConn interface {
	net.Conn
	held() *slot
}

// tcpConn and otherConn are the connections that have a slot.
type (
	tcpConn struct {
		*net.TCPConn
		slot *slot
	}
	otherConn struct {
		net.Conn
		slot *slot
	}
)

func (c *tcpConn) held() *slot   { return c.slot }
func (c *otherConn) held() *slot { return c.slot }

// Read implements [net.Conn].
func (c *tcpConn) Read(b []byte) (int, error) { return c.slot.read(c, c.TCPConn, b) }

// Close implements [net.Conn].
func (c *tcpConn) Close() error {
	defer c.slot.left()
	return c.TCPConn.Close()
}

// Read implements [net.Conn].
func (c *otherConn) Read(b []byte) (int, error) { return c.slot.read(c, c.Conn, b) }

// Close implements [net.Conn].
func (c *otherConn) Close() error {
	defer c.slot.left()
	return c.Conn.Close()
}

// read reads what is unread before anything else.
func (p *slot) read(held heldConn, c net.Conn, b []byte) (int, error) {
	if len(p.unread) > 0 {
		n := copy(b, p.unread)
		p.unread = p.unread[n:]
		return n, nil
	}
	// net/http reads the rest of a request when it has sent the response.
	if p.spent.CompareAndSwap(true, false) {
		p.room.set(held, answered)
	}
	return c.Read(b)
}

type slotKey struct{}

// WithSlot lets the requests of a connection find it.
func WithSlot(ctx context.Context, c net.Conn) context.Context {
	if held, ok := c.(heldConn); ok {
		return context.WithValue(ctx, slotKey{}, held)
	}
	return ctx
}

// Awaiting notes whether the server waits for the body of a request.
func Awaiting(r *http.Request, waits bool) {
	held, ok := r.Context().Value(slotKey{}).(heldConn)
	switch {
	case !ok:
	case waits:
		held.held().room.set(held, sending)
	default:
		held.held().room.set(held, busy)
	}
}

// Refused notes that all that is to come on the connection of a request is its refusal. It returns
// what is closed when the connection is.
func Refused(r *http.Request) (closed <-chan struct{}) {
	held, ok := r.Context().Value(slotKey{}).(heldConn)
	if !ok {
		return nil
	}
	held.held().room.set(held, answered)
	return held.held().closed
}

// Unread notes that a request is answered although its body has not been read to its end.
func Unread(r *http.Request) {
	if held, ok := r.Context().Value(slotKey{}).(heldConn); ok {
		held.held().spent.Store(true)
	}
}

// again is a listener of one connection that was served before.
type again struct {
	net.Listener
	conn net.Conn
}

// ServeAgain has a server serve a connection that has been taken from it; unread is what has
// been read of the next request.
func ServeAgain(s *http.Server, of net.Listener, c net.Conn, unread []byte) {
	if held, ok := c.(heldConn); ok {
		held.held().unread = unread
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
