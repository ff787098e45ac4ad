package connections

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// bounded is a server behind a Listener of so many connections.
type bounded struct {
	*testing.T
	*Listener
	end func() // closes the server, and waits for its end
}

// serve starts a server that says ok when handle returns.
func serve(t *testing.T, most int, changed func(n int), handle func(*http.Request)) *bounded {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all := New(l, most, PerAddress{}, changed, nil)
	s := &http.Server{
		ConnState:   all.State,
		ConnContext: WithSlot,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handle(r)
			_, _ = io.WriteString(w, "ok")
		}),
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(all) }()
	return &bounded{t, all, func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}}
}

// get asks for a path on a new connection.
func (l *bounded) get(path string) *bufio.Reader {
	l.Helper()
	c, err := new(net.Dialer).DialContext(l.Context(), "tcp", l.Addr().String())
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		l.Fatal(err)
	}
	return bufio.NewReader(c)
}

// answered reads an answer.
func (l *bounded) answered(in *bufio.Reader) {
	l.Helper()
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		l.Fatal(err)
	}
	if text, err := io.ReadAll(res.Body); err != nil || string(text) != "ok" {
		l.Fatalf("%q, %v", text, err)
	}
}

// TestConnections: no more connections are open than allowed; idle ones make room for new
// ones, busy ones do not; and all of them are counted.
func TestConnections(t *testing.T) {
	var open, most atomic.Int64
	busy, release := make(chan struct{}), make(chan struct{})
	l := serve(t, 2, func(n int) {
		if now := open.Add(int64(n)); now > most.Load() {
			most.Store(now)
		}
	}, func(r *http.Request) {
		if r.URL.Path == "/busy" {
			busy <- struct{}{}
			<-release
		}
	})
	first := l.get("/busy")
	<-busy
	idle := l.get("/")
	l.answered(idle) // and now it is idle
	third := l.get("/")
	l.answered(third)
	if _, err := idle.ReadByte(); err == nil {
		t.Error("the idle connection is still open")
	}
	second := l.get("/busy") // takes the place of the third
	<-busy
	waits := l.get("/")
	release <- struct{}{}
	l.answered(first) // and its connection makes room
	l.answered(waits)
	release <- struct{}{}
	l.answered(second)
	if most.Load() != 2 {
		t.Errorf("%d connections were open at a time", most.Load())
	}
	l.end()
	if _, err := l.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
	if open.Load() != 0 {
		t.Errorf("%d connections count as open after the end", open.Load())
	}
}

// TestConnectionsComeBack: a connection that a response has taken over serves the next
// request afterwards, all of it, and counts as open once, until it is closed.
func TestConnectionsComeBack(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open, opened atomic.Int64
	limited := New(l, 2, PerAddress{}, func(n int) {
		open.Add(int64(n))
		opened.Add(int64(max(n, 0)))
	}, nil)
	taken, proceed := make(chan struct{}), make(chan struct{})
	s := &http.Server{ConnState: limited.State}
	conns := NewDetached(time.Minute, limited.State, func(c net.Conn, read []byte) { ServeAgain(s, limited, c, read) })
	s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return conns.ConnContext(ctx) }
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_, _ = io.WriteString(w, "before, ")
		if err := rc.Flush(); err != nil || !conns.Takes(r) {
			t.Errorf("the connection cannot be taken over: %v", err)
		}
		c, rest := conns.Take(rc, r, func() {})
		if c == nil {
			t.Error("the connection was not taken over")
			return
		}
		go func() {
			<-proceed
			_, _ = io.WriteString(rest, "after")
			c.End(true)
		}()
		taken <- struct{}{}
	})
	served := make(chan error)
	go func() { served <- s.Serve(limited) }()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	in := bufio.NewReader(client)
	for n := range 3 {
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-taken
		proceed <- struct{}{}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "before, after" {
			t.Errorf("response %d is %q, %v", n, body, err)
		}
	}
	if open.Load() != 1 || opened.Load() != 1 {
		t.Errorf("%d connections are open, %d were opened", open.Load(), opened.Load())
	}
	if err := errors.Join(conns.Shutdown(t.Context()), s.Close()); err != nil {
		t.Error(err)
	}
	<-served
	if open.Load() != 0 {
		t.Errorf("%d connections count as open after the end", open.Load())
	}
	// Any connection that comes back after the end is closed.
	one, two := net.Pipe()
	ServeAgain(s, limited, &otherConn{Conn: two, slot: &slot{left: func() {}}}, []byte("x"))
	if _, err := one.Read(make([]byte, 1)); err == nil {
		t.Error("a server that has stopped serves a connection")
	}
}

// TestRefusedMakesRoom: a connection whose request waits for its refusal is closed when there is no
// room for another one.
func TestRefusedMakesRoom(t *testing.T) {
	waits := make(chan struct{})
	l := serve(t, 1, func(int) {}, func(r *http.Request) {
		if r.URL.Path == "/refused" {
			closed := Refused(r)
			waits <- struct{}{}
			<-closed
		}
	})
	refused := l.get("/refused")
	<-waits
	l.answered(l.get("/"))
	if _, err := refused.ReadByte(); err == nil {
		t.Error("the refused one was answered, and kept its connection")
	}
	l.end()
}
