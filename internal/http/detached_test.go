package http

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/connections"
)

// told is a stream that sends what a test tells it to.
type told struct {
	frames chan []agui.Frame // closed at the end
	err    error             // after that
	ctx    context.Context
}

func (s *told) reply(ctx context.Context) *agui.Reply {
	s.ctx = ctx
	return &agui.Reply{ThreadID: "t", RunID: "r", Frames: func(yield func([]agui.Frame, error) bool) {
		for {
			select {
			case frames, more := <-s.frames:
				if !more {
					if s.err != nil {
						yield(nil, s.err)
					}
					return
				}
				if !yield(frames, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}}
}

// countedStreams counts open streams as the limits do.
type countedStreams struct{ open atomic.Int64 }

func (c *countedStreams) OpenStream(holdfast.Principal) (func(), error) {
	c.open.Add(1)
	return func() { c.open.Add(-1) }, nil
}

func (c *countedStreams) HoldBytes(holdfast.Principal, int64) (func(), error) { return func() {}, nil }

// silently opens a stream in a bubble and lets it be silent until it detaches.
type silently struct {
	*told
	*pipes
	conn    net.Conn
	in      *bufio.Reader
	res     *http.Response
	body    *bufio.Reader
	streams countedStreams
	seen    *observed
}

func openSilently(t *testing.T, request string) *silently {
	t.Helper()
	s := &silently{told: &told{frames: make(chan []agui.Frame)}, seen: &observed{done: make(chan string, 9)}}
	f := &fake{
		post: func(ctx context.Context, _ holdfast.Principal, _ string, _ *agui.RunAgentInput) (*agui.Reply, error) {
			return s.reply(ctx), nil
		},
	}
	s.pipes = hostile(t, f, func(c *Config) { c.Streams, c.Observer, c.Now = &s.streams, s.seen, clock.Wall })
	s.conn = s.dial(t)
	s.in = bufio.NewReader(received(s.conn))
	go func() { _, _ = io.WriteString(s.conn, request) }()
	go func() { s.frames <- []agui.Frame{{ID: "1-x", Data: []byte(`{"n":1}`)}} }()
	var err error
	if s.res, err = http.ReadResponse(s.in, nil); err != nil {
		t.Fatal(err)
	}
	s.body = bufio.NewReader(s.res.Body)
	s.next(t, "1-x")
	time.Sleep(3 * silence)
	synctest.Wait()
	if s.times(http.StateHijacked) != 1 {
		t.Fatal("the stream has not detached")
	}
	if s.streams.open.Load() != 1 || s.seen.opened.Load() != 1 || s.seen.closed.Load() != 0 || len(s.seen.done) > 0 {
		t.Fatal("the stream counts as ended")
	}
	return s
}

// received reads what comes as soon as it comes, as a kernel does.
func received(c net.Conn) io.Reader {
	r := &receiving{more: make(chan struct{}, 1)}
	go func() {
		buf := make([]byte, 4<<10)
		for {
			n, err := c.Read(buf)
			r.mu.Lock()
			r.got, r.err = append(r.got, buf[:n]...), err
			r.mu.Unlock()
			select {
			case r.more <- struct{}{}:
			default:
			}
			if err != nil {
				close(r.more)
				return
			}
		}
	}()
	return r
}

type receiving struct {
	more chan struct{}
	mu   sync.Mutex
	got  []byte
	err  error
}

func (r *receiving) Read(b []byte) (int, error) {
	for {
		r.mu.Lock()
		n, err := copy(b, r.got), r.err
		r.got = r.got[n:]
		r.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		<-r.more
	}
}

// next reads up to the end of the event with the id.
func (s *silently) next(t *testing.T, id string) {
	t.Helper()
	for line := ""; line != "id: "+id+"\n"; {
		var err error
		if line, err = s.body.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := s.body.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
}

// ended checks that everything knows that the stream has ended.
func (s *silently) ended(t *testing.T, took time.Duration) {
	t.Helper()
	synctest.Wait()
	if s.streams.open.Load() != 0 || s.seen.closed.Load() != 1 || s.ctx.Err() == nil {
		t.Errorf("after the end %d streams are open, %d closed, and the context's error is %v", s.streams.open.Load(),
			s.seen.closed.Load(), s.ctx.Err())
	}
	select {
	case got := <-s.seen.done:
		if got != "POST /runs 200" || time.Duration(s.seen.took.Load()) < took {
			t.Errorf("observed %q, which took %s", got, time.Duration(s.seen.took.Load()))
		}
	default:
		t.Error("the request was not observed")
	}
}

// TestDetached: a stream that was silent goes on, ends as any other does, and its connection
// serves the next requests; also one that was sent before the end of the stream.
func TestDetached(t *testing.T) {
	for name, early := range map[string]bool{"a request after the end": false, "a request before the end": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := openSilently(t, posts("alice", "/runs", minimal))
				for n := 2; n < 5; n++ {
					s.frames <- []agui.Frame{{ID: fmt.Sprint(n, "-x"),
						Data: []byte(strings.Repeat("long ", 50_000*(n-2)+1))},
						{ID: fmt.Sprint(n, "-y"), Data: []byte("{}")}}
					s.next(t, fmt.Sprint(n, "-x"))
					s.next(t, fmt.Sprint(n, "-y"))
					time.Sleep(time.Hour)
				}
				const next = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
				if early {
					sendOn(s.conn, next)
					synctest.Wait()
				}
				close(s.frames)
				if rest, err := io.ReadAll(s.body); err != nil || len(rest) > 0 {
					t.Errorf("after the last event come %q, %v", rest, err)
				}
				took := 3 * time.Hour
				if early {
					took = 0 // by now, the time is that of the next request
				}
				s.ended(t, took)
				for n := range 2 {
					if !early || n > 0 {
						time.Sleep(time.Minute)
						sendOn(s.conn, next)
					}
					res, err := http.ReadResponse(s.in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK ||
						res.Close {
						t.Errorf("the next request is answered %s, %v", res.Status, err)
					}
				}
			})
		})
	}
}

// TestDetachedEnds: the ways in which a detached stream ends that is not complete, or whose
// connection is not used again.
func TestDetachedEnds(t *testing.T) {
	shut := func(ctx context.Context, s *silently) error { return s.detached.Shutdown(ctx) }
	for name, c := range map[string]struct {
		request string
		do      func(t *testing.T, s *silently)
		err     error // of the body
	}{
		"the client leaves": {do: func(_ *testing.T, s *silently) { _ = s.conn.Close() }, err: io.ErrClosedPipe},
		"an event breaks off": {do: func(_ *testing.T, s *silently) {
			s.frames <- []agui.Frame{{ID: "2-x", Pieces: func(yield func([]byte, error) bool) {
				_ = yield([]byte("{"), nil) && yield(nil, errors.New("lost"))
			}}}
		}, err: io.ErrUnexpectedEOF},
		"a panic": {do: func(_ *testing.T, s *silently) {
			s.frames <- []agui.Frame{{ID: "2-x", Pieces: func(func([]byte, error) bool) { panic("in an event") }}}
		}, err: io.ErrUnexpectedEOF},
		"an error": {do: func(_ *testing.T, s *silently) { s.err = errors.New("lost"); close(s.frames) }},
		"the client wants no more": {
			request: strings.Replace(posts("alice", "/runs", minimal), "Host: x", "Host: x\r\nConnection: close", 1),
			do:      func(_ *testing.T, s *silently) { close(s.frames) },
		},
		"nothing comes after it": {do: func(_ *testing.T,
			s *silently) {
			close(s.frames)
			time.Sleep(3 * time.Minute)
		}},
		"the server stops": {do: func(t *testing.T, s *silently) {
			go func() { time.Sleep(time.Second); close(s.frames) }()
			go func() {
				if err := shut(context.Background(), s); err != nil {
					t.Error(err)
				}
			}()
		}},
		"the server stops after it": {do: func(t *testing.T, s *silently) {
			close(s.frames)
			time.Sleep(time.Second)
			if err := shut(context.Background(), s); err != nil {
				t.Error(err)
			}
		}},
		"the server cannot wait": {do: func(t *testing.T, s *silently) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := shut(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}, err: io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.request == "" {
					c.request = posts("alice", "/runs", minimal)
				}
				s := openSilently(t, c.request)
				read := make(chan error)
				go func() {
					_, err := io.Copy(io.Discard, s.body)
					read <- err
				}()
				c.do(t, s)
				if err := <-read; !errors.Is(err, c.err) {
					t.Errorf("the client sees %v, want %v", err, c.err)
				}
				s.ended(t, 3*silence)
				if n, err := s.in.Read(make([]byte, 1)); n > 0 || err == nil {
					t.Error("the connection is still open")
				}
			})
		})
	}
}

// TestStaysInItsHandler: a stream detaches only from a server that takes its connection back,
// and only with HTTP/1.1.
func TestStaysInItsHandler(t *testing.T) {
	for name, c := range map[string]struct {
		request string
		change  func(*Config)
	}{
		"HTTP/1.0": {strings.Replace(posts("alice", "/runs", minimal), "HTTP/1.1", "HTTP/1.0", 1), nil},
		"another server": {posts("alice", "/runs", minimal),
			func(c *Config) { c.Detached = connections.NewDetached(time.Minute, nil, nil) }},
		"a body is left": {strings.Replace(posts("alice", "/threads/t/stream", "x"), "POST", "GET", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{
					post: func(ctx context.Context, _ holdfast.Principal, _ string,
						_ *agui.RunAgentInput) (*agui.Reply, error) {
						return &agui.Reply{
							ThreadID: "t",
							RunID:    "r",
							Frames: func(yield func([]agui.Frame, error) bool) {
								time.Sleep(time.Minute)
								yield([]agui.Frame{{ID: "1-x", Data: []byte("{}")}}, nil)
							},
						}, nil
					},
				}
				l := hostile(t, f, c.change)
				conn := l.dial(t)
				sendOn(conn, c.request)
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil || l.times(http.StateHijacked) > 0 {
					t.Errorf("%s: %v, detached %d times", res.Status, err, l.times(http.StateHijacked))
				}
			})
		})
	}
}
