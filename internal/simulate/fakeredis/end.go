package fakeredis

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// end is a client's end of a connection. No goroutine is between it and the one that takes what the
// client sends, and it never waits to be read. It implements [net.Conn].
type end struct {
	sent   func(batch []value) // called with what the client has sent together
	closed func()              // called when the client closes the connection

	mu      sync.Mutex
	part    []byte // what the client has sent of a value that is not whole
	batch   []value
	arrived []byte // what the client has not read
	over    bool
	until   time.Time     // when the client stops reading; zero for never
	woken   chan struct{} // something has changed for who reads
}

func newEnd(sent func([]value), closed func()) *end {
	return &end{sent: sent, closed: closed, woken: make(chan struct{}, 1)}
}

// Write implements [net.Conn]. Requests that were sent together stay together.
func (e *end) Write(b []byte) (int, error) {
	e.mu.Lock()
	if e.over {
		e.mu.Unlock()
		return 0, io.ErrClosedPipe
	}
	values, part, err := valuesOf(append(e.part, b...)) // of which the values keep what they need
	e.part, e.batch = part[:len(part):len(part)], append(e.batch, values...)
	var batch []value
	if len(part) == 0 {
		e.part, batch, e.batch = nil, e.batch, nil
	}
	e.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if len(batch) > 0 {
		e.sent(batch)
	}
	return len(b), nil
}

// Read implements [net.Conn].
func (e *end) Read(b []byte) (int, error) {
	for {
		e.mu.Lock()
		until := e.until
		switch {
		case len(e.arrived) > 0:
			n := copy(b, e.arrived)
			if e.arrived = e.arrived[n:]; len(e.arrived) == 0 {
				e.arrived = nil
			}
			e.mu.Unlock()
			return n, nil
		case e.over:
			e.mu.Unlock()
			return 0, io.EOF
		}
		e.mu.Unlock()
		if err := e.wait(until); err != nil {
			return 0, err
		}
	}
}

// wait waits until something has changed.
func (e *end) wait(until time.Time) error {
	if until.IsZero() {
		<-e.woken
		return nil
	}
	left := time.Until(until)
	if left <= 0 {
		return os.ErrDeadlineExceeded
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-e.woken:
	case <-timer.C:
	}
	return nil
}

// wake has who reads look again. The caller holds the lock.
func (e *end) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

// put has something arrive.
func (e *end) put(data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.arrived = append(e.arrived, data...)
	e.wake()
}

// hangUp breaks the connection from the other side. It reports false if it was over.
func (e *end) hangUp() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.over
	e.over = true
	e.wake()
	return !was
}

// Close implements [net.Conn].
func (e *end) Close() error {
	if e.hangUp() {
		e.closed()
	}
	return nil
}

// SetReadDeadline implements [net.Conn].
func (e *end) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until = t
	e.wake()
	return nil
}

// The other methods of [net.Conn].

func (e *end) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error { return nil }
func (e *end) LocalAddr() net.Addr              { return address{} }
func (e *end) RemoteAddr() net.Addr             { return address{} }

// address is that of both ends.
type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory" }
