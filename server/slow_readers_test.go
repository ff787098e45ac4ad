package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// TestSlowReadersMemory: clients that have begun to read a large thread, and do not go on,
// hold next to nothing of it in the server's memory.
func TestSlowReadersMemory(t *testing.T) {
	const readers, messages, size = 30, 100, 100_000 // 10 MB
	c := config(t)
	c.AllowAnonymous = true
	s, err := server.New(c)
	if err == nil {
		err = s.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	in := server.Input{Thread: "large", Run: "r"}
	for i := range messages {
		in.Messages = append(in.Messages,
			holdfast.Message{ID: fmt.Sprint("m", i), Role: holdfast.RoleUser, Text: strings.Repeat("a", size)})
	}
	for _, err := range s.Run(t.Context(), server.LocalPrincipal(), in) {
		if err != nil {
			t.Fatal(err)
		}
	}
	in = server.Input{}
	for _, err := range s.Watch(t.Context(), server.LocalPrincipal(), "large") {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := live()
	for range readers {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /threads/large/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, res.Body, 64<<10); err != nil {
			t.Fatal(err)
		}
	}
	held := live() - before
	t.Logf("%d readers of %d MB hold %.1f MB", readers, messages*size/1_000_000, float64(held)/1e6)
	if held > readers*1_000_000 {
		t.Errorf("%d readers hold %d bytes", readers, held)
	}
}

// live returns how many bytes are in use after a collection of garbage.
func live() int64 {
	runtime.GC()
	runtime.GC() // what is pooled is dropped by the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
