package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/connections"
)

// dialed is a listener whose connections are pipes, from the address that the client chooses.
type dialed struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// from is a connection of an address.
type from struct {
	net.Conn
	addr net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

func (l *dialed) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *dialed) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *dialed) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects a client of an address, and waits until it is accepted.
func (l *dialed) dial(t *testing.T, address string) net.Conn {
	client, server := net.Pipe()
	select {
	case l.conns <- from{server, &net.TCPAddr{IP: net.ParseIP(address), Port: 1}}:
		t.Cleanup(func() { _ = client.Close() })
	case <-l.closed: // the test is over
		_ = client.Close()
	}
	return client
}

// crowded starts a server for callers with a key in the bubble of the test.
func crowded(t *testing.T, change func(*Config)) *dialed {
	t.Helper()
	c := Config{
		Store: "memory:", Log: slog.New(slog.DiscardHandler), MaxConnections: 300,
		Agents: []holdfast.Agent{{Name: "a", Model: holdfast.ModelFunc(sayYes)}},
		Authenticate: func(r *http.Request) (holdfast.Principal, error) {
			if user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
				return holdfast.Principal{Tenant: "acme", User: user}, nil
			}
			return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "A key is missing.").
				WithHint("Send one.")
		},
	}
	change(&c)
	s, err := New(c)
	if err == nil {
		err = s.StartEngine(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	l := &dialed{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.front.listen(l)
	s.front.serve(s.handler)
	t.Cleanup(func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l
}

// sayYes answers.
func sayYes(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		yield(holdfast.Delta{Text: "yes", Finish: holdfast.FinishStop}, nil)
	}
}

// attack opens n connections that send this and read whatever comes, one after the other
// while the server accepts them.
func (l *dialed) attack(t *testing.T, n int, address, text string) {
	for range n {
		conn := l.dial(t, address)
		go func() { _, _ = io.WriteString(conn, text) }()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
}

// runs makes a run on a new connection, and returns what comes of it.
func (l *dialed) runs(t *testing.T, address string) (string, error) {
	conn := l.dial(t, address)
	body := `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"hi"}]}`
	go func() {
		_, _ = fmt.Fprintf(conn, "POST /runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: "+
			"Bearer alice\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	return string(all), err
}

// TestNoRoom: clients that take all connections and send nothing, half a request, or one that
// is refused take them from nobody for longer than a moment.
func TestNoRoom(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		within time.Duration
	}{
		"nothing sent":           {"", connections.HeaderTime},
		"half a header":          {"POST /runs HTTP/1.1\r\nHost: localhost\r\nConte", connections.HeaderTime},
		"a second request, half": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he", 0},
		"refused, length and no body": {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"application/json\r\nContent-Length: 100\r\n\r\n",
			0},
		"refused, half a body": {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"text/plain\r\nContent-Length: 100\r\n\r\nhalf",
			0},
		"a key, length and no body": {"POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
			"mallory\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
			connections.BodyTime},
		"a key, half a body": {"POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
			"mallory\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
			connections.BodyTime},
		"not taken, no body": {"GET /threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := crowded(t, func(*Config) {})
				go l.attack(t, 350, "127.0.0.1", c.text)
				synctest.Wait() // all places are taken, and more connections wait
				began := time.Now()
				said, err := l.runs(t, "127.0.0.1")
				if err != nil || !strings.Contains(said, "RUN_FINISHED") {
					t.Errorf("%v\n%s", err, said)
				}
				if took := time.Since(began); took > c.within {
					t.Errorf("it took %s, want %s at most", took, c.within)
				}
			})
		})
	}
}

// TestConnectionsOfAnAddress: one address has a quarter of the connections, this machine as
// many as there are, unless the configuration says otherwise.
func TestConnectionsOfAnAddress(t *testing.T) {
	request := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
	for name, c := range map[string]struct {
		address string
		change  func(*Config)
		served  int // of 120 that have begun a request
	}{
		"by default":             {"192.0.2.1", func(*Config) {}, 75},
		"IPv6, of one network":   {"2001:db8::%x", func(*Config) {}, 75},
		"IPv6, of many networks": {"2001:db8:0:%x::1", func(*Config) {}, 120},
		"this machine":           {"127.0.0.1", func(*Config) {}, 120},
		"IPv4 in IPv6":           {"::ffff:192.0.2.1", func(*Config) {}, 75},
		"behind a proxy here":    {"192.0.2.1", func(c *Config) { c.Authenticate, c.BehindProxy = nil, true }, 120},
		"turned off":             {"192.0.2.1", func(c *Config) { c.MaxConnectionsPerAddress = -1 }, 120},
		"a number":               {"192.0.2.1", func(c *Config) { c.MaxConnectionsPerAddress = 10 }, 10},
		"a number, this machine": {"127.0.0.1", func(c *Config) { c.MaxConnectionsPerAddress = 10 }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := crowded(t, c.change)
				var all []net.Conn
				for n := range 120 {
					address := c.address
					if strings.Contains(address, "%") {
						address = fmt.Sprintf(address, n+1)
					}
					conn := l.dial(t, address)
					all = append(all, conn)
					go func() { _, _ = io.WriteString(conn, request) }()
				}
				synctest.Wait()
				served := 0
				for _, conn := range all {
					go func() { _, _ = io.WriteString(conn, "\r\n") }()
					res, err := http.ReadResponse(bufio.NewReader(conn), nil)
					if err == nil && res.StatusCode == http.StatusOK {
						served++
					} else if err == nil || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
						t.Errorf("there is no end, but %v", err)
					}
				}
				if served != c.served {
					t.Errorf("%d of %d were served, want %d", served, len(all), c.served)
				}
			})
		})
	}
}

// TestRoomOfAnAddress: an address that has all of its connections gives up those that it does
// not need for new ones.
func TestRoomOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := crowded(t, func(c *Config) { c.MaxConnectionsPerAddress = 10 })
		go l.attack(t, 10, "192.0.2.1", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait() // they have been served, and are kept
		if said, err := l.runs(t, "192.0.2.1"); err != nil || !strings.Contains(said, "RUN_FINISHED") {
			t.Errorf("%v\n%s", err, said)
		}
		go l.attack(t, 20, "192.0.2.2", "GET /heal")
		synctest.Wait()
		if said, err := l.runs(t, "192.0.2.2"); err == nil {
			t.Errorf("a connection too many is served at once: %s", said)
		}
		time.Sleep(connections.HeaderTime)
		if said, err := l.runs(t, "192.0.2.2"); err != nil || !strings.Contains(said, "RUN_FINISHED") {
			t.Errorf("later: %v\n%s", err, said)
		}
	})
}
