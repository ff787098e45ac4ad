package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/idempotency"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// The scene of a run whose owner is killed in each step (thousand_test.go): three servers
// behind a balancer, and a service outside that writes down what it is asked to do.

// sign is something that a process was seen to do.
type sign struct {
	at      time.Time
	process string // its name
	what    string
	// step is the iteration, for those of the model.
	step int
}

// The visible acts of processes.
const (
	signReady    = "is ready"
	signTakeover = "takes the run over"
	signModel    = "asks the model"
	signTool     = "calls a tool"
	signResult   = "gets a result"
)

// outside is a service that notes every call before it does anything, in a file that
// outlives every server.
type outside struct {
	*httptest.Server
	t     *testing.T
	pause time.Duration // what the work of a call takes
	signs chan<- sign

	mu    sync.Mutex
	notes *os.File
	done  map[string]string // the result by the call's key
}

func newOutside(t *testing.T, pause time.Duration, signs chan<- sign) *outside {
	t.Helper()
	notes, err := os.OpenFile(filepath.Join(t.TempDir(), "notes"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{t: t, pause: pause, signs: signs, notes: notes, done: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /deeds/{tool}", o.work)
	mux.HandleFunc("GET /lookup", o.lookUp)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(func() { o.Close(); notes.Close() })
	return o
}

// work does what a call asks for, at once: what it takes is the time until the answer. It
// does it again if it is asked again, unless the call is an idempotent one.
func (o *outside) work(w http.ResponseWriter, r *http.Request) {
	tool, process := r.PathValue("tool"), r.Header.Get("Process")
	arguments, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was cut off before all of it was sent
	}
	key, known := r.Header.Get(idempotency.Header), false
	if key == "" {
		key = r.Header.Get("Reference")
	}
	o.mu.Lock()
	o.note(effect{Tool: tool, Key: key, Process: process, Arguments: string(arguments)}, "sent")
	if _, known = o.done[key]; !known || tool != "lookup" {
		o.note(effect{Tool: tool, Key: key, Process: process, Arguments: string(arguments)}, "did")
		o.done[key] = "done: " + string(arguments)
	}
	result := o.done[key]
	o.mu.Unlock()
	o.signs <- sign{at: time.Now(), process: process, what: signTool}
	select {
	case <-time.After(o.pause):
		o.signs <- sign{at: time.Now(), process: process, what: signResult}
		fmt.Fprint(w, result)
	case <-r.Context().Done(): // who has asked is dead
	}
}

// lookUp says what became of a call.
func (o *outside) lookUp(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	result, known := o.done[r.FormValue("key")]
	o.note(effect{Key: r.FormValue("key"), Process: r.Header.Get("Process")}, "looked up")
	o.mu.Unlock()
	if !known {
		w.WriteHeader(http.StatusNotFound)
	}
	fmt.Fprint(w, result)
}

// note writes a line, and does not return before it is on the disk. The caller holds mu.
func (o *outside) note(e effect, what string) {
	e.What = what
	line, err := json.Marshal(e)
	if err == nil {
		_, err = o.notes.Write(append(line, '\n'))
	}
	if err == nil {
		err = o.notes.Sync()
	}
	if err != nil {
		o.t.Errorf("note a call: %v", err)
	}
}

// effects returns what was noted.
func (o *outside) effects() (all []effect) {
	o.t.Helper()
	text, err := os.ReadFile(o.notes.Name())
	if err != nil {
		o.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e effect
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			o.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// agents is a file with an agent whose tools lookup and calculate are at the service. Those
// of the same names that the demo has do nothing outside.
func (o *outside) agents() string {
	o.t.Helper()
	path := filepath.Join(o.t.TempDir(), "holdfast.yaml")
	text := fmt.Sprintf(`agents:
  - name: demo
    model: demo
    tools: [lookup, calculate, update_plan]
tools:
  - name: lookup
    description: Looks a word up.
    effect: idempotent
    parameters: {type: object, properties: {term: {type: string}}}
    http:
      method: POST
      url: %[1]s/deeds/lookup
      headers: {Process: "${PROCESS_NAME}"}
      allow: [127.0.0.1]
  - name: calculate
    description: Calculates.
    effect: query
    parameters: {type: object, properties: {expression: {type: string}}}
    http:
      method: POST
      url: %[1]s/deeds/calculate
      headers: {Process: "${PROCESS_NAME}", Reference: "{call.key}"}
      lookUp: "%[1]s/lookup?key={call.key}"
      allow: [127.0.0.1]
`, o.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return path
}

// replica is one of the servers, which is another process after each death.
type replica struct {
	*process
	addr  string
	name  string // of the process
	ready bool
}

// replicas are the servers of one store.
type replicas struct {
	*testing.T
	store   string
	args    []string
	signs   chan sign
	all     []*replica
	started int
	// updates are the calls of the tool update_plan, which the servers' journals tell of.
	mu      sync.Mutex
	updates []effect
}

func newReplicas(t *testing.T, n int, store string, signs chan sign, args ...string) *replicas {
	rs := &replicas{T: t, store: store, signs: signs, args: args}
	for range n {
		r := &replica{addr: redistest.FreeAddr(t)}
		rs.all = append(rs.all, r)
		rs.start(r)
	}
	return rs
}

// start starts a server, and does not wait until it is ready. Its journal is a pipe, so
// that every line of it is seen at once and is that process's.
func (rs *replicas) start(r *replica) {
	rs.Helper()
	journal, end, err := os.Pipe()
	if err != nil {
		rs.Fatal(err)
	}
	name := fmt.Sprint("p", rs.started)
	rs.started++
	cmd := exec.Command(binary, append([]string{"--addr", r.addr, "--store", rs.store, "--demo-journal=/dev/fd/3"},
		rs.args...)...)
	cmd.Env = append(os.Environ(), "PROCESS_NAME="+name)
	cmd.ExtraFiles = []*os.File{end}
	r.process, r.name, r.ready = run(rs.T, cmd), name, false
	r.url = "http://" + r.addr
	end.Close()
	go rs.follow(r.process, name)
	go rs.read(journal, name)
}

// follow tells what the process says of itself.
func (rs *replicas) follow(p *process, name string) {
	told := map[string]bool{}
	for over := false; !over; {
		text, grown := p.out.read()
		for line, what := range map[string]string{"listening   http": signReady,
			"resuming agent loop from checkpoint": signTakeover} {
			if !told[line] && strings.Contains(text, line) {
				told[line] = true
				rs.signs <- sign{at: time.Now(), process: name, what: what}
			}
		}
		select {
		case <-grown:
		case <-p.done:
			over = p.out.String() == text
		}
	}
}

// read reads a process's journal until it is dead.
func (rs *replicas) read(journal *os.File, name string) {
	defer journal.Close()
	for lines := bufio.NewScanner(journal); lines.Scan(); {
		f := fields(lines.Text())
		switch {
		case strings.HasPrefix(lines.Text(), "model start "):
			s := sign{at: time.Now(), process: name, what: signModel}
			if _, err := fmt.Sscan(f["iteration"], &s.step); err == nil {
				rs.signs <- s
			}
		case strings.HasPrefix(lines.Text(), "tool start "):
			rs.mu.Lock()
			rs.updates = append(rs.updates, effect{What: "sent", Tool: f["name"], Key: f["key"], Process: name})
			rs.mu.Unlock()
			rs.signs <- sign{at: time.Now(), process: name, what: signTool}
		case strings.HasPrefix(lines.Text(), "tool end "):
			rs.signs <- sign{at: time.Now(), process: name, what: signResult}
		}
	}
}

// named returns the replica whose process has the name; nil if that is dead.
func (rs *replicas) named(process string) *replica {
	for _, r := range rs.all {
		if r.name == process {
			return r
		}
	}
	return nil
}

// balance listens for clients, and connects each to a server that accepts connections, in
// turn. It returns its address.
func balance(t *testing.T, to []string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		for turn := 0; ; turn++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { carryTo(client, to, turn) })
		}
	})
	return "http://" + l.Addr().String()
}

// carryTo connects a client to the first of the servers that accepts it, from the turn's on.
func carryTo(client net.Conn, to []string, turn int) {
	defer client.Close()
	for i := range to {
		server, err := net.Dial("tcp", to[(turn+i)%len(to)])
		if err != nil {
			continue
		}
		var sending sync.WaitGroup
		sending.Go(func() { _, _ = io.Copy(server, client); server.Close() })
		_, _ = io.Copy(client, server)
		client.Close()
		server.Close()
		sending.Wait()
		return
	}
}
