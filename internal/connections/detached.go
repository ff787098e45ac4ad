package connections

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Responses that outlive their handlers. A stream that has nothing to send for a while no longer
// needs what net/http keeps for its request: the stacks of all handlers, the request itself, and
// the buffers of the connection. So it takes the connection over, and
// its handler returns. Only the goroutine that writes the stream remains, and a small one that
// notices when the client leaves. On the wire nothing changes: the response goes on in chunks,
// and when it is complete, the connection serves the next request.
//
// Only a server of our own can do that, one that has nothing between the handler and the
// connection, and that takes connections back. With HTTP/2, TLS or another's server a stream
// stays in its handler.

// Detached are the connections that streams have taken over from one [http.Server]. A nil
// *Detached takes over none.
type Detached struct {
	keep  time.Duration
	state func(net.Conn, http.ConnState)
	again func(c net.Conn, read []byte)

	mu      sync.Mutex
	open    map[*DetachedConn]bool
	closing bool
	wg      sync.WaitGroup // the streams, and those who read their connections
}

// NewDetached returns the Detached of a server whose ConnContext is that of the result. keep is how long
// a connection may wait for its next request after a stream. state is told about connections
// as the server's ConnState is; again takes one back, with what has been read of the next
// request. Both must not block.
func NewDetached(
	keep time.Duration, state func(net.Conn, http.ConnState), again func(c net.Conn, read []byte),
) *Detached {
	return &Detached{keep: keep, state: state, again: again, open: map[*DetachedConn]bool{}}
}

type detachedKey struct{}

// ConnContext marks the connections of the server.
func (d *Detached) ConnContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, detachedKey{}, d)
}

// Takes reports whether the connection of a request whose body has been read can be taken
// over.
func (d *Detached) Takes(r *http.Request) bool {
	return d != nil && r.TLS == nil && r.ProtoMajor == 1 && r.ProtoMinor > 0 && r.Context().Value(detachedKey{}) == d
}

// Shutdown waits until all streams have ended, which is not its own doing, and closes their
// connections. When ctx is done, it cuts them off, and returns its error.
func (d *Detached) Shutdown(ctx context.Context) error {
	for _, c := range d.close() {
		c.closeIdle()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.wg.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	for _, c := range d.close() {
		_ = c.conn.Close()
		c.left()
	}
	<-ended
	return ctx.Err()
}

// close says that the server stops, and returns the connections.
func (d *Detached) close() []*DetachedConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing = true
	return slices.Collect(maps.Keys(d.open))
}

// enter counts a stream, unless the server stops.
func (d *Detached) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return false
	}
	d.wg.Add(1)
	return true
}

// DetachedConn is a connection that a stream has taken over.
type DetachedConn struct {
	of    *Detached
	conn  net.Conn
	reuse bool   // for the next request
	left  func() // is called when the client leaves

	mu   sync.Mutex
	idle bool   // the response has ended, and watch waits for the next request
	gone bool   // the client has left
	read []byte // of the next request
}

// Take takes over the connection of a request, while nobody writes and all that was written
// has been sent, and returns what the response goes on with. gone is called when the client
// leaves. The result is nil if that is not possible, and nothing has changed then.
func (d *Detached) Take(
	rc *http.ResponseController, r *http.Request, gone func(),
) (*DetachedConn, http.ResponseWriter) {
	if !d.enter() {
		return nil, nil
	}
	conn, buffered, err := rc.Hijack()
	if err != nil {
		d.wg.Done()
		return nil, nil
	}
	c := &DetachedConn{of: d, conn: conn, reuse: !r.Close, left: gone}
	if n := buffered.Reader.Buffered(); n > 0 {
		read, _ := buffered.Reader.Peek(n) // there are n bytes
		c.read = bytes.Clone(read)
	}
	d.mu.Lock()
	d.open[c] = true
	d.mu.Unlock()
	if c.read == nil {
		d.wg.Go(c.watch)
	}
	return c, &chunks{conn: conn}
}

// watch waits until the client leaves or, although that ends nothing yet, sends its next
// request. It reads no more than the first byte of that.
func (c *DetachedConn) watch() {
	first := make([]byte, 1)
	n, _ := c.conn.Read(first) // with or without an error, what counts is whether there is a byte
	c.mu.Lock()
	if c.gone = n == 0; !c.gone {
		c.read = first
	}
	idle, gone := c.idle, c.gone
	c.mu.Unlock()
	switch {
	case idle:
		c.release()
	case gone:
		c.left()
	}
}

// End ends the response, and what has taken the connection over. A response that is not
// whole ends without its last chunk, so that the client notices.
func (c *DetachedConn) End(whole bool) {
	defer c.of.wg.Done()
	if whole {
		_, err := c.conn.Write([]byte("0\r\n\r\n"))
		whole = err == nil
	}
	c.mu.Lock()
	c.reuse = c.reuse && whole
	c.idle = c.reuse && !c.gone && c.read == nil
	if c.idle {
		c.of.state(c.conn, http.StateIdle)
		_ = c.conn.SetReadDeadline(time.Now().Add(c.of.keep))
	}
	idle := c.idle
	c.mu.Unlock()
	switch {
	case !idle:
		c.release()
	case c.of.stopping():
		c.closeIdle()
	}
}

// stopping reports whether the server stops.
func (d *Detached) stopping() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// closeIdle closes a connection of which nobody expects anything.
func (c *DetachedConn) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle {
		_ = c.conn.Close() // which wakes watch
	}
}

// release gives the connection back to the server, or closes it.
func (c *DetachedConn) release() {
	c.of.mu.Lock()
	delete(c.of.open, c)
	closing := c.of.closing
	c.of.mu.Unlock()
	c.mu.Lock() // watch may see the client leave just now
	back, read := c.reuse && !c.gone && !closing, c.read
	c.mu.Unlock()
	if !back {
		c.of.state(c.conn, http.StateClosed)
		_ = c.conn.Close()
		return
	}
	c.of.state(c.conn, http.StateActive)
	_ = c.conn.SetDeadline(time.Time{})
	c.of.again(c.conn, read)
}

// chunks is the response of a detached stream: what is written is sent at once, as a chunk.
type chunks struct {
	conn net.Conn
	head [12]byte
	tail [2]byte
}

// Header implements [http.ResponseWriter]. The header has been sent.
func (c *chunks) Header() http.Header { return http.Header{} }

// WriteHeader implements [http.ResponseWriter].
func (c *chunks) WriteHeader(int) {}

// Write implements [http.ResponseWriter].
func (c *chunks) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil // an empty chunk would be the end
	}
	c.tail = [2]byte{'\r', '\n'}
	head := append(strconv.AppendInt(c.head[:0], int64(len(b)), 16), c.tail[:]...)
	parts := net.Buffers{head, b, c.tail[:]}
	if _, err := parts.WriteTo(c.conn); err != nil {
		return 0, err
	}
	return len(b), nil
}

// FlushError is for [http.ResponseController].
func (c *chunks) FlushError() error { return nil }

// SetWriteDeadline is for [http.ResponseController].
func (c *chunks) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }
