package main

// The other side of the agent mortal that is no MCP server: a process that writes down what it
// was asked and what it did, and stops where a test says.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/idempotency"
	"github.com/holdfast-agents/holdfast/webhook"
)

// peer is the service. It knows what it did by its journal alone, as after a crash.
type peer struct {
	*worker
	path string
	mu   sync.Mutex
	jobs atomic.Int64
}

// serve is the service.
func (w *worker) serve(addr, journal string) error {
	p := &peer{worker: w, path: journal}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /lookup", func(rw http.ResponseWriter, r *http.Request) {
		if !p.did("key=" + r.FormValue("key")) {
			rw.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(rw, "done, looked up")
	})
	mux.HandleFunc("/deeds/{tool}", p.work)
	mux.HandleFunc("POST /deliver", p.take)
	mux.HandleFunc("POST /jobs/{tool}", p.begin)
	mux.HandleFunc("GET /jobs/{tool}/{job}", p.poll)
	return (&http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe()
}

// work does what a call asks for, and answers.
func (p *peer) work(rw http.ResponseWriter, r *http.Request) {
	tool, key := r.PathValue("tool"), r.Header.Get(idempotency.Header)
	p.note("peer got tool=%s key=%s", tool, key)
	p.stop(tool, "received")
	p.do(tool, "key="+key, tool == string(holdfast.EffectIdempotent))
	p.stop(tool, "done")
	fmt.Fprint(rw, "done")
}

// take is handed a call out, whose result somebody sends later. It is known by its key.
func (p *peer) take(_ http.ResponseWriter, r *http.Request) {
	var d webhook.Delivery
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		panic(err)
	}
	p.note("peer got tool=%s key=%s url=%s", d.Tool, d.Key, d.URL)
	p.stop(d.Tool, "received")
	p.do(d.Tool, "key="+d.Key, true)
	p.stop(d.Tool, "done")
}

// begin begins a job, and answers with its handle. That of an idempotent tool is its key.
func (p *peer) begin(rw http.ResponseWriter, r *http.Request) {
	tool, key := r.PathValue("tool"), r.Header.Get("Key")
	p.note("peer got tool=%s key=%s", tool, key)
	p.stop(tool, "received")
	job := key
	if !strings.HasSuffix(tool, string(holdfast.EffectIdempotent)) {
		job = fmt.Sprintf("%s-%d-%d", key, os.Getpid(), p.jobs.Add(1))
	}
	fmt.Fprint(rw, job)
}

// poll says how a job goes. It is done when it is first asked for.
func (p *peer) poll(rw http.ResponseWriter, r *http.Request) {
	tool, job := r.PathValue("tool"), r.PathValue("job")
	p.stop(tool, "handle")
	p.do(tool, "key="+r.Header.Get("Key")+" job="+job, true)
	p.stop(tool, "done")
	fmt.Fprint(rw, "done")
}

// do does something, at most once if it is known by what is written down of it.
func (p *peer) do(tool, what string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !known || !p.did(what) {
		p.note("peer did tool=%s %s", tool, what)
	}
}

// did reports whether the journal has what was done.
func (p *peer) did(what string) bool {
	b, err := os.ReadFile(p.path)
	if err != nil {
		panic(fmt.Sprintf("read the journal: %v", err))
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "peer did ") && strings.Contains(line, " "+what+" ") {
			return true
		}
	}
	return false
}

// stop stops the first request for ever that comes to a place with a file.
func (p *peer) stop(tool, moment string) {
	if os.Remove(filepath.Join(p.holds, "peer."+tool+"."+moment)) == nil {
		p.note("peer held tool=%s moment=%s", tool, moment)
		select {}
	}
}

// tracked notes whether a request was sent.
func tracked(ctx context.Context, sent *atomic.Bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
}

// answerOf reads the service's answer.
func answerOf(res *http.Response) (string, error) {
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", holdfast.ErrOutcomeUnknown, err)
	case res.StatusCode == http.StatusNotFound:
		return "", errNotFound
	}
	return string(text), nil
}
