package mcp_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/mcp"
)

// The servers of these tests are made with the SDK. As a process, such a server is this
// test's own program, told by the environment to be one.

const serverEnv = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverEnv); kind != "" {
		serve(kind)
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // nearly all of the time they wait for processes
	goleak.VerifyTestMain(m)
}

// serve is a server on standard input and output.
func serve(kind string) {
	switch kind {
	case "silent": // it ignores what it does not know, as old servers do
		silent()
		return
	case "hostile":
		hostile()
		return
	case "deaf": // it never reads
		select {}
	case "banner":
		fmt.Println("Welcome to the banner server, version 1.0")
	case "child": // it has a child that outlives it unless it is ended
		c := exec.Command("sleep", "3600")
		if err := c.Start(); err != nil {
			panic(err)
		}
		note("child", fmt.Sprint(c.Process.Pid))
	case "client": // not a server, but a program that uses one, and is killed
		client()
		return
	case "dead":
		fmt.Fprintln(os.Stderr, "the secret is", os.Getenv("SECRET"))
		os.Exit(3)
	}
	note("started", fmt.Sprint(os.Getpid()))
	if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// note writes a file that the test reads.
func note(name, text string) {
	if dir := os.Getenv("NOTES"); dir != "" {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, text)
		f.Close()
	}
}

// silent is a server of the revision 2025-06-18 that answers initialize, ping and tools/list.
func silent() {
	in := json.NewDecoder(os.Stdin)
	for {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if in.Decode(&m) != nil {
			return
		}
		answer := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},` +
				`"serverInfo":{"name":"old","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"old","inputSchema":{"type":"object"}}]}`,
			"tools/call": `{"content":[{"type":"text","text":"as ever"}]}`,
		}[m.Method]
		if answer != "" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, answer)
		}
	}
}

// text returns a result of one text.
func text(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// waits counts the calls of the tool wait in this process.
var waits atomic.Int32

type handler = func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error)

// newServer returns a server with the tools of the tests.
func newServer(more ...func(*sdk.Server)) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name string, hints *sdk.ToolAnnotations, f handler) {
		s.AddTool(
			&sdk.Tool{
				Name:        name,
				Description: "does " + name,
				InputSchema: json.RawMessage(`{"type":"object"}`),
				Annotations: hints,
			},
			f,
		)
	}
	add("echo", &sdk.ToolAnnotations{ReadOnlyHint: true},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("%s", r.Params.Arguments), nil
		})
	add("meta", nil, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		data, err := json.Marshal(r.Params.Meta)
		return text("%s", data), err
	})
	add("set", &sdk.ToolAnnotations{IdempotentHint: true},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("set"), nil
		})
	add("die", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		note("called", "die")
		os.Exit(1)
		return nil, nil
	})
	add("wait", nil, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		note("called", "wait")
		waits.Add(1)
		defer waits.Add(-1)
		<-ctx.Done()
		note("called", "cancelled")
		return text("cancelled"), nil
	})
	add("freeze", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		note("called", "freeze")
		return nil, syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	})
	add("wrong", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text("this cannot be done")
		r.IsError = true
		return r, nil
	})
	add("steps", nil, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "step",
			})
			if err != nil {
				return nil, err
			}
		}
		return text("done"), nil
	})
	for _, f := range more {
		f(s)
	}
	return s
}

// open starts to use a server, and waits until it is connected to.
func open(t testing.TB, o mcp.Options) *mcp.Server {
	t.Helper()
	s := opened(t, o)
	if err := s.Ready(t.Context()); err != nil {
		t.Fatalf("the server cannot be used: %v", err)
	}
	return s
}

// opened starts to use a server.
func opened(t testing.TB, o mcp.Options) *mcp.Server {
	t.Helper()
	if o.Name == "" {
		o.Name = "srv"
	}
	if o.URL != "" && o.Allow == nil {
		o.Allow = []string{"127.0.0.1"}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s, err := mcp.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// process returns the options for a server of this program.
func process(t testing.TB, kind string) mcp.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Options{Command: []string{self}, Env: map[string]string{
		serverEnv: kind,
		"NOTES":   t.TempDir(),
		"GORACE":  "atexit_sleep_ms=0", // else such a process takes a second to end
	}}
}

// web is an HTTP server in front of an SDK server; what stands before can be changed.
type web struct {
	*httptest.Server
	mu     sync.Mutex
	before func(w http.ResponseWriter, r *http.Request, body string) bool
}

// serveWeb serves over HTTP; stateless is the newer revision.
func serveWeb(t testing.TB, s *sdk.Server, stateless bool) *web {
	t.Helper()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true})
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		before := w.before
		w.mu.Unlock()
		if before != nil {
			body := bodyOf(r)
			if before(rw, r, body) {
				return
			}
		}
		h.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
		for session := range s.Sessions() {
			session.Close()
		}
	})
	return w
}

// intercept puts f before the server; it returns true if it has answered.
func (w *web) intercept(f func(w http.ResponseWriter, r *http.Request, body string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = f
}

// tool returns the server's tool of this name.
func tool(t testing.TB, s *mcp.Server, name string) holdfast.Tool {
	t.Helper()
	for _, tool := range s.Tools() {
		if tool.Spec().Name == name {
			return tool
		}
	}
	t.Fatalf("there is no tool %s among %v", name, names(s))
	return nil
}

func names(s *mcp.Server) (names []string) {
	for _, tool := range s.Tools() {
		names = append(names, tool.Spec().Name)
	}
	return names
}

// call calls a tool as the engine does.
func call(t testing.TB, ctx context.Context, tool holdfast.Tool, c holdfast.ToolCall) (holdfast.ToolResult, error) {
	t.Helper()
	c.Name = tool.Spec().Name
	if c.ID == "" {
		c.ID = "c1"
	}
	return tool.Call(holdfast.ContextWithCall(ctx, c, nil), c)
}

// do calls a tool of a server once, in a run of its own.
func do(t testing.TB, s *mcp.Server, name, arguments string) (holdfast.ToolResult, error) {
	t.Helper()
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx, _ := agenttest.Context(t, agenttest.At(holdfast.Iteration{Traceparent: traceparent}))
	return call(t, ctx, tool(t, s, name), holdfast.ToolCall{Key: "key1", Arguments: json.RawMessage(arguments)})
}

// noted returns the lines that a server of this program has noted.
func noted(o mcp.Options, name string) []string {
	data, err := os.ReadFile(filepath.Join(o.Env["NOTES"], name))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

// logged is a log that a test reads.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements [io.Writer].
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was logged so far.
func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// logger returns the log to write to.
func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
