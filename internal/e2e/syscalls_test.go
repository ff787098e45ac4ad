package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// The calls to the system, and the wakes, that a word and an iteration cost the server. A word comes
// only when the client has seen the one before, so no two share a call. On one processor the reads
// and writes are the same on every machine, within a tenth. How often a thread waits is not: a busy
// machine has more to do each time, so the limits are those of an idle one.

// oneByOne is a provider whose answers come word by word, each when the client has seen the one
// before; first come so many rounds of two tool calls.
type oneByOne struct {
	rounds int
	words  int
	next   chan struct{} // one for each word that may come
}

// ServeHTTP answers a request for an answer, and a call of the tool.
func (o *oneByOne) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/tool") {
		_, _ = io.WriteString(w, "in stock") // a server that went away fails the test elsewhere
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	event := func(delta string) {
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":`+delta+"}]}\n\n")
		_ = http.NewResponseController(w).Flush()
	}
	finish := func(reason string) {
		_, _ = fmt.Fprintf(w, `data: {"choices":[{"delta":{},"finish_reason":%q}]}`+"\n\ndata: [DONE]\n\n", reason)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if done := bytes.Count(body, []byte(`"tool"`)) / 2; done < o.rounds {
		_, _ = io.WriteString(w, toolCall(0, "look", `{}`)+toolCall(1, "look", `{}`))
		finish("tool_calls")
		return
	}
	for range o.words {
		select {
		case <-o.next:
			event(`{"content":"word "}`)
		case <-r.Context().Done():
			return
		}
	}
	finish("stop")
}

// calls returns how many reads and writes the process has made, and how often one of its threads
// has waited.
func (p *process) calls() (syscalls, wakes int) {
	p.t.Helper()
	dir := fmt.Sprintf("/proc/%d", p.cmd.Process.Pid)
	files, err := filepath.Glob(dir + "/task/*/status")
	if err != nil {
		p.t.Fatal(err)
	}
	sum := func(file string, names ...string) (n int) {
		text, _ := os.ReadFile(file) // a thread may have ended
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			if v, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && slices.Contains(names, name) {
				n += v
			}
		}
		return n
	}
	for _, file := range files {
		wakes += sum(file, "voluntary_ctxt_switches")
	}
	return sum(dir+"/io", "syscr", "syscw"), wakes
}

// costOf makes a run of the provider's, and returns what it has cost the server.
func (o *oneByOne) costOf(t *testing.T, p *process, thread string) (syscalls, wakes int) {
	t.Helper()
	syscallsBefore, wakesBefore := p.calls()
	res, err := post(t.Context(), p.url, input(thread, "r", userMessage("u", "go")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	o.next <- struct{}{}
	seen, last := 0, ""
	if err := readStream(res.Body, func(r record) bool {
		last = r.kind()
		if last == "TEXT_MESSAGE_CONTENT" {
			if seen++; seen < o.words {
				o.next <- struct{}{}
			}
		}
		return false
	}); err != nil || last != "RUN_FINISHED" || seen != o.words {
		t.Fatalf("%d words were seen, the last event was %s, %v", seen, last, err)
	}
	syscallsAfter, wakesAfter := p.calls()
	return syscallsAfter - syscallsBefore, wakesAfter - wakesBefore
}

// TestSystemCalls: how many reads, writes and wakes a word that is shown by itself costs, and an
// iteration with two calls of an HTTP tool.
func TestSystemCalls(t *testing.T) {
	if _, err := os.Stat("/proc/self/io"); err != nil {
		t.Skip("the calls of a process are counted in /proc, which only Linux has")
	}
	for name, c := range map[string]struct {
		store                                      func(*testing.T) string
		word, wordWakes, iteration, iterationWakes float64 // at most
	}{
		"file":  {newFile, 5.5, 12, 21.5, 45},
		"redis": {newRedis, 6.5, 12, 24, 45},
	} {
		t.Run(name, func(t *testing.T) {
			o := &oneByOne{next: make(chan struct{}, 1)}
			provider := httptest.NewServer(o)
			t.Cleanup(provider.Close)
			agents := filepath.Join(t.TempDir(), "agents.yaml")
			if err := os.WriteFile(agents, []byte(`
agents:
  - {name: a, model: openai/words, tools: [look], limits: {maxIterations: 200}}
tools:
  - name: look
    description: Looks.
    effect: idempotent
    http: {url: "`+provider.URL+`/tool", allow: [127.0.0.1]}
`), 0o600); err != nil {
				t.Fatal(err)
			}
			addr := redistest.FreeAddr(t)
			cmd := exec.Command(binary, "--addr", addr, "--store", c.store(t), "--config", agents, "--lease=1m")
			cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+provider.URL, "GOMAXPROCS=1")
			p := run(t, cmd)
			p.url = "http://" + addr
			p.ready()
			limit := func(what string, few, many func(), n int, syscalls, wakes float64) {
				// A busy machine hands over what comes together in several parts, but hardly each time.
				for try := range 6 {
					name := fmt.Sprint(what, try)
					few()
					o.costOf(t, p, name+"warm")
					calls1, wakes1 := o.costOf(t, p, name+"few")
					many()
					calls2, wakes2 := o.costOf(t, p, name+"many")
					calls, woken := float64(calls2-calls1)/float64(n), float64(wakes2-wakes1)/float64(n)
					t.Logf("%s: %.1f reads and writes, %.1f wakes", what, calls, woken)
					if calls <= syscalls && woken <= wakes {
						return
					}
				}
				t.Errorf("%s takes more than %.1f reads and writes or %.1f wakes", what, syscalls, wakes)
			}
			limit("a word", func() { o.words = 20 }, func() { o.words = 220 }, 200, c.word, c.wordWakes)
			limit("an iteration", func() { o.words, o.rounds = 1, 2 }, func() { o.rounds = 52 }, 50, c.iteration,
				c.iterationWakes)
		})
	}
}
