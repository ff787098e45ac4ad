package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/operator"
	"github.com/holdfast-agents/holdfast/server"
)

// TestAnonymousHosts: without a list of hosts, an anonymous server answers to the loopback
// names and to the host of its address, and to nothing else.
func TestAnonymousHosts(t *testing.T) {
	for _, tt := range []struct {
		addr  string
		hosts []string
		good  string
		bad   string
	}{
		{"0.0.0.0:8080", nil, "localhost 127.0.0.1:8080 [::1]:8080 localhost:80",
			"0.0.0.0:8080 10.1.2.3:8080 rebind.attacker.example localhost.attacker.example"},
		{":8080", nil, "localhost:8080", "example.com"},
		{"[::]:8080", nil, "localhost:8080", "[::]:8080"},
		{"192.168.1.5:8080", nil, "192.168.1.5:8080 localhost", "192.168.1.6:8080"},
		{"[2001:db8::1]:8080", nil, "[2001:db8::1]:8080", "[2001:db8::2]:8080"},
		{"agents.example.com:8080", nil, "agents.example.com", "example.com"},
		{"0.0.0.0:8080", []string{"localhost:8080"}, "localhost:8080", "localhost:8081 127.0.0.1:8080"},
		{"0.0.0.0:8080", []string{"*"}, "whatever.example", ""},
	} {
		cfg := config(t)
		cfg.AllowAnonymous, cfg.Addr, cfg.Hosts = true, tt.addr, tt.hosts
		s := must(server.New(cfg))(t)
		for want, list := range map[int]string{http.StatusOK: tt.good, http.StatusForbidden: tt.bad} {
			for host := range strings.FieldsSeq(list) {
				r := httptest.NewRequest(http.MethodGet, "/agents", nil)
				r.Host = host
				w := httptest.NewRecorder()
				if s.Handler().ServeHTTP(w, r); w.Code != want {
					t.Errorf("%s, %v: %s gets %d", tt.addr, tt.hosts, host, w.Code)
				}
			}
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestMetricsAddress: metrics with an address of their own are there, and only there.
func TestMetricsAddress(t *testing.T) {
	var log bytes.Buffer
	cfg := config(t)
	cfg.MetricsAddr, cfg.Log = "localhost:0", slog.New(slog.NewTextHandler(&log, nil))
	s := must(server.New(cfg))(t)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	addr := regexp.MustCompile(`msg=metrics addr=(\S+)`).FindStringSubmatch(log.String())
	if addr == nil {
		t.Fatal(log.String())
	}
	for url, want := range map[string]int{
		"http://" + addr[1] + "/metrics": 200, "http://" + addr[1] + "/threads": 404, "http://" + addr[1] + "/": 404,
		"http://" + s.Addr() + "/metrics": 404, "http://" + s.Addr() + "/threads": 200,
	} {
		res := must(http.Get(url))(t)
		body := string(must(io.ReadAll(res.Body))(t))
		_ = res.Body.Close()
		if res.StatusCode != want || strings.HasSuffix(url, "/metrics") && want == 200 &&
			!strings.Contains(body, "holdfast_runs_running") {
			t.Errorf("%s: %d %s", url, res.StatusCode, body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + addr[1] + "/metrics"); err == nil {
		t.Error("the metrics are still served")
	}
	taken := config(t)
	taken.MetricsAddr = "999.0.0.1:1"
	bad := must(server.New(taken))(t)
	if err := bad.ListenAndServe(t.Context()); err == nil || !strings.Contains(err.Error(), "for the metrics") {
		t.Errorf("%v", err)
	}
}

// TestBackupWithoutKeys: on a server without keys, nobody may have the store copied except
// people who can read its directory.
func TestBackupWithoutKeys(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		var log logs
		cfg := config(t)
		cfg.Store, cfg.AllowAnonymous, cfg.Log = "file:"+t.TempDir(), anonymous,
			slog.New(slog.NewTextHandler(&log, nil))
		s := must(server.New(cfg))(t)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "copy")
		body := fmt.Sprintf(`{"dir":%q}`, dir)
		for _, key := range []string{"", "guessed"} {
			if code, answer := call(t, key, http.MethodPost, "http://"+s.Addr()+"/maintenance/backup",
				body); code != http.StatusNotFound {
				t.Errorf("anonymous %t, with the key %q: %d %s", anonymous, key, code, answer)
			}
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("the store was copied for somebody who is no operator")
		}
		c := must(operator.Read(strings.TrimPrefix(cfg.Store, "file:")))(t)
		if err := c.Backup(t.Context(), dir); err != nil {
			t.Error(err)
		}
		if err := c.Backup(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("over the first copy: %v", err)
		}
		want := []string{
			`who="this machine" action=backup result=ok`,
			`who="this machine" action=backup result=invalid_input`,
		}
		if lines := log.audit(); !slices.Equal(lines, want) {
			t.Errorf("%q, want %q", lines, want)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestBackupOfANamedServer: holdfast backup reaches a server on its machine that answers to
// a public name only.
func TestBackupOfANamedServer(t *testing.T) {
	for _, hosts := range [][]string{{"agents.example.com", "localhost:1"}, {"agents.example.com:443"}, {"*"}, nil} {
		cfg := config(t)
		cfg.Store, cfg.Hosts, cfg.Authenticate = "file:"+t.TempDir(), hosts, callers{}.authenticate
		s := must(server.New(cfg))(t)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := must(operator.Read(strings.TrimPrefix(cfg.Store, "file:")))(t)
		if err := c.Backup(t.Context(), filepath.Join(t.TempDir(), "copy")); err != nil {
			t.Errorf("hosts %q: %v", hosts, err)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
