package main

// Watchers: what a stream costs that is open and has nothing to say, over HTTP/1.1 without
// TLS. Thousands of clients watch one thread whose run sits in a long tool: at the server
// where it runs, and at another one. The control is a handler of net/http alone, which
// writes a comment and waits. Each server is a process of its own, which collects its
// garbage before its memory is read; so the figures are what is held, not what is left over.
//
// Viewers: what a token costs Redis while a thousand clients watch its run at three
// servers, compared with three clients.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// The bars: KB that a watcher holds, and commands that a token costs Redis.
const (
	watcherLimit = 32
	viewerLimit  = 4
)

// watchers is the load.
type watchers struct {
	clients int // that watch, after as many have come before them as warm the server up
	turns   int
}

func (l *watchers) flags(fs *flag.FlagSet) {
	fs.IntVar(&l.clients, "idle-clients", 2000, "with -watchers: how many clients watch")
	fs.IntVar(&l.turns, "idle-turns", 3, "with -watchers: how often each server is measured; medians are compared")
}

// watched is a server that is watched. Its control address tells its memory.
type watched struct {
	*process
	control string
}

// launchWatched starts one: "net/http" or, on a store, Holdfast.
func launchWatched(storeURL string) (*watched, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	control, err := freeAddr()
	if err != nil {
		return nil, err
	}
	what := "watched"
	if storeURL == "" {
		what = "bare"
	}
	p, err := launch(0, nil, self, "-serve", what, "-addr", "{addr}", "-store", storeURL, "-control", control)
	return &watched{process: p, control: "http://" + control}, err
}

// held is the memory of a process, in bytes.
type held struct {
	// Before is what is resident, and After what is once garbage has been collected.
	Before, After int64
	Stacks, Heap  int64
	Goroutines    int
}

// memory has the server collect its garbage, and reads what is left.
func (w *watched) memory() (h held, err error) {
	before, err := w.process.memory()
	if err != nil {
		return h, err
	}
	res, err := http.Get(w.control)
	if err != nil {
		return h, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&h); err != nil {
		return h, err
	}
	h.Before = before
	h.After, err = w.process.memory()
	return h, err
}

// run prints both tables and returns what was missed.
func (l *watchers) run() error {
	redis, err := startRedis("everysec")
	if err != nil {
		return err
	}
	defer redis.stop()
	var missed []error
	for _, s := range []struct {
		name  string
		limit float64
		take  func() (float64, error)
	}{
		{"a handler of net/http that waits", 0, l.bare},
		{"at the server that runs it", watcherLimit, func() (float64, error) { return l.holdfast(redis, false) }},
		{"at another server", watcherLimit, func() (float64, error) { return l.holdfast(redis, true) }},
	} {
		var all []float64
		for range l.turns {
			kb, err := s.take()
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			all = append(all, kb)
		}
		missed = append(missed, bar("KB a watcher, "+s.name, median(all), s.limit))
	}
	// The runs of above sit in their tools still, and servers would go on with them.
	empty, err := startRedis("everysec")
	if err != nil {
		return err
	}
	defer empty.stop()
	few, err := viewers(empty, 3)
	if err != nil {
		return err
	}
	many, err := viewers(empty, 999)
	if err != nil {
		return err
	}
	bar("requests to Redis a token, 3 viewers at 3 servers", few.requests, 0)
	bar("commands in Redis a token, 3 viewers at 3 servers", few.commands, 0)
	bar("commands in Redis a token, 999 viewers", many.commands, 0)
	missed = append(missed, bar("requests to Redis a token, 999 viewers", many.requests, viewerLimit))
	return errors.Join(missed...)
}

// bar prints a figure; the error says that its bar is missed.
func bar(name string, got, limit float64) error {
	line := fmt.Sprintf("   %-52s %6.1f", name, got)
	var err error
	if limit > 0 {
		line += fmt.Sprintf("  (at most %g: %s)", limit, verdict(got <= limit))
	}
	if limit > 0 && got > limit {
		err = fmt.Errorf("missed: %s is %.1f, at most %g", name, got, limit)
	}
	fmt.Println(line)
	return err
}

// bare measures net/http alone.
func (l *watchers) bare() (float64, error) {
	w, err := launchWatched("")
	if err != nil {
		return 0, err
	}
	defer w.stop()
	return l.idle(w, "/")
}

// holdfast measures Holdfast, at the server that runs the watched run or at another.
func (l *watchers) holdfast(redis *redisServer, other bool) (float64, error) {
	owner, err := launchWatched(redis.url())
	if err != nil {
		return 0, err
	}
	defer owner.stop()
	w := owner
	if other {
		if w, err = launchWatched(redis.url()); err != nil {
			return 0, err
		}
		defer w.stop()
	}
	thread := fmt.Sprintf("watched-%d", time.Now().UnixNano())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan error, 1)
	go func() {
		err := errors.New("the run ended")
		_ = newClient(owner.url).stream(ctx, thread, script{}, func(line []byte) bool {
			if bytes.Contains(line, []byte(`"TOOL_CALL_END"`)) {
				started <- nil
			}
			return true
		})
		started <- err
	}()
	if err := <-started; err != nil {
		return 0, err
	}
	return l.idle(w, "/threads/"+thread+"/stream")
}

// idle returns how many KB a watcher of the path holds.
func (l *watchers) idle(w *watched, path string) (float64, error) {
	first, err := watch(w, path, 200)
	defer first.close()
	if err != nil {
		return 0, err
	}
	before, err := w.memory()
	if err != nil {
		return 0, err
	}
	all, err := watch(w, path, l.clients)
	defer all.close()
	if err != nil {
		return 0, err
	}
	after, err := w.memory()
	if err != nil {
		return 0, err
	}
	per := func(bytes int64) float64 { return float64(bytes) / 1024 / float64(l.clients) }
	fmt.Printf("      %.1f KB a watcher, %.1f before garbage is collected: stacks %.1f, heap %.1f, %.1f goroutines\n",
		per(after.After-before.After), per(after.Before-before.Before), per(after.Stacks-before.Stacks),
		per(after.Heap-before.Heap), float64(after.Goroutines-before.Goroutines)/float64(l.clients))
	return per(after.After - before.After), nil
}

// sockets are clients that do nothing.
type sockets []net.Conn

func (s sockets) close() {
	for _, c := range s {
		_ = c.Close()
	}
}

// watch opens streams of a path, waits until each has begun, and then until all have been
// idle for a while.
func watch(w *watched, path string, n int) (open sockets, err error) {
	addr := strings.TrimPrefix(w.url, "http://")
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return open, err
		}
		open = append(open, c)
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
			return open, err
		}
		in := bufio.NewReaderSize(c, 512)
		status, err := in.ReadString('\n')
		if err != nil || !strings.Contains(status, "200") {
			return open, fmt.Errorf("a watcher is answered %q: %v", status, err)
		}
		for line := ""; !strings.HasPrefix(line, "data: "); {
			if line, err = in.ReadString('\n'); err != nil {
				return open, err
			}
		}
	}
	time.Sleep(3 * time.Second)
	return open, nil
}

// usageOf is what one token costs Redis.
type usageOf struct{ requests, commands float64 }

// viewers has clients watch a run of slow tokens at three servers, and counts what Redis
// does for it.
func viewers(redis *redisServer, clients int) (u usageOf, err error) {
	const tokens = 100
	var servers [3]*watched
	for i := range servers {
		if servers[i], err = launchWatched(redis.url()); err != nil {
			return u, err
		}
		defer servers[i].stop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := crowdOfViewers{thread: fmt.Sprintf("viewed-%d-%d", clients, time.Now().UnixNano()), ended: make(chan error, 1)}
	defer c.all.Wait()
	defer cancel()
	c.begin(ctx, servers[0], script{tokens: tokens, every: 100 * time.Millisecond})
	if err := c.join(ctx, servers[:], clients); err != nil {
		return u, err
	}
	// All watch. From here to the end of the run Redis has nothing else to do.
	before, err := sent(redis)
	if err != nil {
		return u, err
	}
	from := c.seen.Load()
	if err := control(servers[0]); err != nil { // go on
		return u, err
	}
	if err := <-c.ended; err != nil {
		return u, err
	}
	after, err := sent(redis)
	if got := float64(c.seen.Load()-from) / float64(clients+1); got < tokens*0.9 {
		return u, fmt.Errorf("a viewer has seen %.0f of %d tokens", got, tokens)
	}
	return usageOf{(after.requests - before.requests) / tokens, (after.commands - before.commands) / tokens}, err
}

// crowdOfViewers are clients that watch one run, and the one that has begun it.
type crowdOfViewers struct {
	thread string
	seen   atomic.Int64 // words, by all of them
	all    sync.WaitGroup
	ended  chan error // has the end of the run
}

func (c *crowdOfViewers) count(line []byte) { c.seen.Add(int64(bytes.Count(line, []byte("word ")))) }

// begin begins the run, and returns when its stream has.
func (c *crowdOfViewers) begin(ctx context.Context, w *watched, s script) {
	begun := make(chan struct{})
	c.all.Go(func() {
		began := sync.OnceFunc(func() { close(begun) })
		c.ended <- newClient(w.url).stream(ctx, c.thread, s, func(line []byte) bool {
			began()
			c.count(line)
			return true
		})
	})
	<-begun
}

// join has clients watch the run at all servers, and returns when their streams have begun.
func (c *crowdOfViewers) join(ctx context.Context, servers []*watched, clients int) error {
	opened := make(chan error, 2*clients)
	for i := range clients {
		c.all.Go(func() {
			opened <- view(ctx, servers[i%len(servers)].url+"/threads/"+c.thread+"/stream", c.count, opened)
		})
	}
	for range clients {
		if err := <-opened; err != nil {
			return err
		}
	}
	return nil
}

// sent returns what Redis has executed so far: what was sent to it, and also what scripts
// call. Readers send HMGET and XRANGE; a commit's script has one HMGET and one HSET.
func sent(redis *redisServer) (u usageOf, err error) {
	all, err := redis.usage()
	if err != nil {
		return u, err
	}
	figures, err := redis.info("commandstats")
	read := figures["cmdstat_xrange"] + figures["cmdstat_hmget"] - figures["cmdstat_hset"]
	return usageOf{requests: all.requests + read, commands: all.commands}, err
}

// control lets the server's tool or model go on.
func control(w *watched) error {
	res, err := http.Post(w.control, "", nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// view watches a stream, and tells when it has begun.
func view(ctx context.Context, url string, count func([]byte), opened chan<- error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("a viewer is answered %s", res.Status)
	}
	scan := bufio.NewScanner(res.Body)
	scan.Buffer(make([]byte, 4<<10), 1<<20)
	for told := false; scan.Scan(); {
		if !told && bytes.HasPrefix(scan.Bytes(), []byte("data: ")) {
			told = true
			opened <- nil
		}
		count(scan.Bytes())
	}
	return nil
}

// serveBare serves streams with nothing but net/http.
func serveBare(addr, control string) error {
	go serveControl(control, func() {})
	http.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: x\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return http.ListenAndServe(addr, nil)
}

// serveWatched serves Holdfast. Its model calls a tool that takes as long as the server
// lives or, if it is asked for tokens, sends them once it is told to go on.
func serveWatched(addr, storeURL, control string) error {
	proceed := make(chan struct{})
	go serveControl(control, sync.OnceFunc(func() { close(proceed) }))
	tool := holdfast.NewTool("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, holdfast.WithTimeout(time.Hour))
	model := func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		s, err := parseScript([]byte(req.Messages[len(req.Messages)-1].Text))
		return func(yield func(holdfast.Delta, error) bool) {
			if err != nil || s.tokens == 0 {
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{ID: "c", Name: "wait", Arguments: "{}"},
						Finish: holdfast.FinishToolCalls,
					},
					err,
				)
				return
			}
			yield(holdfast.Delta{Text: "ready "}, nil)
			<-proceed
			for range s.tokens {
				time.Sleep(s.every)
				if !yield(holdfast.Delta{Text: "word "}, nil) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
		}
	}
	s, err := server.New(server.Config{
		Addr:   addr,
		Store:  storeURL,
		Log:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Agents: []holdfast.Agent{{Name: "waits", Model: holdfast.ModelFunc(model), Tools: []holdfast.Tool{tool}}},
	})
	if err != nil {
		return err
	}
	return s.ListenAndServe(context.Background())
}

// serveControl serves, at an address of its own, GET /: the server collects its garbage
// and says what it holds; and POST /: the model goes on.
func serveControl(addr string, proceed func()) {
	err := http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			proceed()
			return
		}
		for range 3 { // stacks shrink by half at a time, and what is pooled goes at the second
			runtime.GC()
		}
		debug.FreeOSMemory()
		read := []metrics.Sample{
			{Name: "/memory/classes/heap/stacks:bytes"},
			{Name: "/memory/classes/heap/objects:bytes"},
		}
		metrics.Read(read)
		_ = json.NewEncoder(w).
			Encode(held{Stacks: int64(read[0].Value.Uint64()), Heap: int64(read[1].Value.Uint64()),
				Goroutines: runtime.NumGoroutine()})
	}))
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
