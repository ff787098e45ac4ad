package http

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Detached streams. A stream that has nothing to send for a while no longer needs what
// net/http keeps for its request: the stacks of all handlers, the request itself, and the
// buffers of the connection. So it takes the connection over, and its handler returns. What
// stays is the goroutine that writes the stream, and a small one that notices when the
// client leaves. On the wire nothing changes: the response goes on in chunks, and when it is
// complete, the connection serves the next request.
//
// Only a server of our own can do that, one that has nothing between the handler and the
// connection, and that takes connections back. With HTTP/2, TLS or another's server a stream
// stays in its handler.

// Detached are the connections that streams have taken over from one [http.Server].
type Detached struct {
	keep  time.Duration
	state func(net.Conn, http.ConnState)
	again func(c net.Conn, read []byte)

	mu      sync.Mutex
	open    map[*detached]bool
	closing bool
	wg      sync.WaitGroup // the streams, and those who read their connections
}

// NewDetached returns what Config.Detached needs. Its ConnContext must be the server's.
// keep is how long a connection may wait for its next request after a stream. state is told
// about connections as the server's ConnState is; again takes one back, with what has been
// read of the next request. Both must not block.
func NewDetached(keep time.Duration, state func(net.Conn, http.ConnState), again func(c net.Conn, read []byte)) *Detached {
	return &Detached{keep: keep, state: state, again: again, open: map[*detached]bool{}}
}

type detachedKey struct{}

// ConnContext marks the connections of the server.
func (d *Detached) ConnContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, detachedKey{}, d)
}

// takes reports whether the stream that answers a request may detach.
func (d *Detached) takes(r *http.Request) bool {
	if d == nil || r.TLS != nil || r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.Context().Value(detachedKey{}) != d {
		return false
	}
	body := recorderOf(r).body
	return body == nil || body.ended
}

// Shutdown waits until all streams have ended, which is not its own doing, and closes their
// connections. When ctx is done, it cuts them off, and returns its error.
func (d *Detached) Shutdown(ctx context.Context) error {
	d.each(true, func(c *detached) {
		if c.idle {
			_ = c.conn.Close() // nobody expects anything of it
		}
	})
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
	d.each(true, func(c *detached) { _ = c.conn.Close() })
	<-ended
	return ctx.Err()
}

// each calls f for every connection.
func (d *Detached) each(closing bool, f func(*detached)) {
	d.mu.Lock()
	d.closing = d.closing || closing
	all := make([]*detached, 0, len(d.open))
	for c := range d.open {
		all = append(all, c)
	}
	d.mu.Unlock()
	for _, c := range all {
		c.mu.Lock()
		f(c)
		c.mu.Unlock()
	}
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

// detached is a connection that a stream has taken over.
type detached struct {
	of     *Detached
	conn   net.Conn
	reuse  bool   // for the next request
	cancel func() // ends the stream

	mu   sync.Mutex
	idle bool   // the response has ended, and watch waits for the next request
	gone bool   // the client has left
	read []byte // of the next request
}

// take takes over the connection of a stream that has been silent, while nobody writes.
func (d *Detached) take(rec *recorder, reuse bool, cancel func()) *detached {
	if !d.enter() {
		return nil
	}
	c := &detached{of: d, reuse: reuse, cancel: cancel}
	conn, buffered, err := rec.rc.Hijack()
	if err != nil {
		d.wg.Done()
		return nil
	}
	c.conn = conn
	if n := buffered.Reader.Buffered(); n > 0 {
		c.read, _ = buffered.Reader.Peek(n) // there are n bytes
		c.read = append([]byte(nil), c.read...)
	}
	rec.detach(&chunks{conn: conn})
	d.mu.Lock()
	d.open[c] = true
	d.mu.Unlock()
	if c.read == nil {
		d.wg.Go(c.watch)
	}
	return c
}

// silence is how long a stream has nothing to send before it detaches. An answer that is
// being written does not pause for so long, and stays where its connection is looked after
// anyway.
const silence = time.Second

// inBackground sends a stream in a goroutine of its own, and looks now and then whether it
// is silent. If it then detaches, which s.opened tells, the handler can return; otherwise the
// result is how the stream has ended.
func (h *handler) inBackground(r *http.Request, s *streaming) ending {
	rec := recorderOf(r)
	ended := make(chan ending, 1)
	go func() {
		end := s.guarded()
		rec.writing.Lock()
		s.over = true
		c := s.taken
		rec.writing.Unlock()
		if c == nil {
			ended <- end
			return
		}
		h.Observer.StreamClosed()
		s.opened.end()
		h.done(context.Background(), rec, s.line)
		c.end(end == whole)
	}()
	look := time.NewTicker(silence)
	defer look.Stop()
	for {
		select {
		case end := <-ended:
			return end
		case <-look.C:
		}
		detached, tried := h.Detached.detach(rec, r, s)
		if detached {
			return whole
		}
		if tried {
			look.Stop()
		}
	}
}

// detach lets a stream take its connection over if it is silent. It tries that once.
func (d *Detached) detach(rec *recorder, r *http.Request, s *streaming) (detached, tried bool) {
	if !rec.writing.TryLock() {
		return false, false // it is writing
	}
	defer rec.writing.Unlock()
	if s.over || !rec.silent(silence) {
		return false, s.over
	}
	l := lineOf(rec, r)
	if s.taken = d.take(rec, !r.Close, s.cancel); s.taken == nil {
		return false, true
	}
	s.line = l
	s.opened.outlive()
	rec.thread, rec.run = strings.Clone(rec.thread), strings.Clone(rec.run) // they may be parts of a body
	return true, true
}

// watch waits until the client leaves or, although that ends nothing yet, sends its next
// request. It reads no more than the first byte of that.
func (c *detached) watch() {
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
		c.cancel()
	}
}

// end ends the response, and what has taken the connection over. A response that is not
// whole ends without its last chunk, so that the client notices.
func (c *detached) end(whole bool) {
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
		_ = c.conn.Close() // which wakes watch
	}
}

// stopping reports whether the server stops.
func (d *Detached) stopping() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// release gives the connection back to the server, or closes it.
func (c *detached) release() {
	c.of.mu.Lock()
	delete(c.of.open, c)
	closing := c.of.closing
	c.of.mu.Unlock()
	if !c.reuse || c.gone || closing {
		c.of.state(c.conn, http.StateClosed)
		_ = c.conn.Close()
		return
	}
	c.of.state(c.conn, http.StateActive)
	_ = c.conn.SetDeadline(time.Time{})
	c.of.again(c.conn, c.read)
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
