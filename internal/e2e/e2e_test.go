// Package e2e tests the built program from outside: over HTTP, with the
// official client, and with kill -9 in the middle.
//
// This file has what the tests share: the programs, which are built once, a running
// server, and the streams that it sends.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// binary is the program under test, crashing the same with crash points, and
// workerBinary one with agents of the tests, and crashingWorker that with crash points.
// They are built once for all tests, and without the race detector: a program that is
// killed reports no race, and the packages it is made of run under the detector in tests
// of their own.
var (
	binary, workerBinary string
	shopBinary           string // the MCP server of examples/tools
	crashing             func() (path string, err error)
	crashingWorker       func() (path string, err error)
	nextBuild            func() (path string, err error) // the program with the data format that is to come
)

// sharedRedis is for all tests that do not depend on who is woken.
var sharedRedis redistest.Shared

func TestMain(m *testing.M) {
	flag.Parse()
	work := func() (int, error) { return runTests(m) }
	if os.Getenv(crowdEnv) != "" {
		work = func() (int, error) { return 0, crowd() }
	}
	code, err := work()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	// The tests must kill the server itself, and nothing may start it again.
	if err := os.Setenv("HOLDFAST_DEMO_KILL", "false"); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, sharedRedis.Stop(), os.RemoveAll(dir)) }()
	binary, workerBinary, shopBinary = filepath.Join(dir, "server"), filepath.Join(dir, "worker"),
		filepath.Join(dir, "shop")
	if err := build("-o", dir, "../../cmd/server", "./worker", "../../examples/tools/shop"); err != nil {
		return 1, err
	}
	tagged := func(tag, name, source string) func() (string, error) {
		return sync.OnceValues(func() (string, error) {
			path := filepath.Join(dir, name)
			return path, build("-tags", tag, "-o", path, source)
		})
	}
	crashing = tagged("crashpoints", "crashing", "../../cmd/server")
	crashingWorker = tagged("crashpoints", "crashing-worker", "./worker")
	nextBuild = tagged("nextformat", "next", "../../cmd/server")
	if err := waitTogether(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// build builds without what only debuggers read, which takes half as long.
func build(args ...string) error {
	if out, err := exec.Command("go", append([]string{"build", "-ldflags=-s -w"}, args...)...).
		CombinedOutput(); err != nil {
		return fmt.Errorf("go build %q: %w\n%s", args, err, out)
	}
	return nil
}

// waitTogether has more tests run at a time than there are processors, unless
// -parallel says how many: most of the time they wait for a model that takes its time,
// for a lease that must run out, or for a process.
func waitTogether() error {
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() != parallel.DefValue {
		return nil
	}
	return parallel.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0)))
}

// process is a running server.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	out  *output
	done chan struct{}
}

// output is what a process has written.
type output struct {
	mu    sync.Mutex
	b     bytes.Buffer
	grown chan struct{} // closed with the next write
}

func newOutput() *output { return &output{grown: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.b.Write(p)
}

func (o *output) String() string {
	text, _ := o.read()
	return text
}

func (o *output) read() (text string, grown <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String(), o.grown
}

// awaitOutput waits until the process has written what is looked for, or until stop is
// closed, which may be nil.
func (p *process) awaitOutput(found func(text string) bool, stop <-chan struct{}) {
	p.t.Helper()
	late := time.After(patience)
	for {
		text, grown := p.out.read()
		if found(text) {
			return
		}
		select {
		case <-grown:
		case <-stop:
			return
		case <-p.done:
			if found(p.out.String()) {
				return
			}
			p.t.Fatalf("the server has ended, and has not said what it should: %s", p.out)
		case <-late:
			p.t.Fatalf("the server does not say what it should: %s", p.out)
		}
	}
}

// start runs the server on a store and waits until it is ready.
func start(t *testing.T, addr, store string, args ...string) *process {
	t.Helper()
	return launch(t, binary, addr, store, args...).ready()
}

// ready waits until the server is.
func (p *process) ready() *process {
	t := p.t
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		res, err := http.Get(p.url + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return p
			}
		}
		select {
		case <-p.done:
			t.Fatalf("the server ended: %s", p.out)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready: %s", p.out)
		}
	}
}

func launch(t *testing.T, program, addr, store string, args ...string) *process {
	t.Helper()
	p := run(t, exec.Command(program, append([]string{"--addr", addr, "--store", store}, args...)...))
	p.url = "http://" + addr
	return p
}

// run runs a command as the process of a server.
func run(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, out: newOutput(), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		// A killed process has no exit code worth a look; died looks at how it ended.
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// record is one frame that a watcher got.
type record struct {
	ID   string
	Data map[string]any
	Raw  string
}

func (r record) kind() string { s, _ := r.Data["type"].(string); return s }

// readStream reads frames until the stream ends or each says stop.
func readStream(body io.Reader, each func(record) (stop bool)) error {
	scan := bufio.NewScanner(body)
	scan.Buffer(make([]byte, 64<<10), 16<<20)
	var cur record
	for scan.Scan() {
		line := scan.Text()
		switch {
		case line == "":
			if cur.Raw != "" {
				if err := json.Unmarshal([]byte(cur.Raw), &cur.Data); err != nil {
					return fmt.Errorf("frame %q: %w", cur.Raw, err)
				}
				if each(cur) {
					return nil
				}
			}
			cur = record{}
		case strings.HasPrefix(line, "id: "):
			cur.ID = line[4:]
		case strings.HasPrefix(line, "data: "):
			cur.Raw = line[6:]
		}
	}
	return scan.Err()
}

// input is a minimal run input.
func input(thread, run string, messages ...map[string]any) []byte {
	if messages == nil {
		messages = []map[string]any{}
	}
	b, err := json.Marshal(map[string]any{"threadId": thread, "runId": run, "protocolVersion": "1.0",
		"messages": messages})
	if err != nil {
		panic(err)
	}
	return b
}

func userMessage(id, text string) map[string]any {
	return map[string]any{"id": id, "role": "user", "content": text}
}

// post sends a run input and returns the response.
func post(ctx context.Context, url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/runs", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// getJSON reads one JSON answer.
func getJSON(t *testing.T, url string, v any) int {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// needs fails the test in CI, and skips it elsewhere, when a program it needs
// is not installed.
func needs(t *testing.T, program, how string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("HOLDFAST_REQUIRE_ALL") != "" {
		t.Fatalf("%s is not installed; %s", program, how)
	}
	t.Skipf("%s is not installed; %s", program, how)
}

func cancelRun(t *testing.T, url, thread, run string) {
	t.Helper()
	res, err := http.Post(url+"/threads/"+thread+"/runs/"+run+"/cancel", "application/json", nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusAccepted {
		t.Errorf("cancel: %d", res.StatusCode)
	}
}
