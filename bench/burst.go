package main

// The cost of many at once: runs that start together, and clients that come back together
// while others' streams go on.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// burst: 100 runs that start at once, of 100 tokens at 50/s each.
func burst(t *target) (*result, error) {
	return crowd(t, 100, 1, 0, script{tokens: 100, every: 20 * time.Millisecond})
}

// together: 20 streams of 50 tokens/s that start at once, so that their tokens come in
// step for as long as they last.
func together(t *target) (*result, error) {
	return crowd(t, 20, 1, 0, script{tokens: 250, every: 20 * time.Millisecond})
}

const (
	stormRuns     = 200 // runs that are watched when the storm comes
	stormWatchers = 10  // clients of each that come back
	stormTokens   = 50  // tokens of each of these runs, before it waits
	othersTokens  = 200 // tokens of each of the others' streams
	othersBefore  = 50  // how many of them have come when the storm begins
)

// storm: while 20 streams of 50 tokens/s go on, 2,000 clients come back at once, each with
// the cursor of an early record of one of 200 runs that have not ended. The latency is that
// of the streams, from the beginning of the storm.
func storm(t *target) (*result, error) {
	back, err := watchRun(t)
	if err != nil {
		return nil, err
	}
	h, err := newStorm(t.url, back)
	if err != nil {
		return nil, err
	}
	defer h.stop()
	others := watchOthers(t)
	begun, err := t.cpu()
	served, err2 := h.release()
	ended, err3 := t.cpu()
	r, err4 := others()
	r.cpu = ended - begun
	r.values = map[string]float64{
		"a client is up to date, p50, ms": served.Half, "the last client is up to date, ms": served.Last,
		"CPU of the storm, ms": ms(r.cpu),
	}
	return r, errors.Join(err, err2, err3, err4)
}

// watchOthers begins 20 streams of 50 tokens/s, and returns when they have been going on for a
// second. The returned function waits for their ends; the latency is that of the time since.
func watchOthers(t *target) (rest func() (*result, error)) {
	r := &result{}
	var mu sync.Mutex
	var failed error
	var others sync.WaitGroup
	c := newClient(t.url)
	every := 20 * time.Millisecond
	for i := range 20 {
		others.Go(func() {
			time.Sleep(time.Duration(i) * every / 20)
			one, err := c.run(context.Background(), t.thread(i, stormRuns), script{tokens: othersTokens, every: every})
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			one.latency = one.latency[min(othersBefore, len(one.latency)):]
			r.add(one)
		})
	}
	time.Sleep(othersBefore * every)
	return func() (*result, error) {
		others.Wait()
		c.http.CloseIdleConnections()
		return r, failed
	}
}

// starts: while 20 streams of 50 tokens/s go on, 200 runs start at once. The latency is that
// of the streams, from the beginning of the burst.
func starts(t *target) (*result, error) {
	others := watchOthers(t)
	began, err := crowd(t, 200, 1, 0, script{tokens: 5, every: 20 * time.Millisecond})
	r, err2 := others()
	if err == nil {
		r.values = map[string]float64{
			"a run has begun, p50, ms":   ms(percentile(began.first, 50)),
			"the last run has begun, ms": ms(percentile(began.first, 100)),
		}
	}
	return r, errors.Join(err, err2)
}

// watchRun starts the runs that are watched, leaves them, and returns how each is come back
// to, once for each of its watchers.
func watchRun(t *target) ([]comeback, error) {
	back := make([]comeback, stormRuns)
	c := newClient(t.url)
	defer c.http.CloseIdleConnections()
	var mu sync.Mutex
	var failed error
	var clients sync.WaitGroup
	for client := range 10 {
		clients.Go(func() {
			for n := client; n < stormRuns; n += 10 {
				one, err := c.leave(t.thread(n, 0),
					script{tokens: stormTokens, every: time.Millisecond, hold: time.Minute})
				mu.Lock()
				back[n], failed = one, errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	var all []comeback
	for range stormWatchers {
		all = append(all, back...)
	}
	return all, failed
}

// comeback is how a client comes back to a run.
type comeback struct {
	path   string
	cursor string // of a record that it has
	tokens int    // that it lacks
}

// leave makes a run and leaves it once all of its tokens have come. It returns how to come
// back with the cursor of its first token: the id of the event or, on a server that gives
// none, its number.
func (c *client) leave(thread string, s script) (comeback, error) {
	back := comeback{path: "/threads/" + thread + "/runs/r/events"}
	id, events, tokens := "", 0, 0
	err := c.stream(context.Background(), thread, s, func(line []byte) bool {
		if text, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			id = string(text)
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			events++
		}
		if n := tokensIn(line); n > 0 {
			tokens += n
			if back.cursor == "" {
				back.cursor, back.tokens = id, s.tokens-tokens
				if id == "" {
					back.cursor = strconv.Itoa(events)
				}
			}
		}
		return tokens < s.tokens
	})
	if err == nil && tokens < s.tokens {
		err = fmt.Errorf("a run ended after %d tokens", tokens)
	}
	return back, err
}

// tokensIn returns how many tokens a line of a stream has.
func tokensIn(line []byte) int {
	if !bytes.Contains(line, contentMark) {
		return 0
	}
	_, text, _ := bytes.Cut(line, deltaMark)
	text, _, _ = bytes.Cut(text, []byte(`"`))
	return len(text) / tokenLength
}

// stormProcess is the program that the clients of a storm are in: they must not keep the
// one that measures the others from its work.
type stormProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// newStorm starts it, and waits until it is ready to begin.
func newStorm(url string, back []comeback) (*stormProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &stormProcess{cmd: exec.Command(self, "-serve", "storm", "-addr", strings.TrimPrefix(url, "http://"))}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for _, b := range back {
		if _, err := fmt.Fprintln(p.in, b.path, b.cursor, b.tokens); err != nil {
			p.stop()
			return nil, err
		}
	}
	if _, err := fmt.Fprintln(p.in, "end"); err != nil {
		p.stop()
		return nil, err
	}
	if _, err := p.out.ReadString('\n'); err != nil {
		p.stop()
		return nil, fmt.Errorf("the storm does not get ready: %w", err)
	}
	return p, nil
}

// release begins the storm, and returns once every client is up to date.
func (p *stormProcess) release() (served, error) {
	var s served
	if _, err := fmt.Fprintln(p.in, "go"); err != nil {
		return s, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return s, fmt.Errorf("the storm ends early: %w", err)
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return s, err
	}
	if s.Failed > 0 {
		return s, fmt.Errorf("%d clients failed, one with: %s", s.Failed, s.Error)
	}
	return s, nil
}

func (p *stormProcess) stop() {
	// It was only needed for the measurement.
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// served is what became of the clients of a storm.
type served struct {
	Half, Last float64 // how long until half of them, and all, were up to date, in ms
	Failed     int
	Error      string
}

// serveStorm is the program: it reads how each client comes back, and, when it is told to,
// lets all of them do so at once. They stay until it is killed.
func serveStorm(addr string) error {
	in := bufio.NewScanner(os.Stdin)
	var back []comeback
	for in.Scan() && in.Text() != "end" {
		var b comeback
		if _, err := fmt.Sscan(in.Text(), &b.path, &b.cursor, &b.tokens); err != nil {
			return err
		}
		back = append(back, b)
	}
	fmt.Println("ready")
	if !in.Scan() {
		return errors.New("nobody begins the storm")
	}
	var s served
	var mu sync.Mutex
	var took []time.Duration
	var clients sync.WaitGroup
	begun := time.Now()
	for _, b := range back {
		clients.Go(func() {
			err := b.come(addr)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(begun))
			if err != nil {
				s.Failed, s.Error = s.Failed+1, err.Error()
			}
		})
	}
	clients.Wait()
	s.Half, s.Last = ms(percentile(took, 50)), ms(percentile(took, 100))
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		return err
	}
	in.Scan() // to the end of this process
	return nil
}

// come comes back, and returns once all tokens have come that the client lacks. The
// connection stays open.
func (b *comeback) come(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: "+
		"text/event-stream\r\nLast-Event-ID: %s\r\n\r\n", b.path, addr, b.cursor); err != nil {
		return err
	}
	r := bufio.NewReaderSize(conn, 1024)
	status, err := r.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		return errors.Join(fmt.Errorf("status %q", strings.TrimSpace(status)), err)
	}
	for got := 0; got < b.tokens; {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("after %d of %d tokens: %w", got, b.tokens, err)
		}
		got += tokensIn(line)
	}
	return nil
}
