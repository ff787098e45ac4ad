package http

// Hostile clients: each attack runs against a server in a bubble of its own, where time
// passes when everybody waits, so that a timeout of half a minute costs nothing and fires
// exactly when it should.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/connections"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/threads"
)

// pipes is a listener whose connections are pipes. Streams of its server detach.
type pipes struct {
	conns    chan net.Conn
	closed   chan struct{}
	once     sync.Once
	detached *connections.Detached

	mu    sync.Mutex
	count map[http.ConnState]int // how often a connection was in a state
}

// state counts the states of connections.
func (p *pipes) state(_ net.Conn, s http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[s]++
}

// times returns how often a connection was in a state.
func (p *pipes) times(s http.ConnState) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[s]
}

// resumed is a connection of which something has been read.
type resumed struct {
	net.Conn
	r io.Reader
}

func (c *resumed) Read(b []byte) (int, error) { return c.r.Read(b) }

// again takes a connection back.
func (p *pipes) again(c net.Conn, read []byte) {
	select {
	case p.conns <- &resumed{c, io.MultiReader(strings.NewReader(string(read)), c)}:
	case <-p.closed:
		_ = c.Close()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects a client.
func (p *pipes) dial(t *testing.T) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	p.conns <- server
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// hostile starts a server of the handler in the bubble of the test. Clients are
// authenticated by the name of their tenant.
func hostile(t *testing.T, f *fake, change func(*Config)) *pipes {
	t.Helper()
	f.info = &threads.Info{ID: "t", Status: threads.StatusIdle}
	f.timeMachine.f = f
	c := Config{
		Authorize:    anything,
		Runs:         f,
		Cancel:       f.Cancel,
		Threads:      f,
		Calls:        f,
		History:      f,
		Upkeep:       f,
		Ready:        func(context.Context) error { return nil },
		MaxBody:      4 << 20,
		WriteTimeout: 10 * time.Second,
		Log:          testLog(),
		Authenticate: func(r *http.Request) (holdfast.Principal, error) {
			tenant, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok {
				return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "A key is missing.").
					WithHint("Send one.")
			}
			return holdfast.Principal{Tenant: tenant, User: "u"}, nil
		},
	}
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{}), count: map[http.ConnState]int{}}
	l.detached = connections.NewDetached(2*time.Minute, l.state, l.again)
	c.Detached = l.detached
	if change != nil {
		change(&c)
	}
	s := &http.Server{
		Handler: New(c), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ConnState: l.state,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context { return l.detached.ConnContext(ctx) },
	}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = l.detached.Shutdown(ctx)
		_ = s.Close()
		<-served
	})
	return l
}

// sendOn writes in the background: a pipe takes bytes only when they are read.
func sendOn(c net.Conn, text string) {
	go func() { _, _ = io.WriteString(c, text) }()
}

func posts(tenant, path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s", path, tenant, len(body), body)
}

// TestSlowBodies: a body that does not come, or comes too slowly, ends its connection, on
// every route, with and without a key; and the client is told, if it is still there.
func TestSlowBodies(t *testing.T) {
	const (
		key     = "Authorization: Bearer mallory\r\nContent-Type: application/json\r\n"
		kind    = "Content-Type: application/json\r\n"
		length  = "Content-Length: 100\r\n\r\n"
		chunked = "Transfer-Encoding: chunked\r\n\r\n"
	)
	for name, c := range map[string]struct {
		request string
		drip    string // sent again every second
		want    int
		within  time.Duration
	}{
		"runs, no key":           {"POST /runs HTTP/1.1\r\nHost: x\r\n" + kind + length, "", 401, 0},
		"runs, no key, dripping": {"POST /runs HTTP/1.1\r\nHost: x\r\n" + kind + length, "x", 401, 0},
		"runs, no key, chunked":  {"POST /runs HTTP/1.1\r\nHost: x\r\n" + kind + chunked, "1\r\nx\r\n", 401, 0},
		"runs, nothing":          {"POST /runs HTTP/1.1\r\nHost: x\r\n" + key + length, "", 408, bodyTimeout},
		"runs, half": {"POST /runs HTTP/1.1\r\nHost: x\r\n" + key + length + `{"threadId":"t","runId"`,
			"", 408, bodyTimeout},
		"runs, dripping": {"POST /runs HTTP/1.1\r\nHost: x\r\n" + key + length, " ", 408, bodyTimeout},
		"runs, chunked":  {"POST /runs HTTP/1.1\r\nHost: x\r\n" + key + chunked, "1\r\n \r\n", 408, bodyTimeout},
		"runs, 200 KB announced": {"POST /runs HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 200000\r\n\r\n", "",
			408, bodyTimeout},
		"runs, 4 MB announced": {"POST /runs HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 4000000\r\n\r\n", "",
			408, bodyTimeout},
		"fork": {"POST /threads/t/fork HTTP/1.1\r\nHost: x\r\n" + key + length, "", 408,
			bodyTimeout},
		"cancel, body not wanted": {"POST /threads/t/runs/r/cancel HTTP/1.1\r\nHost: x\r\n" + key + length, "", 200, 0},
		"result, no key": {"POST /threads/t/calls/c/result HTTP/1.1\r\nHost: x\r\n" + kind + length, "x", 401,
			0},
		"result, dripping": {"POST /threads/t/calls/c/result HTTP/1.1\r\nHost: x\r\n" + key + length, " ", 408,
			bodyTimeout},
		"calls, no token": {"POST /calls HTTP/1.1\r\nHost: x\r\n" + kind + length, "x", 400, 0},
		"calls, a guess":  {"POST /calls?token=hfc_guess.x HTTP/1.1\r\nHost: x\r\n" + kind + length, "x", 404, 0},
		"calls, a guess, large": {"POST /calls?token=hfc_guess.x HTTP/1.1\r\nHost: x\r\n" + kind + chunked +
			"500000\r\n", "x", 404, 0},
		"calls, nothing": {"POST /calls?token=hfc_abc.x HTTP/1.1\r\nHost: x\r\n" + kind + length, "", 408,
			bodyTimeout},
		"calls, dripping": {"POST /calls?token=hfc_abc.x HTTP/1.1\r\nHost: x\r\n" + kind + chunked,
			"1\r\n \r\n", 408, bodyTimeout},
		"calls, too large": {"POST /calls?token=hfc_abc.x HTTP/1.1\r\nHost: x\r\n" + kind + chunked +
			"200000\r\n" + strings.Repeat(" ", 2<<20), "", 413, 0},
		"unknown path": {"POST /nowhere HTTP/1.1\r\nHost: x\r\n" + kind + length, "", 404, 0},
		"the page":     {"POST / HTTP/1.1\r\nHost: x\r\n" + kind + length, "", 405, 0},
		"healthz":      {"POST /healthz HTTP/1.1\r\nHost: x\r\n" + kind + length, "x", 405, 0},
		"preflight": {"OPTIONS /runs HTTP/1.1\r\nHost: x\r\nOrigin: " +
			"https://a.example\r\nAccess-Control-Request-Method: POST\r\n" +
			length,
			"", 403, 0},
		"wrong media type": {"POST /runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
			"m\r\nContent-Type: text/plain\r\n" +
			length,
			"", 415, 0},
		"GET healthz":   {"GET /healthz HTTP/1.1\r\nHost: x\r\n" + length, "", 400, 0},
		"GET page":      {"GET / HTTP/1.1\r\nHost: x\r\n" + chunked, "", 400, 0},
		"GET stream":    {"GET /threads/t/stream HTTP/1.1\r\nHost: x\r\n" + key + length, "x", 400, 0},
		"HEAD page":     {"HEAD / HTTP/1.1\r\nHost: x\r\n" + length, "", 400, 0},
		"DELETE thread": {"DELETE /threads/t HTTP/1.1\r\nHost: x\r\n" + key + length, "", 400, 0},
		"too large": {"POST /runs HTTP/1.1\r\nHost: x\r\n" + key + chunked + "500000\r\n" +
			strings.Repeat(" ", 5<<20), "", 413, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := hostile(t, &fake{}, nil)
				began := time.Now()
				conn := l.dial(t)
				sendOn(conn, c.request)
				if c.drip != "" {
					go func() {
						for {
							select {
							case <-time.After(time.Second):
							case <-t.Context().Done():
								return
							}
							if _, err := io.WriteString(conn, c.drip); err != nil {
								return
							}
						}
					}()
				}
				in := bufio.NewReader(conn)
				method, _, _ := strings.Cut(c.request, " ")
				res, err := http.ReadResponse(in, &http.Request{Method: method})
				if err != nil {
					t.Fatalf("there is no response: %v", err)
				}
				if took := time.Since(began); res.StatusCode != c.want || took > c.within {
					t.Errorf("%d after %s, want %d within %s", res.StatusCode, took, c.want, c.within)
				}
				if !res.Close {
					t.Error("the response does not say that the connection ends")
				}
				_, _ = io.Copy(io.Discard, in) // until the server closes it
				// net/http waits half a second more when it has closed its side.
				if took := time.Since(began); took > c.within+exchange.Lingering+500*time.Millisecond {
					t.Errorf("the connection was open for %s", took)
				}
			})
		})
	}
}

// TestBodyDeadlineEnds: what comes after the body takes as long as it needs, and the next
// request on the connection has a deadline of its own.
func TestBodyDeadlineEnds(t *testing.T) {
	t.Run("detached", func(t *testing.T) { bodyDeadlineEnds(t, nil, 2) })
	t.Run("in the handler", func(t *testing.T) { bodyDeadlineEnds(t, func(c *Config) { c.Detached = nil }, 0) })
}

func bodyDeadlineEnds(t *testing.T, change func(*Config), detached int) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{
			post: func(ctx context.Context, _ holdfast.Principal, _ string, _ *agui.RunAgentInput) (*agui.Reply,
				error) {
				return &agui.Reply{ThreadID: "t", RunID: "r", Frames: func(yield func([]agui.Frame, error) bool) {
					for range 240 { // an idle hour
						select {
						case <-time.After(15 * time.Second):
						case <-ctx.Done():
							return
						}
						if !yield(nil, nil) {
							return
						}
					}
					yield([]agui.Frame{{ID: "1-x", Data: []byte(`{"done":true}`)}}, nil)
				}}, nil
			},
		}
		l := hostile(t, f, change)
		conn := l.dial(t)
		in := bufio.NewReader(conn)
		for range 2 {
			go func() {
				request := posts("alice", "/runs", minimal)
				_, _ = io.WriteString(conn, request[:len(request)-20])
				time.Sleep(20 * time.Second) // slow, but not too slow
				_, _ = io.WriteString(conn, request[len(request)-20:])
			}()
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || !strings.HasSuffix(string(body), "data: {\"done\":true}\n\n") ||
				strings.Count(string(body), "keep-alive") != 240 {
				t.Errorf("%d, %v: %d bytes", res.StatusCode, err, len(body))
			}
		}
		if got := l.times(http.StateHijacked); got != detached {
			t.Errorf("%d streams have detached, want %d", got, detached)
		}
	})
}

// TestSlowReaders: a client that takes a response too slowly is cut, however steadily it
// reads; one that is only slow gets all of it.
func TestSlowReaders(t *testing.T) {
	const size = 10 << 20
	for name, c := range map[string]struct {
		bytes  int // that are read at a time
		pause  time.Duration
		cut    bool
		within time.Duration
	}{
		"reads nothing":         {0, time.Hour, true, 11 * time.Second},
		"one byte per second":   {1, time.Second, true, 15 * time.Second},
		"64 KiB in nine second": {64 << 10, 9 * time.Second, true, 30 * time.Second},
		"8 KiB per second":      {8 << 10, time.Second, true, 40 * time.Second},
		"20 KiB per second":     {20 << 10, time.Second, false, 10 * time.Minute},
		"in bursts":             {160 << 10, 8 * time.Second, false, 10 * time.Minute},
		"fast":                  {size, 0, false, time.Second},
	} {
		slowReader := func(t *testing.T, silent time.Duration) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan time.Duration, 1)
				f := &fake{
					post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
						return &agui.Reply{
							ThreadID: "t",
							RunID:    "r",
							Frames: func(yield func([]agui.Frame, error) bool) {
								if silent > 0 && !yield(nil, nil) {
									return
								}
								time.Sleep(silent)
								began := time.Now()
								defer func() { ended <- time.Since(began) }()
								yield([]agui.Frame{{ID: "1-x", Data: make([]byte, size)}}, nil)
							},
						}, nil
					},
				}
				l := hostile(t, f, func(c *Config) { c.MinRate = 16 << 10 })
				conn := l.dial(t)
				sendOn(conn, posts("mallory", "/runs", minimal))
				for head := []byte(nil); silent > 0 && !strings.HasSuffix(string(head), "keep-alive\n\n\r\n"); {
					b := make([]byte, 1)
					if _, err := conn.Read(b); err != nil {
						t.Fatal(err)
					}
					head = append(head, b...)
				}
				got := 0
				go func() {
					buf := make([]byte, max(1, c.bytes))
					for {
						if c.bytes > 0 {
							n, err := io.ReadFull(conn, buf)
							if got += n; err != nil {
								return
							}
						}
						select {
						case <-time.After(c.pause):
						case <-t.Context().Done():
							return
						}
					}
				}()
				took := <-ended
				synctest.Wait()
				if took > c.within {
					t.Errorf("the stream was open for %s, want %s at most", took, c.within)
				}
				if whole := got >= size-c.bytes; whole == c.cut {
					t.Errorf("%d of %d bytes were read in %s", got, size, took)
				}
				if detached := l.times(http.StateHijacked) > 0; detached != (silent > silence) {
					t.Errorf("the stream has detached: %t", detached)
				}
			})
		}
		t.Run(name, func(t *testing.T) { slowReader(t, 0) })
		if c.bytes < size && c.bytes != 1 { // these two take the test long, and show nothing else
			t.Run(name+", after a silence", func(t *testing.T) { slowReader(t, 2*silence) })
		}
	}
}

// TestFloodOfBodies: bodies take only the memory that they may, and one tenant only half
// of that: while it holds all it gets, another tenant's requests are served.
func TestFloodOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
			return reply([]agui.Frame{{ID: "1-x", Data: []byte(`{}`)}}), nil
		}}
		l := hostile(t, f, func(c *Config) { c.MaxBody, c.MaxBodies = 64<<10, 16*64<<10 })
		body := strings.Replace(minimal, "hi", strings.Repeat("a", 60<<10), 1)
		request := posts("mallory", "/runs", body)
		answers := make(chan int, 20)
		attack := func() {
			conn := l.dial(t)
			sendOn(conn, request[:len(request)-1]) // the last byte does not come
			go func() {
				if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
					answers <- res.StatusCode
				}
			}()
		}
		for range cap(answers) {
			attack()
			// One after the other: if all grow in step, more than 12 can fail to.
			synctest.Wait()
		}
		if n := len(answers); n != 12 {
			t.Errorf("%d of 20 were refused, want 12: 8 take half of the memory", n)
		}
		for range len(answers) {
			if code := <-answers; code != http.StatusServiceUnavailable {
				t.Errorf("%d, want 503", code)
			}
		}
		serves := func(tenant, body string, want int) {
			t.Helper()
			conn := l.dial(t)
			began := time.Now()
			sendOn(conn, posts(tenant, "/runs", body))
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != want || time.Since(began) != 0 {
				t.Errorf("%s got %d after %s, want %d at once", tenant, res.StatusCode, time.Since(began), want)
			}
			if after := res.Header.Get("Retry-After"); (after != "") != (want == http.StatusServiceUnavailable) {
				t.Errorf("%d with Retry-After %q", res.StatusCode, after)
			}
		}
		serves("mallory", body, http.StatusServiceUnavailable)
		serves("alice", body, http.StatusOK)
		time.Sleep(bodyTimeout)
		synctest.Wait()
		for range len(answers) {
			if code := <-answers; code != http.StatusRequestTimeout {
				t.Errorf("%d, want 408", code)
			}
		}
		serves("mallory", body, http.StatusOK) // all memory was given back
	})
}

// TestBrokenSnapshot: an event that cannot be made to its end is not taken for a whole
// one, and a stream that breaks in it not for one that has ended.
func TestBrokenSnapshot(t *testing.T) {
	f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return reply(
			[]agui.Frame{{ID: "1-x", Data: []byte(`{}`)}, {ID: "2-x", Pieces: func(yield func([]byte, error) bool) {
				if yield([]byte(`{"messages":[`), nil) && yield(make([]byte, 2*maxBuffer), nil) {
					yield(nil, holdfast.Errorf(codes.StoreUnavailable, "The store is gone."))
				}
			}}},
			[]agui.Frame{{ID: "3-x", Data: []byte(`{}`)}},
		), nil
	}}
	s := serve(t, f, nil)
	res, err := http.Post(s.URL+"/runs", "application/json", strings.NewReader(minimal))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil || !strings.Contains(string(body), "id: 1-x\ndata: {}\n\n") ||
		strings.Contains(string(body), "3-x") || strings.HasSuffix(string(body), "\n\n") {
		t.Errorf("%d bytes, then %v", len(body), err)
	}
}

// TestMessagesInPieces: a history is written message by message, with the bytes that it
// would have in one piece; if it cannot be read to its end, the answer is not whole.
func TestMessagesInPieces(t *testing.T) {
	f := posting(records(agui.RunStarted{ThreadID: "t", RunID: "r"}),
		records(agui.RunFinished{ThreadID: "t", RunID: "r"}))
	f.shared = "none"
	f.messages = []string{`{"id":"1", "content":"<a&b>"}`, `{"id":"2","metadata":{ "a": [1, 2] }}`, `{"id":"3"}`}
	s := serve(t, f, nil)
	const list = `"messages":[{"id":"1","content":"<a&b>"},{"id":"2","metadata":{"a":[1,2]}},{"id":"3"}]`
	if _, body := do(t, "GET", s.URL+"/threads/t/messages", ""); body != "{"+list+"}\n" {
		t.Errorf("%q", body)
	}
	want := `{"outcome":"success","runId":"r","threadId":"t",` + list + `,"state":{},"usage":[]}` + "\n"
	if _, body := do(t, "POST", s.URL+"/runs", minimal, "Content-Type", "application/json", "Accept",
		"application/json"); body != want {
		t.Errorf("%q", body)
	}
	f.gone = holdfast.Errorf(codes.CheckpointUnreadable, "It is damaged.")
	f.goneAfter.Store(1)
	res, err := http.Get(s.URL + "/threads/t/messages")
	if err == nil {
		defer res.Body.Close()
		_, err = io.ReadAll(res.Body)
	}
	if err == nil && res.StatusCode == http.StatusOK { // a client may ask again by itself
		t.Error("half of a history looks like a whole one")
	}
	for _, path := range []string{"/threads/t/messages", "/copilotkit/threads/t/messages"} {
		if res, body := do(t, "GET", s.URL+path, ""); res.StatusCode != http.StatusInternalServerError ||
			!strings.Contains(body, codes.CheckpointUnreadable) {
			t.Errorf("%s: %s %s, want an error as long as nothing was sent", path, res.Status, body)
		}
	}
}
