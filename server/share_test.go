package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// users makes callers of one tenant by the header that names them.
func users(c *server.Config) {
	c.MultiTenant = nil
	c.Authenticate = func(r *http.Request) (holdfast.Principal, error) {
		return holdfast.Principal{Tenant: "acme", User: r.Header.Get("Tenant")}, nil
	}
}

// TestOneUserLeavesRoom: without any configuration, a user who begins all the runs that they
// can, and leaves, takes most of the places of the tenant, but not all. Where there is one user
// only, that one has them all.
func TestOneUserLeavesRoom(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server.Config)
		bob    int // how many of 8 runs begin
		error  string
	}{
		"several users": {func(*server.Config) {}, 6, `"code":"limit_exceeded"`},
		"a limit":       {func(c *server.Config) { c.Quotas.PerUser.Runs = 7 }, 7, `"code":"limit_exceeded"`},
		"one user":      {func(c *server.Config) { c.MultiUser = func(string) bool { return false } }, 8, ""},
	} {
		t.Run(name, func(t *testing.T) {
			url, _, _ := tenanted(t, func(cfg *server.Config) {
				users(cfg)
				cfg.MaxRuns = 8
				c.change(cfg)
			})
			began, said := 0, ""
			for n := range 8 {
				res := begins(t, "POST", url+"/runs", "bob", runOf(fmt.Sprint("b", n)))
				if res.StatusCode == http.StatusOK {
					began++
				} else {
					body, _ := io.ReadAll(res.Body) // what came of it is compared below
					said = string(body)
				}
				_ = res.Body.Close() // the run goes on
			}
			if began != c.bob || !strings.Contains(said, c.error) {
				t.Errorf("bob begins %d of 8 runs, want %d: %s", began, c.bob, said)
			}
			if c.bob == 8 {
				return
			}
			if c.bob == 6 && !strings.Contains(said, "limits.perUser.runs") {
				t.Errorf("the error does not name the limit: %s", said)
			}
			res := begins(t, "POST", url+"/runs", "alice", runOf("a"))
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("alice gets %d", res.StatusCode)
			}
		})
	}
}

// TestSlowReadersShare: what streams of slow readers hold in memory is bounded, and one user's
// leave room for another's. A refused client is told so before the stream begins.
func TestSlowReadersShare(t *testing.T) {
	c := config(t)
	users(&c)
	c.Store, c.MaxStreamBytes, c.Addr = "file:"+t.TempDir(), 4<<20, "127.0.0.1:0"
	s, err := server.New(c)
	if err == nil {
		err = s.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Log(err) // the slow readers are cut
		}
	}()
	for _, user := range []string{"bob", "alice"} {
		in := server.Input{
			Thread: user,
			Run:    "r",
			State:  json.RawMessage(`{"text":"` + strings.Repeat("x", 900_000) + `"}`),
		}
		in.Messages = append(in.Messages, holdfast.Message{ID: user, Role: holdfast.RoleUser, Text: "hi"})
		for _, err := range s.Run(t.Context(), holdfast.Principal{Tenant: "acme", User: user}, in) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	attach := func(user string) *http.Response {
		t.Helper()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		tcp, _ := conn.(*net.TCPConn)
		_ = tcp.SetReadBuffer(4 << 10) // which makes it slower, no more
		if _, err := fmt.Fprintf(conn, "GET /threads/%s/stream HTTP/1.1\r\nHost: localhost\r\nTenant: %s\r\n\r\n",
			user, user); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for n := range 3 {
		if res := attach("bob"); res.StatusCode != http.StatusOK {
			t.Fatalf("stream %d: %d", n, res.StatusCode)
		}
	}
	refused := attach("bob")
	body, err := io.ReadAll(refused.Body)
	if err != nil || refused.StatusCode != http.StatusTooManyRequests ||
		!strings.Contains(string(body), "settings.maxStreamBytes") {
		t.Errorf("%d, %v: %s", refused.StatusCode, err, body)
	}
	if res := attach("alice"); res.StatusCode != http.StatusOK {
		t.Errorf("another user gets %d", res.StatusCode)
	}
}
