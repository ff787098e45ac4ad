package streamhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connTo returns a connection to a server in a session, and what it says of itself.
func connTo(t *testing.T, h http.HandlerFunc) (c *Conn, stale chan error) {
	t.Helper()
	server := httptest.NewServer(h)
	stale = make(chan error, 10)
	client := &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c = New(Options{
		URL:       server.URL,
		Client:    client,
		Limit:     1000,
		Listening: func() {},
		Stale:     func(err error, _ bool) { stale <- err },
	})
	c.version, c.session = "2025-11-25", "s1"
	t.Cleanup(func() {
		c.Close()
		c.Wait()
		client.CloseIdleConnections()
		server.Close()
	})
	return c, stale
}

// ask sends a request and returns its answer.
func ask(t *testing.T, c *Conn) (*jsonrpc.Response, *wire.Request) {
	t.Helper()
	id, err := jsonrpc.MakeID("r1")
	if err != nil {
		t.Fatal(err)
	}
	r := &wire.Request{Method: "tools/call"}
	if err := c.Write(wire.WithRequest(t.Context(), r),
		&jsonrpc.Request{ID: id, Method: "tools/call", Params: []byte(`{"name":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if res, ok := m.(*jsonrpc.Response); ok {
			return res, r
		}
	}
}

// TestResume: the answer to a call is taken up again where its stream was cut, as long as
// that leads anywhere.
func TestResume(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		get  func(w http.ResponseWriter, last string)
		want string
	}{
		"goes on": {func(w http.ResponseWriter, last string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"r1\",\"result\":{\"after\":%q}}\n\n", last)
		}, `{"after":"e1"}`},
		"is refused":   {func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNotFound) }, "cut off"},
		"is no stream": {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, "hello") }, "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, _ := connTo(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodPost:
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, ": hello\nretry: 10\nid: e1\ndata:\n\n")
				case http.MethodGet:
					c.get(w, r.Header.Get("Last-Event-ID"))
				}
			})
			res, r := ask(t, conn)
			if got := string(res.Result) + fmt.Sprint(res.Error); !strings.Contains(got, c.want) || !r.Sent() {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestNotSent: a request that cannot have reached the server is told from one that may have.
func TestNotSent(t *testing.T) {
	t.Parallel()
	conn, _ := connTo(t, func(http.ResponseWriter, *http.Request) {})
	conn.o.Client = &http.Client{Transport: refusing{}}
	if res, r := ask(t, conn); res.Error == nil || r.Sent() || strings.Contains(res.Error.Error(), "http://") {
		t.Errorf("got %v, sent %v", res.Error, r.Sent())
	}
}

type refusing struct{}

// RoundTrip implements [http.RoundTripper].
func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }

// TestGivenUp: a request that is given up when it has a connection may still be written to it.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	conn, _ := connTo(t, func(http.ResponseWriter, *http.Request) {})
	conn.o.Client = &http.Client{Transport: connected{}}
	if _, r := ask(t, conn); !r.Sent() {
		t.Error("it counts as not sent")
	}
}

// connected is a transport that gives its requests up when they have a connection.
type connected struct{}

// RoundTrip implements [http.RoundTripper].
func (connected) RoundTrip(r *http.Request) (*http.Response, error) {
	if record := wire.RequestFrom(r.Context()); record != nil {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
		record.GiveUp()
	}
	return nil, errors.New("given up")
}

// TestStatusError: which answers mean that nothing was started.
func TestStatusError(t *testing.T) {
	t.Parallel()
	for status, refused := range map[int]bool{302: true, 307: true, 400: true, 401: true, 404: true, 408: false,
		409: false, 413: true, 429: true, 499: false, 500: false, 503: false} {
		conn, stale := connTo(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		})
		res, _ := ask(t, conn)
		var e *wire.StatusError
		if !errors.As(res.Error, &e) || e.Refused() != refused || e.RetryAfter != 7*time.Second {
			t.Errorf("%d: %v", status, res.Error)
		}
		if got := len(stale) > 0; got != (status == 404 || status == 400) {
			t.Errorf("%d: the session is forgotten: %v", status, got)
		}
	}
}

// TestClosed: a closed connection answers what is under way, and takes nothing more.
func TestClosed(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	conn, _ := connTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body) // only then a server notices the end
			close(arrived)
			<-r.Context().Done()
		}
	})
	id, _ := jsonrpc.MakeID("r1")
	if err := conn.Write(context.Background(), &jsonrpc.Request{ID: id, Method: "tools/call"}); err != nil {
		t.Fatal(err)
	}
	<-arrived
	conn.Close()
	conn.Wait()
	if _, err := conn.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("reading: %v", err)
	}
	if err := conn.Write(context.Background(), &jsonrpc.Request{ID: id, Method: "tools/call"}); err == nil {
		t.Error("it takes another request")
	}
}

// TestEncode: values as headers have them.
func TestEncode(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"plain": "plain", "": "", " space": "=?base64?IHNwYWNl?=", "Köln": "=?base64?S8O2bG4=?=",
		"a\nb": "=?base64?YQpi?=", "=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=",
	} {
		if got := Encode(value); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

// FuzzEvents: whatever a server sends, reading it ends, within the limit.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\nevent: message\nretry: 5\ndata: {\ndata: }\n\n: comment\n\ndata: x\r\n\r\n"))
	f.Add([]byte("data"))
	f.Add(bytes.Repeat([]byte("data: x\n"), 50))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := newEvents(bytes.NewReader(text), 100)
		for range len(text) + 1 {
			ev, err := in.next()
			if err != nil {
				return
			}
			if len(ev.data) > 100 {
				t.Fatalf("an event of %d bytes", len(ev.data))
			}
		}
		t.Fatal("it does not end")
	})
}
