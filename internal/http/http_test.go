package http

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/http/door"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an engine made of closures.
type fake struct {
	post   func(ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput) (*agui.Reply, error)
	events func(after store.Cursor, d agui.Dialect) (*agui.Reply, error)
	info   *threads.Info
	err    error
	asked  string // the thread that was last asked for
	// messages are the messages of every thread, and gone is why no more can be read, after
	// they were read so many times.
	messages  []string
	gone      error
	goneAfter atomic.Int64 // a client may ask again by itself
	// attached is what Attach streams.
	attached []any
	// shared is the shared state of every thread: empty for a usual one, or "none".
	shared string
	// finished are the calls that were finished from outside.
	finished []finishedCall
	timeMachine
}

func (f *fake) Post(
	ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput,
) (*agui.Reply, error) {
	return f.post(ctx, who, agent, in)
}
func (f *fake) Cancel(context.Context, holdfast.Principal, string, string) (*threads.Info, error) {
	return f.info, f.err
}

func (f *fake) Events(
	_ context.Context, _ holdfast.Principal, _, _ string, after store.Cursor, d agui.Dialect,
) (*agui.Reply, error) {
	return f.events(after, d)
}
func (f *fake) Attach(context.Context, holdfast.Principal, string, agui.Dialect) (*agui.Reply, error) {
	if f.err != nil {
		return nil, f.err
	}
	return reply(f.attached...), nil
}
func (f *fake) Join(
	_ context.Context, _ holdfast.Principal, thread, run string, after store.Cursor, d agui.Dialect, shown agui.Shown,
) (*agui.Reply, error) {
	f.asked = thread + "/" + run
	return f.events(after, d)
}
func (f *fake) ThreadOf(_ context.Context, _ holdfast.Principal, run string) (string, error) {
	return "of " + run, f.err
}
func (f *fake) Conversation(
	_ context.Context, _ holdfast.Principal, thread string,
) (*threads.Info, iter.Seq2[[]byte, error], error) {
	f.asked = thread
	return f.info, func(yield func([]byte, error) bool) {
		for _, m := range f.messages {
			if !yield([]byte(m), nil) {
				return
			}
		}
	}, f.err
}
func (f *fake) ThreadsIn(
	_ context.Context, _ holdfast.Principal, status threads.Status, before time.Time, _ int,
) (*threads.List, error) {
	f.asked = string(status)
	return &threads.List{Threads: []threads.Info{*f.info}, Next: before}, f.err
}
func (f *fake) Threads(context.Context, holdfast.Principal, time.Time, int) ([]threads.Info, error) {
	return []threads.Info{*f.info}, f.err
}
func (f *fake) Thread(_ context.Context, _ holdfast.Principal, thread string) (*threads.Info, error) {
	f.asked = thread
	return f.info, f.err
}
func (f *fake) Messages(context.Context, holdfast.Principal, string) (iter.Seq2[json.RawMessage, error], error) {
	return func(yield func(json.RawMessage, error) bool) {
		for _, m := range f.messages {
			if !yield(json.RawMessage(m), nil) {
				return
			}
		}
		if f.gone != nil && f.goneAfter.Load() == 0 {
			yield(nil, f.gone)
		}
		if n := f.goneAfter.Load(); n > 0 {
			f.goneAfter.CompareAndSwap(n, n-1)
		}
	}, f.err
}

// reply yields batches of frames; an error ends it.
func reply(batches ...any) *agui.Reply {
	return &agui.Reply{ThreadID: "t", RunID: "r", Frames: func(yield func([]agui.Frame, error) bool) {
		for _, b := range batches {
			switch b := b.(type) {
			case []agui.Frame:
				if !yield(b, nil) {
					return
				}
			case error:
				yield(nil, b)
				return
			}
		}
	}}
}

func serve(t *testing.T, f *fake, change func(*Config)) *httptest.Server {
	t.Helper()
	if f.info == nil {
		f.info = &threads.Info{ID: "t", Status: threads.StatusIdle}
	}
	if f.messages == nil {
		f.messages = []string{`{"id":"m","role":"user","content":"hi"}`}
	}
	f.timeMachine.f = f
	c := Config{
		Authorize:    anything,
		Runs:         f,
		Cancel:       f.Cancel,
		Threads:      f,
		History:      f,
		Upkeep:       f,
		Titles:       f,
		States:       f,
		Statuses:     f,
		Reloads:      f,
		Joins:        f,
		Calls:        f,
		Inspect:      &insider{f: f},
		RunLog:       (&insider{f: f}).Log,
		Transfer:     &mover{f: f},
		Ready:        func(context.Context) error { return f.err },
		MaxBody:      1 << 10,
		WriteTimeout: time.Second,
		Door:         door.Door{LoopbackOnly: true},
		Authenticate: func(*http.Request) (holdfast.Principal, error) {
			return holdfast.Principal{Tenant: "acme", User: "alice"}, nil
		},
		Log: testLog(),
	}
	if change != nil {
		change(&c)
	}
	s := httptest.NewServer(New(c))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// allRoutes are the routes of a server that has none of its parts.
func allRoutes() []route {
	c := &Config{}
	c.setDefaults()
	return slices.Concat(c.routes(&exchange.Monitor{Bodies: newReceiver(c)}), (&serverAPI{}).routes())
}

// anything lets everybody do everything.
func anything(context.Context, holdfast.Principal, access.Action, string) error { return nil }

func testLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func do(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

const minimal = `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"hi"}]}`

func TestStreamOnTheWire(t *testing.T) {
	f := &fake{
		post: func(_ context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput) (*agui.Reply,
			error) {
			if who.Tenant != "acme" || agent != "helper" || in.Messages[0].ID != "m" {
				t.Errorf("%v %s %+v", who, agent, in)
			}
			r := reply([]agui.Frame{{Data: []byte(`{"a":1}`)}}, []agui.Frame{},
				[]agui.Frame{{ID: "1-x", Data: []byte(`{"b":2}`)}, {ID: "2-x", Data: []byte(`{}`)}})
			r.Owner = "p_1"
			return r, nil
		},
	}
	s := serve(t, f, nil)
	res, body := do(t, "POST", s.URL+"/agents/helper/runs", minimal, "Content-Type", "application/json; charset=utf-8")
	want := ": holdfast\n\ndata: {\"a\":1}\n\n: keep-alive\n\nid: 1-x\ndata: {\"b\":2}\n\nid: 2-x\ndata: {}\n\n"
	if res.StatusCode != 200 || body != want {
		t.Errorf("%d\n%q", res.StatusCode, body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "X-Accel-Buffering": "no",
		"Cache-Control": "no-cache, no-store, no-transform", "Holdfast-Run": "r",
		"Holdfast-Owner": "p_1",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestOwner: answers about a thread say which process runs it, if one does.
func TestOwner(t *testing.T) {
	for owner, code := range map[string]int{"p_1": 202, "": 200} {
		f := &fake{info: &threads.Info{ID: "t", Status: threads.StatusIdle, Owner: owner}}
		if owner != "" {
			f.info.Status = threads.StatusRunning
		}
		s := serve(t, f, nil)
		for _, request := range [][]string{{"GET", "/threads/t"}, {"POST", "/threads/t/runs/r/cancel"}} {
			res, body := do(t, request[0], s.URL+request[1], "", "Content-Type", "application/json")
			got, has := res.Header["Holdfast-Owner"]
			if has != (owner != "") || res.Header.Get("Holdfast-Owner") != owner || strings.Contains(body, "p_1") {
				t.Errorf("%v: %q %s", request, got, body)
			}
			if request[0] == "POST" && res.StatusCode != code {
				t.Errorf("%v: %d %s", request, res.StatusCode, body)
			}
		}
	}
}

// TestCutStream: stock clients take a clean end for success, so they get an error;
// clients that resume get a clean end and a time to come back.
func TestCutStream(t *testing.T) {
	cut := holdfast.Errorf(codes.StreamCut, "attach with GET …")
	f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return reply([]agui.Frame{{ID: "1-x", Data: []byte(`{}`)}}, cut), nil
	}}
	s := serve(t, f, nil)
	_, body := do(t, "POST", s.URL+"/runs", minimal, "Content-Type", "application/json")
	if !strings.HasSuffix(body, `Reload the page to see `+
		`it.","code":"stream_cut","metadata":{"holdfast":{"hint":"attach with GET …"}}}`+"\n\n") ||
		strings.Count(body, "id: ") != 1 {
		t.Errorf("stock client: %q", body)
	}
	_, body = do(t, "POST", s.URL+"/runs", minimal, "Content-Type", "application/json", "Holdfast-Resume", "1")
	if strings.Contains(body, "RUN_ERROR") || !strings.HasPrefix(body, "retry: ") {
		t.Errorf("resuming client: %q", body)
	}
}

// TestInternalsStayInside: the cause of an error reaches the log, never the client.
func TestInternalsStayInside(t *testing.T) {
	f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return nil, errors.New("dial redis://:hunter2@10.0.0.1 refused")
	}}
	s := serve(t, f, nil)
	res, body := do(t, "POST", s.URL+"/runs", minimal, "Content-Type", "application/json")
	if res.StatusCode != 500 || strings.Contains(body, "hunter2") || !strings.Contains(body, `"code":"internal"`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	f.post = func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		panic("hunter2")
	}
	res, body = do(t, "POST", s.URL+"/runs", minimal, "Content-Type", "application/json")
	if res.StatusCode != 500 || strings.Contains(body, "hunter2") {
		t.Errorf("panic: %d %s", res.StatusCode, body)
	}
}

func TestRetryAfter(t *testing.T) {
	s := serve(t, &fake{err: holdfast.Errorf(codes.ShuttingDown, "later").WithHint("wait")}, nil)
	for _, path := range []string{"/readyz", "/threads"} {
		if res, _ := do(t, "GET", s.URL+path, ""); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %q", path, res.StatusCode, res.Header.Get("Retry-After"))
		}
	}
	if res, _ := do(t, "GET", s.URL+"/healthz", ""); res.StatusCode != 200 {
		t.Errorf("/healthz: %d", res.StatusCode)
	}
}

func TestEventsCursor(t *testing.T) {
	var got store.Cursor
	var dialect agui.Dialect
	f := &fake{events: func(after store.Cursor, d agui.Dialect) (*agui.Reply, error) {
		got, dialect = after, d
		return nil, nil
	}}
	s := serve(t, f, nil)
	res, _ := do(t, "GET", s.URL+"/threads/t/runs/r/events?after=1-a&protocolVersion=none", "", "Last-Event-ID", "7-b")
	if res.StatusCode != http.StatusNoContent || got.String() != "7-b" || dialect != agui.DialectLegacy {
		t.Errorf("%d %s %d", res.StatusCode, got, dialect)
	}
}

// TestOddIDs: a thread is found by its id, whatever characters that contains.
func TestOddIDs(t *testing.T) {
	f := &fake{}
	s := serve(t, f, nil)
	for _, id := range []string{"plain", "a/b", "100%", "%2F", "ü ß", "a?b#c", "..", "a+b"} {
		if res, body := do(t, "GET", s.URL+"/threads/"+url.PathEscape(id), ""); res.StatusCode != 200 || f.asked != id {
			t.Errorf("%q was asked for as %q: %d %s", id, f.asked, res.StatusCode, body)
		}
	}
}

func TestPreflight(t *testing.T) {
	s := serve(t, &fake{}, nil)
	res, _ := do(t, "OPTIONS", s.URL+"/runs", "", "Origin", "http://localhost:3000", "Access-Control-Request-Method",
		"POST")
	if res.StatusCode != http.StatusNoContent ||
		res.Header.Get("Access-Control-Allow-Origin") != "http://localhost:3000" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}

// TestStalledClient: a client that does not read is disconnected, and nothing waits for
// it.
func TestStalledClient(t *testing.T) {
	ended := make(chan struct{})
	f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		big := []agui.Frame{{ID: "1-x", Data: bytes.Repeat([]byte("x"), 1<<20)}}
		return &agui.Reply{ThreadID: "t", RunID: "r", Frames: func(yield func([]agui.Frame, error) bool) {
			defer close(ended)
			for yield(big, nil) {
			}
		}}, nil
	}}
	s := serve(t, f, func(c *Config) { c.WriteTimeout = 50 * time.Millisecond })
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/runs", strings.NewReader(minimal))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the stream still waits for its client")
	}
}

// FuzzFrame: however a stream is split into frames, an SSE reader gets back the data
// and the id of each frame.
func FuzzFrame(f *testing.F) {
	f.Add("1-abc", "hello\nworld", uint8(3))
	f.Add("", "\u2028\r\x00", uint8(1))
	f.Fuzz(func(t *testing.T, id, delta string, n uint8) {
		if strings.ContainsAny(id, "\r\n\x00") {
			return // ids are cursors: digits, a dash, a tag
		}
		var frames []agui.Frame
		for range n % 8 {
			frames = append(frames, agui.Frame{ID: id,
				Data: agui.Append(nil, agui.TextMessageContent{MessageID: "m", Delta: delta})})
		}
		sent := httptest.NewRecorder()
		s := &sse{w: sent, rc: http.NewResponseController(sent)}
		if err := errors.Join(s.frames(frames), s.flush()); err != nil {
			t.Fatal(err)
		}
		got := parseSSE(sent.Body.Bytes())
		if len(got) != len(frames) {
			t.Fatalf("%d frames became %d: %q", len(frames), len(got), sent.Body)
		}
		for i := range got {
			if got[i].ID != frames[i].ID || !bytes.Equal(got[i].Data, frames[i].Data) {
				t.Fatalf("%q became %q", frames[i].Data, got[i].Data)
			}
		}
	})
}

// parseSSE reads a stream as the SSE standard says, without its comments.
func parseSSE(b []byte) []agui.Frame {
	var out []agui.Frame
	var cur agui.Frame
	for line := range lines(b) {
		switch {
		case line == "":
			if cur.Data != nil {
				out = append(out, cur)
			}
			cur = agui.Frame{}
		case strings.HasPrefix(line, "id: "):
			cur.ID = line[4:]
		case strings.HasPrefix(line, "data: "):
			cur.Data = append(cur.Data, line[6:]...)
		}
	}
	return out
}

func lines(b []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		scan := bufio.NewScanner(bytes.NewReader(b))
		scan.Buffer(nil, 1<<20)
		scan.Split(splitSSE)
		for scan.Scan() && yield(scan.Text()) {
		}
	}
}

// splitSSE ends a line at LF, CR or CRLF.
func splitSSE(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			return i + 2, data[:i], nil
		}
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// TestTraceparent: the run gets the caller's trace context if it is valid, by every route
// that starts runs.
func TestTraceparent(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var got []string
	f := &fake{
		post: func(_ context.Context, _ holdfast.Principal, _ string, in *agui.RunAgentInput) (*agui.Reply, error) {
			got = append(got, in.Traceparent)
			return reply([]agui.Frame{{Data: agui.Append(nil, agui.RunStarted{ThreadID: "t", RunID: "r"})}}), nil
		},
	}
	s := serve(t, f, func(c *Config) { c.Agents = oneAgent{} })
	for path, body := range map[string]string{
		"/runs": minimal, "/agents/helper/runs": minimal, "/copilotkit/agent/helper/run": minimal,
		"/ai-sdk/helper": chatBody,
	} {
		got = nil
		for _, header := range [][]string{{"Traceparent", parent}, {"traceparent", "00-" + parent}, {}} {
			do(t, "POST", s.URL+path, body, append(header, "Content-Type", "application/json")...)
		}
		if want := []string{parent, "", ""}; !slices.Equal(got, want) {
			t.Errorf("%s: %q", path, got)
		}
	}
}
