package main

// An agent whose tools are HTTP services, and the service itself, which is a process of its
// own: it writes down what it was asked and what it did, and stops where a test says.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/httptool"
	"github.com/holdfast-agents/holdfast/idempotency"
	"github.com/holdfast-agents/holdfast/middleware"
)

// caller is an agent with a tool for each effect. What may be tried again is, so that it
// outlives the service's restart.
func (w *worker) caller(service string) (holdfast.Agent, error) {
	agent := holdfast.Agent{Name: "caller", Model: holdfast.ModelFunc(w.model), Middleware: []holdfast.Middleware{
		middleware.Retry(middleware.RetryOptions{Attempts: 20, Backoff: middleware.Duration(50 * time.Millisecond), MaxBackoff: middleware.Duration(time.Second)}),
	}}
	for _, effect := range []holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce, holdfast.EffectQuery} {
		o := httptool.Options{Name: string(effect), Description: "A service of the tests.", URL: service + "/" + string(effect) + "?n={n}", Effect: effect, Allow: []string{"127.0.0.1"}}
		if effect != holdfast.EffectPure {
			o.Method, o.Body = http.MethodPost, json.RawMessage(`{"n":"{n}"}`)
		}
		if effect == holdfast.EffectQuery {
			o.LookUp = service + "/lookup?key={call.key}"
		}
		tool, err := httptool.New(o)
		if err != nil {
			return agent, err
		}
		agent.Tools = append(agent.Tools, tool)
	}
	return agent, nil
}

// serve is the service. It knows what it did by its journal alone, as after a crash.
func (w *worker) serve(addr, journal string) error {
	var mu sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /lookup", func(rw http.ResponseWriter, r *http.Request) {
		if !did(journal, r.FormValue("key")) {
			rw.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(rw, "ok, looked up")
	})
	mux.HandleFunc("/{effect}", func(rw http.ResponseWriter, r *http.Request) {
		effect, key := r.PathValue("effect"), r.Header.Get(idempotency.Header)
		w.note("service got effect=%s key=%s", effect, key)
		w.stopService(effect, "received")
		mu.Lock()
		if effect != string(holdfast.EffectIdempotent) || !did(journal, key) {
			w.note("service did effect=%s key=%s", effect, key)
		}
		mu.Unlock()
		w.stopService(effect, "done")
		fmt.Fprint(rw, "ok")
	})
	return (&http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe()
}

// did reports whether the journal has what was done under a key.
func did(journal, key string) bool {
	b, err := os.ReadFile(journal)
	if err != nil {
		panic(fmt.Sprintf("read the journal: %v", err))
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "service did ") && strings.Contains(line, " key="+key+" ") {
			return true
		}
	}
	return false
}

// stopService stops the first request for ever that comes to a place with a file.
func (w *worker) stopService(effect, moment string) {
	if os.Remove(filepath.Join(w.holds, "service."+effect+"."+moment)) == nil {
		w.note("service held effect=%s moment=%s", effect, moment)
		select {}
	}
}
