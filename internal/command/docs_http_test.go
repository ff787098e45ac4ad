package command

// docs/http.md promises that its commands can be pasted into one shell, from top to
// bottom, while the server runs with the demo model. This test does that: every sh block
// goes to one bash, and the server's own log says which routes it reached.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestHTTPPage pastes docs/http.md twice, because what it makes it also deletes.
func TestHTTPPage(t *testing.T) {
	needsShell(t)
	steps := httpPage(t)
	folder := t.TempDir()
	base, requests := startDemo(t, folder)
	sh := startShell(t, folder)
	for range 2 {
		for _, s := range steps {
			out := sh.run(t, strings.ReplaceAll(s.commands, "localhost:8080", base))
			s.checkRequests(t, requests)
			if s.response != "" {
				s.checkResponse(t, out)
			}
			if t.Failed() {
				t.Fatalf("%s:\n%s\n%s", s.section, s.commands, out)
			}
		}
	}
}

// TestToolsPage pastes the commands of docs/tools.md: they wait for a call, finish it, and
// send the same result again.
func TestToolsPage(t *testing.T) {
	needsShell(t)
	page, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	base, requests := startDemo(t, folder)
	sh := startShell(t, folder)
	blocks := 0
	for _, m := range pagePart.FindAllStringSubmatch(string(page), -1) {
		if m[2] != "sh" {
			continue
		}
		blocks++
		out := sh.run(t, strings.ReplaceAll(m[3], "localhost:8080", base))
		step{section: "tools", commands: m[3]}.checkRequests(t, requests)
		var last struct {
			Messages []struct{ Role string }
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 4 || !strings.Contains(lines[0], `"outsideCalls":[{`) || lines[1] != lines[2] ||
			json.Unmarshal([]byte(lines[3]), &last) != nil || len(last.Messages) < 2 {
			t.Errorf("the commands print\n%s", out)
		}
	}
	if blocks != 1 {
		t.Errorf("the page has %d blocks of commands", blocks)
	}
}

// needsShell skips a test where what it runs is missing.
func needsShell(t *testing.T) {
	t.Helper()
	for _, program := range []string{"bash", "curl", "sed"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("HOLDFAST_REQUIRE_ALL") == "1" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

// step is a sh block of the page, with the JSON that the page shows after it.
type step struct {
	section, commands, response string
}

var pagePart = regexp.MustCompile("(?ms)^#+ (.+?)$|^```(sh|json)\n(.*?)^```$")

func httpPage(t *testing.T) []step {
	t.Helper()
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	section := ""
	for _, m := range pagePart.FindAllStringSubmatch(string(page), -1) {
		switch {
		case m[1] != "":
			section = strings.Trim(m[1], "`")
		case m[2] == "sh":
			steps = append(steps, step{section: section, commands: m[3]})
		case len(steps) == 0 || steps[len(steps)-1].section != section || steps[len(steps)-1].response != "":
			t.Fatalf("%s: this JSON follows no command:\n%s", section, m[3])
		default:
			steps[len(steps)-1].response = m[3]
		}
	}
	return steps
}

// request is what the log says about one request.
type request struct {
	route  string
	status int
}

// checkRequests waits for the log of the block's requests. Those of a route's section
// reach that route last; only the sections about errors, about a URL that is made up, and about the
// death of a process that nobody would start again are refused.
func (s step) checkRequests(t *testing.T, requests <-chan request) {
	t.Helper()
	var last request
	for range strings.Count(s.commands, "curl ") {
		select {
		case last = <-requests:
		case <-time.After(time.Minute):
			t.Fatalf("%s: fewer requests than the block has commands", s.section)
		}
		if refused := last.status >= 400; refused != slices.Contains([]string{"Errors", "POST /calls",
			"GET /threads/{thread}/apps/{message}", "POST /threads/{thread}/apps/{message}/call",
			"POST /demo/kill"}, s.section) {
			t.Errorf("%s: %s is %d", s.section, last.route, last.status)
		}
	}
	if strings.Contains(s.section, " /") && last.route != s.section {
		t.Errorf("%s: the command calls %s", s.section, last.route)
	}
}

// checkResponse compares what the page shows with what the server sent.
func (s step) checkResponse(t *testing.T, out string) {
	t.Helper()
	var want, got any
	if err := json.Unmarshal([]byte(s.response), &want); err != nil {
		t.Fatalf("%s: the page's JSON: %v", s.section, err)
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%s: the response: %v", s.section, err)
	}
	if !alike(want, got) {
		t.Errorf("%s: the page shows\n%s", s.section, s.response)
	}
}

// generated matches the ids, ETags and times that differ from run to run.
var generated = regexp.MustCompile(`(msg|c|int)_[0-9a-z]{16,}|\d{4}-\d\d-\d\dT[\d:.]+Z`)

// alike compares JSON values. A text on the page may end early with "…", and generated
// parts of it may differ.
func alike(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for name, v := range w {
			if other, there := g[name]; !there || !alike(v, other) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for i := range w {
			if !alike(w[i], g[i]) {
				return false
			}
		}
		return true
	case string:
		g, ok := got.(string)
		start, shortened := strings.CutSuffix(generated.ReplaceAllString(w, "*"), "…")
		g = generated.ReplaceAllString(g, "*")
		return ok && (g == start || shortened && strings.HasPrefix(g, start))
	}
	return want == got
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		want, got string
		alike     bool
	}{
		{`{"a": "You said…"}`, `{"a": "You said: x"}`, true},
		{`{"a": "You said"}`, `{"a": "You said: x"}`, false},
		{`{"id": "msg_1k805l4hb3bjitjeivg"}`, `{"id": "msg_2k805l4hb3bjitjeivz"}`, true},
		{`{"id": "msg_1k805l4hb3bjitjeivg"}`, `{"id": "r1"}`, false},
		{`[1, 2]`, `[1, 3]`, false},
		{`[{}]`, `[{"more": 1}]`, false},
		{`{"a": null}`, `{"b": null}`, false},
	} {
		var want, got any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.got), &got); err != nil {
			t.Fatal(err)
		}
		if alike(want, got) != c.alike {
			t.Errorf("%s and %s: want %v", c.want, c.got, c.alike)
		}
	}
}

var (
	listening = regexp.MustCompile(`listening\s+http://(\S+)`)
	requested = regexp.MustCompile(`msg=request method=(\S+) route=(\S+) status=(\d+)`)
)

// startDemo runs the program as `make run` does, but on a free port and with its data in
// another folder. It returns its address, and its requests as they end.
func startDemo(t *testing.T, folder string) (string, <-chan request) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	outRead, out := io.Pipe()
	logRead, logTo := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{
			"--addr=localhost:0", "--store=file:" + filepath.Join(folder, "data"), "--demo-delay=1ms",
			"--log-level=debug",
		}, env(nil), out, logTo)
		out.Close()
		logTo.Close()
	}()
	requests := make(chan request, 100)
	read := make(chan bool)
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(logRead); lines.Scan(); {
			if m := requested.FindStringSubmatch(lines.Text()); m != nil {
				status, _ := strconv.Atoi(m[3]) // the pattern lets only digits pass
				requests <- request{m[1] + " " + m[2], status}
			}
		}
	}()
	addr := make(chan string, 1)
	said := make(chan bool)
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(outRead); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				addr <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != exitOK {
			t.Errorf("the server ended with %d", code)
		}
		<-read
		<-said
	})
	select {
	case a := <-addr:
		return a, requests
	case <-said:
		t.Fatal("the server does not start")
		return "", nil
	}
}

// shell is a bash that gets one block after another, as if they were pasted.
type shell struct {
	in     io.Writer
	out    *bufio.Reader
	errors bytes.Buffer
}

// blockEnd is what the shell prints after a block.
const blockEnd = "=== end of the block"

func startShell(t *testing.T, folder string) *shell {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail")
	cmd.Dir = folder
	s := &shell{}
	cmd.Stderr = &s.errors
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.in, s.out = in, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // a command that failed has failed the test
	})
	return s
}

// run returns what the block prints.
func (s *shell) run(t *testing.T, block string) string {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s\\n'\n", block, blockEnd); err != nil {
		t.Fatalf("%s: %v\n%s", block, err, s.errors.String())
	}
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if strings.TrimSuffix(line, "\n") == blockEnd {
			return out.String()
		}
		out.WriteString(line)
		if err != nil {
			t.Fatalf("the shell ended: %v\n%s\n%s", err, block, out.String())
		}
	}
}
