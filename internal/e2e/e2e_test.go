// Package e2e tests the built program from outside: over HTTP, with the
// official client, and with kill -9 in the middle.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// binary is the program under test and workerBinary one with agents of the tests,
// built once for all of them.
var binary, workerBinary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "holdfast-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary, workerBinary = filepath.Join(dir, "holdfast"), filepath.Join(dir, "worker")
		for _, program := range [][]string{{binary, "../../cmd/server"}, {workerBinary, "./worker"}} {
			build := exec.Command("go", "build", "-o", program[0], program[1])
			build.Stderr = os.Stderr
			if err := build.Run(); err != nil {
				fmt.Fprintf(os.Stderr, "build %s: %v\n", program[1], err)
				return 1
			}
		}
		return m.Run()
	}())
}

// process is a running server.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	out  *lockedBuffer
	done chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
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
	deadline := time.Now().Add(20 * time.Second)
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
	p := &process{t: t, url: "http://" + addr, out: &lockedBuffer{}, done: make(chan struct{})}
	p.cmd = exec.Command(program, append([]string{"--addr", addr, "--store", store}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		// A killed process has no exit code worth a look.
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
	b, err := json.Marshal(map[string]any{"threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": messages})
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
