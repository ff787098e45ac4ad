package mcp_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
)

// Servers made with the official npm packages are the judges here: server-everything speaks
// 2025-11-25, and test/mcp/server.mjs speaks 2026-07-28.

// npm returns the path of a file of test/mcp, if its packages are installed.
func npm(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(testkit.NPM(t, "test/mcp"), name)
}

const everything = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

// daemon is a server over HTTP that is a process of its own.
type daemon struct {
	t    testing.TB
	args []string
	env  []string
	cmd  *exec.Cmd
}

// start starts the server and waits until it listens at addr.
func (d *daemon) start(addr string) {
	d.t.Helper()
	d.cmd = exec.Command("node", d.args...)
	d.cmd.Env = append(os.Environ(), d.env...)
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	wait.Until(d.t, "the server listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// kill kills the server.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// serveNPM starts a server over HTTP, and returns it with its address and its notes.
func serveNPM(t testing.TB, args ...string) (d *daemon, addr, notes string) {
	t.Helper()
	addr, notes = redistest.FreeAddr(t), t.TempDir()
	_, port, _ := net.SplitHostPort(addr)
	d = &daemon{t: t, args: args, env: []string{"PORT=" + port, "NOTES=" + notes}}
	d.start(addr)
	t.Cleanup(d.kill)
	return d, addr, notes
}

// notesIn returns the options' notes as noted reads them.
func notesIn(dir string) mcp.Options { return mcp.Options{Env: map[string]string{"NOTES": dir}} }

// transports returns the transports over which the official servers are tried: all of them
// costs CI more time than it finds mistakes, so that is left to "make mcp".
func transports() []string {
	if os.Getenv("MCP_TEST_ALL") != "" {
		return []string{"stdio", "http"}
	}
	return []string{"http"}
}

// TestEverything: the official server of the revision 2025-11-25. In the end it is killed: its
// streams can be taken up again, which must not keep a call for long when it is gone.
func TestEverything(t *testing.T) {
	t.Parallel()
	for _, transport := range transports() {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			o := mcp.Options{Command: []string{"node", npm(t, everything), "stdio"}}
			var d *daemon
			var addr string
			if transport == "http" {
				d, addr, _ = serveNPM(t, npm(t, everything), "streamableHttp")
				o = mcp.Options{URL: "http://" + addr + "/mcp"}
			}
			s := open(t, o)
			checkEverything(t, s)
			if d != nil {
				killEverything(t, s, d, addr)
			}
		})
	}
}

// checkEverything looks at what the tools of the server return.
func checkEverything(t *testing.T, s *mcp.Server) {
	t.Helper()
	if r, err := do(t, s, "srv_echo", `{"message":"hello"}`); r.Text != "Echo: hello" || err != nil {
		t.Errorf("echo: %+v, %v", r, err)
	}
	if r, err := do(t, s, "srv_get-sum", `{"a":1}`); !r.Failed || err != nil {
		t.Errorf("wrong arguments: %+v, %v", r, err)
	}
	r, err := do(t, s, "srv_get-tiny-image", `{}`)
	if len(r.Parts) != 3 || r.Parts[1].Type != holdfast.PartImage || r.Parts[1].Source.MIMEType != "image/png" ||
		err != nil {
		t.Errorf("an image: %.300v, %v", r, err)
	}
	if r, err = do(t, s, "srv_get-structured-content", `{"location":"New York"}`); !has(r.Text, `"temperature":`) ||
		err != nil {
		t.Errorf("structured content, which the text repeats: %+v, %v", r, err)
	}
	if r, err = do(t, s, "srv_get-resource-links", `{"count":2}`); len(r.Parts) != 3 ||
		!has(r.Parts[1].Text, "[a resource: ") || err != nil {
		t.Errorf("links: %+v, %v", r, err)
	}
	ctx, recorded := agenttest.Context(t)
	r, err = call(t, ctx, tool(t, s, "srv_trigger-long-running-operation"),
		holdfast.ToolCall{Arguments: json.RawMessage(`{"duration":0.2,"steps":2}`)})
	if !has(r.Text, "completed") || err != nil || len(recorded.Notices()) == 0 {
		t.Errorf("progress: %+v, %v, %v", r, err, recorded.Notices())
	}
}

// killEverything kills the server in the middle of a call, and starts it again.
func killEverything(t *testing.T, s *mcp.Server, d *daemon, addr string) {
	t.Helper()
	got := make(chan string)
	ctx, recorded := agenttest.Context(t)
	long := tool(t, s, "srv_trigger-long-running-operation")
	go func() {
		got <- fate(call(t, ctx, long, holdfast.ToolCall{Arguments: json.RawMessage(`{"duration":60,"steps":600}`)}))
	}()
	wait.Until(t, "it is at work", func() bool { return len(recorded.Notices()) > 0 })
	d.kill()
	if got := <-got; got != unknown { // long before the call's own time is up
		t.Errorf("the call is %s", got)
	}
	d.start(addr)
	wait.Until(t, "a call is served again", func() bool {
		return fate(do(t, s, "srv_echo", `{"message":"hello"}`)) == fine
	})
}

// modern returns the options for the official server of the revision 2026-07-28.
func modern(t testing.TB, transport string) (o mcp.Options, d *daemon, addr string) {
	t.Helper()
	if transport == "stdio" {
		return mcp.Options{
			Command: []string{"node", npm(t, "server.mjs")},
			Env:     map[string]string{"NOTES": t.TempDir()},
		}, nil, ""
	}
	d, addr, notes := serveNPM(t, npm(t, "server.mjs"), "http")
	t.Cleanup(func() {
		if e := noted(notesIn(notes), "errors"); len(e) > 0 {
			t.Errorf("the extension's schemas refuse: %s", strings.Join(e, " "))
		}
	})
	return mcp.Options{URL: "http://" + addr + "/mcp"}, d, notes
}

// TestModern: the official server of the revision 2026-07-28.
func TestModern(t *testing.T) {
	t.Parallel()
	for _, transport := range transports() {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			o, d, notes := modern(t, transport)
			var log logged
			o.Log = log.logger()
			s := open(t, o)
			if r, err := do(t, s, "srv_echo", `{"text":"hello"}`); r.Text != "hello" || err != nil {
				t.Errorf("echo: %+v, %v", r, err)
			}
			r, err := do(t, s, "srv_everything", `{}`)
			var kinds []string
			for _, p := range r.Parts {
				kinds = append(kinds, string(p.Type))
			}
			if got := strings.Join(kinds, " "); got != "text image audio text text document text" ||
				r.Parts[6].Text != `{"large":9007199254740991}` || err != nil {
				t.Errorf("all kinds of content: %s, %.300v, %v", got, r, err)
			}
			ctx, recorded := agenttest.Context(t)
			if r, err = call(t, ctx, tool(t, s, "srv_steps"), holdfast.ToolCall{}); r.Text != "done" ||
				len(recorded.Notices()) == 0 || err != nil {
				t.Errorf("progress: %+v, %v", r, err)
			}
			if r, err = do(t, s, "srv_meta", `{}`); !has(r.Text, `"io.github.holdfast-agents/key":"key1"`) ||
				err != nil {
				t.Errorf("the key: %+v, %v", r, err)
			}
			k := &talk{t: t, o: o, call: holdfast.ToolCall{ID: "c1", Key: "key1"}, tool: "srv_ask"}
			_, _ = k.next()
			k.question("Which size?", `"mode":"form"`)
			if r, err = k.answer(`{"size":3}`); r.Text != "state of ask: <1> 3" || err != nil {
				t.Errorf("a question: %+v, %v", r, err)
			}
			k = &talk{t: t, server: s, call: holdfast.ToolCall{ID: "c1", Key: "key1"}, tool: "srv_ask"}
			_, _ = k.next()
			if r, err = k.answer(``); r.Text != "state of ask: <1> decline" || err != nil {
				t.Errorf("a declined question: %+v, %v", r, err)
			}
			k = &talk{t: t, server: s, call: holdfast.ToolCall{ID: "c1", Key: "key1"}, tool: "srv_page"}
			_, _ = k.next()
			k.question("Please log in.", `"url":"https://example.com/login"`)
			if r, err = k.answer(`{}`); r.Text != "logged in" || err != nil {
				t.Errorf("a page: %+v, %v", r, err)
			}
			if d != nil {
				checkTasks(t, s, o, notes)
				if err := d.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
					t.Error(err)
				}
				wait.Until(t, "the list is read again", func() bool { return has(log.String(), "was read again") })
			}
		})
	}
}

// checkTasks looks at tasks as the official schemas of the extension know them.
func checkTasks(t *testing.T, s *mcp.Server, o mcp.Options, notes string) {
	t.Helper()
	if r, err := do(t, s, "srv_job", `{"ms":100}`); r.Text != "job done null" || err != nil {
		t.Errorf("a task: %+v, %v", r, err)
	}
	if r, err := do(t, s, "srv_job-fails", `{}`); !r.Failed || !has(r.Text, "no paper") || err != nil {
		t.Errorf("a task that fails: %+v, %v", r, err)
	}
	k := &talk{t: t, o: o, call: holdfast.ToolCall{ID: "c1"}, tool: "srv_job-asks"}
	_, _ = k.next()
	k.question("Which size?", `"mode":"form"`)
	if r, err := k.answer(`{"size":3}`); r.Text != `job-asks done {"action":"accept","content":{"size":3}}` ||
		err != nil {
		t.Errorf("a task that asks: %+v, %v", r, err)
	}
	if got := strings.Join(noted(notesIn(notes), "job"), " "); got != "begun begun begun answered" {
		t.Errorf("it was called: %s", got)
	}
}
