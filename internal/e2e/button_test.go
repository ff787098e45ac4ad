package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// The button of the page that kills the server: the program as a user starts it, without what
// the other tests set.

// startAsUser starts the program without the setting of the other tests. {port} in an argument
// is the port.
func startAsUser(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("the tests find processes in /proc")
	}
	addr := redistest.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	for i := range args {
		args[i] = strings.Replace(args[i], "{port}", port, 1)
	}
	program := []string{binary}
	if slices.Contains(env, nohup) {
		program = []string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, binary}
	}
	args = slices.Concat(program[1:], []string{"--addr", addr, "--store", "file:" + filepath.Join(t.TempDir(), "data"),
		"--demo-delay=10ms"}, args)
	cmd := exec.Command(program[0], args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HOLDFAST_") })
	cmd.Env = append(cmd.Env, env...)
	p := run(t, cmd)
	p.url = "http://" + addr
	p.ready().awaitLines("  listening  ", 1) // the banner, which has the operator's token
	return p
}

// nohup, in the environment of startAsUser, has the program ignore SIGHUP.
const nohup = "NOHUP=1"

// TestNohup: a server that outlives its terminal does so with the button too.
func TestNohup(t *testing.T) {
	t.Parallel()
	p := startAsUser(t, []string{nohup})
	p.signal(syscall.SIGHUP)
	if err := syscall.Kill(p.server(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code, body := p.button(); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, body)
	}
	p.awaitLines("listening ", 2)
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.out)
	}
}

// children returns the processes that the process has started and that have not ended.
func (p *process) children() []int {
	p.t.Helper()
	pid := p.cmd.Process.Pid
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(tasks) == 0 {
		p.t.Fatalf("process %d: %v", pid, err)
	}
	var list []int
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				p.t.Fatal(err)
			}
			list = append(list, child)
		}
	}
	return list
}

// server returns the process that serves, and fails if it is not the only child.
func (p *process) server() int {
	p.t.Helper()
	list := p.children()
	if len(list) != 1 {
		p.t.Fatalf("the program has started %v: %s", list, p.out)
	}
	return list[0]
}

// token is at the end of the address that the banner gives the operator; a server with keys has none.
var token = regexp.MustCompile(`/#token=([\w-]+)`)

// asOperator sends a request with the token that the first banner has shown, as a page does that
// was opened then.
func (p *process) asOperator(method, path string) *http.Response {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if shown := token.FindStringSubmatch(p.out.String()); shown != nil {
		req.Header.Set("Authorization", "Bearer "+shown[1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	return res
}

// button presses it, and returns the status and the body of the answer.
func (p *process) button() (int, string) {
	p.t.Helper()
	res := p.asOperator(http.MethodPost, "/demo/kill")
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// offered returns whether the page is told that there is a button.
func (p *process) offered() bool {
	p.t.Helper()
	var c struct{ Kill bool }
	res := p.asOperator(http.MethodGet, "/ui/config.json")
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&c); err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("/ui/config.json: %d, %v", res.StatusCode, err)
	}
	return c.Kill
}

// ends waits until the process, and every process that has its output too, has ended, and
// returns its exit code.
func (p *process) ends() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("it does not end: %s", p.out)
	}
	return p.cmd.ProcessState.ExitCode()
}

// TestKillButton: in the middle of an answer the serving process is killed by SIGKILL, twice.
// Another one goes on with the run each time, and the answer is whole in the end.
func TestKillButton(t *testing.T) {
	t.Parallel()
	p := startAsUser(t, nil)
	if !p.offered() {
		t.Fatal("the page is not told of the button")
	}
	res, err := post(t.Context(), p.url, input("t", "r1", userMessage("u1", "slow 30")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := readStream(res.Body, func(r record) bool { return r.kind() == "TEXT_MESSAGE_CONTENT" }); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		before := p.server()
		code, body := p.button()
		var killed struct{ Process string }
		if err := json.Unmarshal([]byte(body), &killed); err != nil || code != http.StatusAccepted ||
			killed.Process == "" {
			t.Fatalf("%d %s: %v", code, body, err)
		}
		p.awaitLines("had the server killed (signal: killed); it is started again", n)
		p.awaitLines("listening ", n+1)
		if after := p.server(); after == before {
			t.Fatalf("process %d still serves", before)
		}
		p.ready()
	}
	again, err := http.Get(p.url + "/threads/t/runs/r1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	var last record
	if err := readStream(again.Body, func(r record) bool { last = r; return false }); err != nil ||
		last.kind() != "RUN_FINISHED" {
		t.Fatalf("the run ends with %s: %v\n%s", last.Raw, err, p.out)
	}
	var list struct{ Messages []struct{ Content string } }
	getJSON(t, p.url+"/threads/t/messages", &list)
	if len(list.Messages) != 2 || len(strings.Fields(list.Messages[1].Content)) != 30 {
		t.Errorf("the answer is %+v", list.Messages)
	}
}

// TestEndsTogether: however one of the two processes ends, the other one does, and the way in
// which one is asked to end is the same as with one process.
func TestEndsTogether(t *testing.T) {
	t.Parallel()
	// The runner of the tests may ignore SIGHUP, as nohup does, and then the server would,
	// too. A signal that this process handles has its default in those that it starts.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(handled) })
	const inOrder = "holdfast: shutting down"
	for name, c := range map[string]struct {
		end     func(p *process, server int)
		code    int
		ordered bool
	}{
		"SIGTERM":               {func(p *process, _ int) { p.signal(syscall.SIGTERM) }, 0, true},
		"SIGTERM to the server": {func(p *process, server int) { _ = syscall.Kill(server, syscall.SIGTERM) }, 0, true},
		"SIGINT to both": {func(p *process, server int) {
			_ = syscall.Kill(server, syscall.SIGINT)
			_ = p.cmd.Process.Signal(syscall.SIGINT) // the parent may have ended after the server already
		}, 0, true},
		"kill -9": {func(p *process, _ int) { p.signal(syscall.SIGKILL) }, -1, false},
		"kill -9 of the server": {func(_ *process, server int) { _ = syscall.Kill(server, syscall.SIGKILL) }, 137,
			false},
		"SIGHUP, with no file":  {func(p *process, _ int) { p.signal(syscall.SIGHUP) }, 129, false},
		"SIGQUIT of the parent": {func(p *process, _ int) { p.signal(syscall.SIGQUIT) }, 2, false},
		"SIGTERM after a revival": {func(p *process, _ int) {
			p.button()
			p.awaitLines("listening ", 2)
			p.signal(syscall.SIGTERM)
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startAsUser(t, nil)
			server := p.server()
			c.end(p, server)
			// Both write to one pipe, of which this is the end.
			if code := p.ends(); code != c.code || strings.Contains(p.out.String(), inOrder) != c.ordered {
				t.Errorf("exit code %d: %s", code, p.out)
			}
			if res, err := http.Get(p.url + "/healthz"); err == nil {
				res.Body.Close()
				t.Error("somebody still serves")
			}
		})
	}
}

// TestSecondSignal: a server that does not end in time is ended by a second signal.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := startAsUser(t, nil)
	res, err := post(t.Context(), p.url, input("t", "r1", userMessage("u1", "wait 60")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := readStream(res.Body, func(r record) bool { return r.kind() == "TOOL_CALL_END" }); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	p.awaitLines("shutting down", 1)
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 1 {
		t.Errorf("exit code %d: %s", code, p.out)
	}
}

// TestNoButton: whatever is not only for trying out is one process, and has no such route.
func TestNoButton(t *testing.T) {
	t.Parallel()
	agents := filepath.Join(t.TempDir(), "agents.yaml")
	text := "agents:\n  - {name: a, model: demo}\n  - {name: b, model: openai/x}\n"
	if err := os.WriteFile(agents, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env, args []string
	}{
		"it is off":             {args: []string{"--demo-kill=false"}},
		"it is off by variable": {env: []string{"HOLDFAST_DEMO_KILL=false"}},
		"keys":                  {env: []string{"HOLDFAST_API_KEYS=" + entry}},
		"another model":         {env: []string{"OPENAI_API_KEY=sk-none"}, args: []string{"--model=openai/x"}},
		"a fallback":            {env: []string{"OPENAI_API_KEY=sk-none"}, args: []string{"--model=demo,openai/x"}},
		"an agent has another":  {env: []string{"OPENAI_API_KEY=sk-none"}, args: []string{"--config=" + agents}},
		"any address":           {args: []string{"--addr=0.0.0.0:{port}", "--allow-anonymous", "--hosts=*"}},
		"anonymous":             {args: []string{"--allow-anonymous"}},
		"behind a proxy":        {args: []string{"--behind-proxy"}},
		"nothing is kept":       {args: []string{"--store=memory:"}},
		"the variable is old":   {env: []string{"HOLDFAST_REVIVED_BY=1", "HOLDFAST_DEMO_KILL=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkNoButton(t, startAsUser(t, c.env, c.args...))
		})
	}
}

func checkNoButton(t *testing.T, p *process) {
	t.Helper()
	if p.offered() {
		t.Error("the page is told of a button")
	}
	if list := p.children(); len(list) != 0 {
		t.Errorf("the program has started %v", list)
	}
	if code, body := p.button(); code != http.StatusNotFound {
		t.Errorf("%d %s", code, body)
	}
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.out)
	}
}
