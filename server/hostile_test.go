package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/server"
)

// Hostile clients of a whole server, on the embedded store, beside another tenant whose
// requests are served all the time. Matters of time alone are in internal/http, where a test
// has a clock of its own.

// hostile starts a server whose callers say which tenant they are of.
func hostile(t *testing.T) (url string) {
	t.Helper()
	c := config(t)
	c.Store = "file:" + filepath.Join(t.TempDir(), "data")
	c.Authenticate = func(r *http.Request) (holdfast.Principal, error) {
		tenant, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return holdfast.Principal{Tenant: tenant, User: "u"}, nil
	}
	s, err := server.New(c)
	if err == nil {
		err = s.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr()
}

// postedAs sends a run and returns the status and the answer.
func postedAs(ctx context.Context, url, tenant, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/runs", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + tenant}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), err
}

// beside runs a tenant's ordinary requests, one after the other, until the attack is over.
// Each must succeed.
func beside(t *testing.T, url string, attack func()) {
	t.Helper()
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			body := fmt.Sprintf(`{"threadId":"t%d","runId":"r","messages":[{"id":"m","role":"user","content":"hi"}]}`,
				n)
			if code, answer, err := postedAs(t.Context(), url, "alice", body); code != 200 || err != nil ||
				!strings.Contains(answer, "RUN_FINISHED") {
				t.Errorf("the other tenant got %d %.200s (%v)", code, answer, err)
				return
			}
			select {
			case <-over:
				return
			default:
			}
		}
	})
	attack()
	close(over)
	wg.Wait()
}

// TestHostileBodies: bodies that used to cost hundreds of megabytes are refused, and take
// little more memory than they have bytes; another tenant is served meanwhile.
func TestHostileBodies(t *testing.T) {
	const size = 4<<20 - 1000
	input := func(members string) string { return `{"threadId":"t","runId":"r",` + members + `}` }
	fill := func(element string) string {
		return strings.TrimSuffix(strings.Repeat(element+",", size/(len(element)+1)), ",")
	}
	url := hostile(t)
	cases := map[string]struct {
		body string
		want int
		says string
	}{
		"empty messages": {input(`"messages":[` + fill(`{}`) + `]`), 400, "more than 10000 messages"},
		"not messages":   {input(`"messages":[` + fill(`""`) + `]`), 400, "messages[0] has the wrong type"},
		"empty tools":    {input(`"messages":[],"tools":[` + fill(`{}`) + `]`), 400, "more than 1000 tools"},
		"deep": {
			input(`"messages":[],"state":` + strings.Repeat("[", size)),
			400,
			"nested more than 256 deep",
		},
		"double":         {input(`"messages":[],"state":{` + fill(`"a":1`) + `}`), 400, "state.a is there twice"},
		"nothing to run": {input(`"messages":[],"state":[` + fill(`[]`) + `]`), 400, "nothing_to_run"},
		"many wrong ones": {
			input(`"messages":[` + fill(`{"id":"1","role":"elf"}`) + `]`),
			400,
			"more than 10000 messages",
		},
		"too large": {
			input(`"messages":[` + fill(`{}`) + `],"state":"` + strings.Repeat("a", 2000) + `"`),
			413,
			"payload_too_large",
		},
	}
	for _, name := range testkit.Sample(t, 2, 0, slices.Sorted(maps.Keys(cases))) {
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			attack := func() {
				code, answer, err := postedAs(t.Context(), url, "mallory", c.body)
				// A client that sends too much may see the connection end before the answer.
				if err != nil && c.want != 413 || err == nil && (code != c.want || !strings.Contains(answer, c.says)) {
					t.Errorf("%d %.300s (%v)", code, answer, err)
				}
			}
			before := allocated()
			attack()
			took := allocated() - before
			t.Logf("%.1f MB", float64(took)/1e6)
			if took > 50_000_000 {
				t.Errorf("%d bytes were allocated", took)
			}
			beside(t, url, func() {
				for range 3 {
					attack()
				}
			})
		})
	}
}

// allocated returns how many bytes have been allocated so far. A request allocates more, by
// server and client, than it ever holds.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestHostileConnections: connections whose requests do not come, and bodies that do not
// end, keep nobody from being served.
func TestHostileConnections(t *testing.T) {
	url := hostile(t)
	dial := func(request string) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			_, err = io.WriteString(conn, request)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	beside(t, url, func() {
		for n := range 300 {
			switch n % 3 {
			case 0:
				dial("")
			case 1:
				dial("POST /runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mallory\r\nContent-Type: " +
					"application/json\r\nContent-Length: 4000000\r\n\r\n{")
			case 2:
				conn := dial("GET /threads HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || res.StatusCode != 400 || !res.Close {
					t.Fatal(res, errors.Join(err))
				}
			}
		}
	})
}
