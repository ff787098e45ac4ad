// Package connections is the listener of a server: it bounds how many connections are open,
// knows which of them are needed for what, and closes those of which nobody needs anything
// when there is no room for another.
package connections

import (
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// Listener is a listener that bounds how many connections are open, in all and of one address.
// While all are in use, new ones wait in the kernel, and those of which nobody needs anything
// are closed to make room (see [room]): a client that opens connections and does nothing with
// them takes them from nobody. (netutil.LimitListener hides what a TCP connection can do
// besides reading and writing, which net/http uses to close one without losing the response.)
type Listener struct {
	net.Listener
	slots   chan struct{} // has room for as many as may be open
	changed func(n int)   // one more or one less is open
	refused func(c net.Conn)
	closed  chan struct{}
	once    sync.Once
	room    *room
}

// New returns a listener for so many connections. changed is told how many more or
// fewer are open, and refused of each that is closed because its address has too many.
func New(l net.Listener, most int, of PerAddress, changed func(n int), refused func(net.Conn)) *Listener {
	return &Listener{
		Listener: l,
		slots:    make(chan struct{}, most),
		changed:  changed,
		refused:  refused,
		closed:   make(chan struct{}),
		room:     newRoom(of),
	}
}

// Accept implements [net.Listener]. When many come at once, ready ones go first: the streams
// that go on, and the connection that came before.
func (l *Listener) Accept() (net.Conn, error) {
	runtime.Gosched()
	if err := l.wait(); err != nil {
		return nil, err
	}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		if held := l.hold(c); held != nil {
			l.changed(1)
			return held, nil
		}
		l.refused(c)
		_ = c.Close() // nothing was promised
	}
}

// hold makes a connection one that gives its slot back; nil if its address has too many.
func (l *Listener) hold(c net.Conn) heldConn {
	slot := &slot{from: l.room.of.address(c), room: l.room, closed: make(chan struct{})}
	slot.left = sync.OnceFunc(func() {
		close(slot.closed)
		l.room.leave(slot)
		l.changed(-1)
		<-l.slots
	})
	var held heldConn = &otherConn{Conn: c, slot: slot}
	if tcp, ok := c.(*net.TCPConn); ok {
		held = &tcpConn{TCPConn: tcp, slot: slot}
	}
	instead, entered := l.room.enter(slot)
	if instead != nil {
		_ = instead.Close() // nobody needs anything of it
	}
	if !entered {
		return nil
	}
	return held
}

// wait waits for a slot, and makes room for one.
func (l *Listener) wait() error {
	for {
		select {
		case l.slots <- struct{}{}:
			return nil
		default:
		}
		victim, later := l.room.first()
		if victim != nil {
			_ = victim.Close() // which gives its slot back
			continue
		}
		if err := l.pause(later); !errors.Is(err, errFull) {
			return err
		}
	}
}

// pause waits until there is a slot, which it takes, or until there may be something to close;
// then the error is errFull.
func (l *Listener) pause(later time.Duration) error {
	var due <-chan time.Time
	if later > 0 {
		t := time.NewTimer(later)
		defer t.Stop()
		due = t.C
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-l.room.wake:
	case <-due:
	case <-l.closed:
		return net.ErrClosed
	}
	return errFull
}

// State is for the [http.Server]'s ConnState.
func (l *Listener) State(c net.Conn, s http.ConnState) { l.room.state(c, s) }

// Clear closes the connections that have not sent a request to its end. The server no longer
// listens, and begins nothing.
func (l *Listener) Clear() { l.room.clear() }

// Close implements [net.Listener].
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
