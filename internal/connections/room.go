package connections

// Which connections are closed when there is no room for another: those of which nobody needs
// anything. A client that has sent its request and reads its answer keeps its connection,
// whatever others do.

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
)

// errFull says that all connections are in use.
var errFull = errors.New("all connections are in use")

// stage is what a connection is needed for. Those of an earlier stage are closed first.
type stage int

const (
	// idle connections are kept for a next request.
	idle stage = iota
	// answered ones had their response before their request was read to its end: the rest is
	// read only so that the client finds the response. Or they wait for a refusal.
	answered
	// silent ones have not sent the header of their first request to its end.
	silent
	// sending ones have not sent the body of their request to its end.
	sending
	// busy ones are not closed.
	busy
)

// How long a header and a body may take while other connections wait. A client that means to
// sends a header at once.
const (
	HeaderTime = time.Second
	BodyTime   = 5 * time.Second
)

// grace returns how long a connection of the stage is not closed.
func (s stage) grace() time.Duration {
	switch s {
	case silent:
		return HeaderTime
	case sending:
		return BodyTime
	}
	return 0
}

// PerAddress bounds the connections of one address.
type PerAddress struct {
	Most     int  // how many; 0 for any number
	Loopback bool // the addresses of this machine are bounded, too
}

// address returns the address that a connection counts for; the zero one if it is not
// bounded. A client that has an IPv6 address has 2^64 of them.
func (b PerAddress) address(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok || b.Most == 0 {
		return netip.Addr{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	if a.IsLoopback() && !b.Loopback {
		return netip.Addr{}
	}
	if a.Is6() {
		network, _ := a.Prefix(64) // which has an error only for more than 128
		return network.Addr()
	}
	return a
}

// slot is what is known of an open connection.
type slot struct {
	from   netip.Addr // the zero address is not counted
	room   *room
	left   func() // is called when it is closed
	closed chan struct{}
	unread []byte      // is read before anything else
	spent  atomic.Bool // its request is answered: what is read from now on is thrown away

	// The room's mu guards these.
	stage  stage
	since  clock.Moment
	inAll  *list.Element
	inHost *list.Element
}

// room knows the connections that may be closed.
type room struct {
	of PerAddress
	// wake has an element after a connection has become one that may be closed.
	wake chan struct{}

	mu      sync.Mutex
	all     closable
	hosts   map[netip.Addr]*host
	cleared bool
}

// host is one address.
type host struct {
	open int
	closable
}

func newRoom(of PerAddress) *room {
	return &room{of: of, wake: make(chan struct{}, 1), hosts: map[netip.Addr]*host{}}
}

// closable has the connections of each stage, those that have been in it for longest first.
type closable struct{ stages [busy]list.List }

// first returns the connection to close first or, without one, when there may be one; 0 if
// that cannot be known.
func (q *closable) first() (c heldConn, later time.Duration) {
	for s := range q.stages {
		e := q.stages[s].Front()
		if e == nil {
			continue
		}
		c, _ = e.Value.(heldConn)
		left := stage(s).grace() - c.held().since.Ran()
		if left <= 0 {
			return c, 0
		}
		if later == 0 || left < later {
			later = left
		}
	}
	return nil, later
}

// first returns the connection to close first, if there is one, and forgets it.
func (r *room) first() (c heldConn, later time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, later = r.all.first(); c != nil {
		r.move(c, busy)
	}
	return c, later
}

func (r *room) clear() {
	r.mu.Lock()
	r.cleared = true
	var all []net.Conn
	for s := range r.all.stages {
		for e := r.all.stages[s].Front(); e != nil; e = e.Next() {
			c, _ := e.Value.(heldConn)
			all = append(all, c)
		}
	}
	r.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// enter counts a connection for its address. If that has as many as it may, another of its
// connections is to be closed instead; without one, the new one is not let in.
func (r *room) enter(p *slot) (instead heldConn, entered bool) {
	p.stage = busy
	if !p.from.IsValid() {
		return nil, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hosts[p.from]
	if h == nil {
		h = &host{}
		r.hosts[p.from] = h
	}
	if h.open >= r.of.Most {
		if instead, _ = h.first(); instead == nil {
			return nil, false
		}
		r.move(instead, busy)
	}
	h.open++
	return instead, true
}

// leave says that a connection is closed.
func (r *room) leave(p *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(p)
	p.stage = busy
	if h := r.hosts[p.from]; h != nil {
		if h.open--; h.open == 0 {
			delete(r.hosts, p.from)
		}
	}
}

// state notes what a connection is needed for now.
func (r *room) state(c net.Conn, s http.ConnState) {
	held, ok := c.(heldConn)
	if !ok {
		return
	}
	to := busy
	switch s {
	case http.StateIdle:
		to = idle
	case http.StateNew:
		if to = silent; r.isCleared() {
			_ = c.Close() // it came at the last moment
		}
	}
	r.set(held, to)
}

func (r *room) isCleared() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cleared
}

// set notes the stage of a connection.
func (r *room) set(c heldConn, to stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.move(c, to)
	if to == busy {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// move puts a connection at the end of those of a stage. The caller holds mu.
func (r *room) move(c heldConn, to stage) {
	p := c.held()
	r.forget(p)
	p.stage, p.since = to, clock.Now()
	if to == busy {
		return
	}
	p.inAll = r.all.stages[to].PushBack(c)
	if h := r.hosts[p.from]; h != nil {
		p.inHost = h.stages[to].PushBack(c)
	}
}

// forget removes a connection from those that may be closed. The caller holds mu.
func (r *room) forget(p *slot) {
	if p.inAll == nil {
		return
	}
	r.all.stages[p.stage].Remove(p.inAll)
	if h := r.hosts[p.from]; h != nil && p.inHost != nil {
		h.stages[p.stage].Remove(p.inHost)
	}
	p.inAll, p.inHost = nil, nil
}
