package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/server"
)

// fetched returns the status and the body of a GET.
func fetched(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(body)
}

// TestListenFirst: a server that listens before it has started says so, and requests wait for
// the start.
func TestListenFirst(t *testing.T) {
	cfg := config(t)
	cfg.Addr = "localhost:0"
	s := must(server.New(cfg))(t)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	base := "http://" + s.Addr()
	agents := make(chan int)
	go func() {
		status, _ := fetched(t, base+"/agents")
		agents <- status
	}()
	if status, _ := fetched(t, base+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz has %d", status)
	}
	if status, body := fetched(t, base+"/readyz"); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, `"starting"`) {
		t.Errorf("/readyz has %d %s", status, body)
	}
	select {
	case status := <-agents:
		t.Errorf("/agents has %d before the start", status)
	default:
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := <-agents; status != http.StatusOK {
		t.Errorf("/agents has %d", status)
	}
	if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestShutdownBeforeStart: a server that listens can end without having started, and a request
// that waits for the start does not keep it.
func TestShutdownBeforeStart(t *testing.T) {
	cfg := config(t)
	cfg.Addr = "localhost:0"
	s := must(server.New(cfg))(t)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := http.Get("http://" + s.Addr() + "/agents"); err == nil {
			res.Body.Close()
		}
	}()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
}

// TestListenAndServeSays: the log says where a program of one's own listens.
func TestListenAndServeSays(t *testing.T) {
	cfg := config(t)
	cfg.Addr = "localhost:0"
	ctx, stop := context.WithCancel(t.Context())
	var log bytes.Buffer
	cfg.Log = slog.New(slog.NewTextHandler(seen{&log, "msg=listening url=http://127.0.0.1:", stop}, nil))
	if err := must(server.New(cfg))(t).ListenAndServe(ctx); err != nil {
		t.Error(err)
	}
}

// seen calls then once the text was written.
type seen struct {
	*bytes.Buffer
	text string
	then func()
}

func (s seen) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.text) {
		s.then()
	}
	return n, err
}
