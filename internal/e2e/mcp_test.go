package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redistest"
)

// remoteServer is an MCP server made with the official npm package. Its tools note what they
// do in files, which is what is counted here.
type remoteServer struct {
	*testing.T
	notes, addr string
	cmd         *exec.Cmd // over HTTP
}

// newRemoteServer prepares a server over standard input and output, which the workers start,
// or starts one over HTTP.
func newRemoteServer(t *testing.T, transport string) *remoteServer {
	t.Helper()
	needs(t, "node", "scripts/install-test-deps.sh installs it")
	if _, err := os.Stat(filepath.Join("..", "..", "test", "mcp", "node_modules")); err != nil {
		if os.Getenv("HOLDFAST_REQUIRE_ALL") != "" {
			t.Fatal("the official MCP servers are not installed; scripts/install-test-deps.sh installs them")
		}
		t.Skip("the official MCP servers are not installed; scripts/install-test-deps.sh installs them")
	}
	s := &remoteServer{T: t, notes: t.TempDir()}
	if transport == "http" {
		s.addr = redistest.FreeAddr(t)
		s.start()
		t.Cleanup(s.kill)
	}
	return s
}

func (s *remoteServer) script() string {
	path, err := filepath.Abs(filepath.Join("..", "..", "test", "mcp", "server.mjs"))
	if err != nil {
		s.Fatal(err)
	}
	return path
}

// start starts the server over HTTP.
func (s *remoteServer) start() {
	s.Helper()
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		s.Fatal(err)
	}
	s.cmd = exec.Command("node", s.script(), "http")
	s.cmd.Env = append(os.Environ(), "NOTES="+s.notes, "PORT="+port)
	n := len(s.noted("started"))
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.await("started", n+1)
}

// kill kills the server, whoever has started it. Over standard input and output the worker
// starts another one.
func (s *remoteServer) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		return
	}
	started := s.noted("started")
	for _, pid := range started {
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	s.await("started", len(started)+1)
}

// options returns the server as a worker is told of it.
func (s *remoteServer) options() string {
	o := map[string]any{"name": "npm", "command": []string{"node", s.script()}, "env": map[string]string{"NOTES": s.notes}}
	if s.addr != "" {
		o = map[string]any{"name": "npm", "url": "http://" + s.addr + "/mcp", "allow": []string{"127.0.0.1"}}
	}
	return mustText(s.T, o)
}

// noted returns the notes of a name.
func (s *remoteServer) noted(name string) []string {
	b, err := os.ReadFile(filepath.Join(s.notes, name))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// count returns how often a note says so.
func (s *remoteServer) count(name, what string) (n int) {
	for _, line := range s.noted(name) {
		if line == what {
			n++
		}
	}
	return n
}

// await waits for the n-th note of a name.
func (s *remoteServer) await(name string, n int) {
	s.Helper()
	for begun := time.Now(); len(s.noted(name)) < n; time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > patience {
			s.Fatalf("%s has not noted %s %d times", s.addr, name, n)
		}
	}
}

// remoteCase is a tool, what it is called with, how often its work is begun in all when its
// caller or its server is killed in the middle, and what the model reads then.
type remoteCase struct {
	tool, arguments string
	begun           map[string]int // by who is killed
	read            map[string]string
}

// The cases, which docs/mcp.md has as a table. The question comes first, since it takes time
// until it is asked, and the others are to be cut off in the middle.
var remoteCases = []remoteCase{
	{"ask", `{}`, map[string]int{"us": 1, "server": 1}, map[string]string{"us": "state of ask: <1> 3", "server": "state of ask: <1> 3"}},
	{"look", `{"ms":2500}`, map[string]int{"us": 2, "server": 1}, map[string]string{"us": "look done", "server": "has not said what came of it"}},
	{"put", `{"ms":2500}`, map[string]int{"us": 2, "server": 1}, map[string]string{"us": "put done", "server": "has not said what came of it"}},
	{"pay", `{"ms":2500}`, map[string]int{"us": 1, "server": 1}, map[string]string{"us": "the server died while this call was running", "server": "no answer came back"}},
	{"job", `{"ms":2500}`, map[string]int{"us": 1, "server": 1}, map[string]string{"us": "job done", "server": "job done"}},
}

// began is what a tool notes when its work begins.
func (c *remoteCase) began() string {
	if c.tool == "ask" {
		return "asked"
	}
	return "begun"
}

// TestRemoteKilled kills the process that calls the tools of an MCP server, or that server,
// in the middle of a call of each effect, of a task and of a question.
func TestRemoteKilled(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(transport, func(t *testing.T) {
				t.Parallel()
				s := newRemoteServer(t, transport)
				c := newCrew(t, newStore(t), "--mcp="+s.options()).begin()
				for _, who := range []string{"us", "server"} {
					s.round(c, who)
				}
				if e := s.noted("errors"); len(e) > 0 {
					t.Errorf("the extension's schemas refuse: %v", e)
				}
			})
		}
	})
}

// round makes a call for each case, kills, and looks at what has become of each.
func (s *remoteServer) round(c *crew, who string) {
	s.Helper()
	before, polled := map[string]int{}, len(s.noted("polled"))
	var talks []*talk
	var asked record // the question, when it was asked
	for _, r := range remoteCases {
		if r.tool == "job" && s.cmd == nil {
			continue // the server has tasks over HTTP only
		}
		before[r.tool] = s.count(r.tool, r.began())
		k := c.talk("remote", who+"-"+r.tool)
		if r.tool == "ask" {
			asked = k.says("npm_ask {}")
			k.wantEnd(asked, "interrupt")
		} else {
			k.starts("npm_" + r.tool + " " + r.arguments)
		}
		talks = append(talks, k)
	}
	for _, k := range talks {
		name := strings.TrimPrefix(k.thread, who+"-")
		for begun := time.Now(); s.count(name, caseOf(name).began()) == before[name]; time.Sleep(2 * time.Millisecond) {
			if time.Since(begun) > patience {
				s.Fatalf("%s was not begun", name)
			}
		}
	}
	if s.cmd != nil {
		s.await("polled", polled+1) // until the task's handle is committed, a death is doubt
	}
	if who == "us" {
		c.kill(c.p.name)
	} else if s.kill(); s.cmd != nil {
		s.start()
	}
	for _, k := range talks {
		r := caseOf(strings.TrimPrefix(k.thread, who+"-"))
		if r.tool == "ask" {
			k.answers = map[string]string{"input_required": `{"size":3}`}
			k.wantEnd(k.answersAll(asked), "success")
		}
		if got := k.lastWords(); !strings.Contains(got, r.read[who]) {
			s.Errorf("%s killed, %s: the model read %q, want %q", who, r.tool, got, r.read[who])
		}
		if got := s.count(r.tool, r.began()) - before[r.tool]; got != r.begun[who] {
			s.Errorf("%s killed, %s: its work was begun %d times, want %d", who, r.tool, got, r.begun[who])
		}
	}
}

func caseOf(tool string) *remoteCase {
	for i := range remoteCases {
		if remoteCases[i].tool == tool {
			return &remoteCases[i]
		}
	}
	panic("there is no case " + tool)
}

// starts posts a text and does not wait for what comes of it.
func (k *talk) starts(text string) {
	k.Helper()
	k.runs++
	res, err := postTo(k.Context(), k.p.url, k.agent, input(k.thread, fmt.Sprintf("r%d", k.runs), userMessage("u1", text)))
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { res.Body.Close() })
}

// lastWords waits for what the model says of the call's result.
func (k *talk) lastWords() string {
	k.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		var list struct {
			Messages []struct {
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		getJSON(k.T, k.p.url+"/threads/"+k.thread+"/messages", &list)
		if n := len(list.Messages); n > 0 {
			if last := string(list.Messages[n-1].Content); strings.Contains(last, "I read: ") {
				return last
			}
		}
	}
	k.Fatalf("%s: the model says nothing of its call\nworker: %s", k.thread, k.p.out)
	return ""
}
