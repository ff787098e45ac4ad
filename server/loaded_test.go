package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
	"github.com/holdfast-agents/holdfast/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// childEnv makes this test's own program an MCP server.
const childEnv = "SERVER_TEST_CHILD"

func TestMain(m *testing.M) {
	if token := os.Getenv(childEnv); token != "" {
		child(token)
		return
	}
	goleak.VerifyTestMain(m)
}

// child is an MCP server on standard input and output. It notes that it was started.
func child(token string) {
	s := sdk.NewServer(&sdk.Implementation{Name: "child", Version: "1"}, nil)
	add := func(name, answer string, hints *sdk.ToolAnnotations) {
		s.AddTool(
			&sdk.Tool{
				Name:        name,
				Description: "says " + name,
				InputSchema: json.RawMessage(`{"type":"object"}`),
				Annotations: hints,
			},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer}}}, nil
			},
		)
	}
	add("say", "the child has "+token, &sdk.ToolAnnotations{ReadOnlyHint: true})
	add("do", "done", nil)
	add("other", "never", nil)
	f, err := os.OpenFile("started", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, os.Getpid())
	f.Close()
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// withServers is a file with this program as an MCP server, and one that cannot be started.
const withServers = `
agents:
  - name: a
    model: demo
    tools: [lookup, "child_*", broken_say]
  - name: b
    model: demo
    tools: [child_do, child_nosuch]
  - name: c
    model: demo
    tools: [lookup]
mcpServers:
  child:
    command: ${SELF}
    env: {SERVER_TEST_CHILD: "${TOKEN}"}
    dir: .
    exceptTools: [other]
    effects: {do: idempotent}
  broken: {command: nosuch-program}
`

// childStarts reports how often the child of a file was started.
func childStarts(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "started"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// childParts returns parts with an environment for the file.
func childParts(t *testing.T, token string) (server.Parts, *process.Log) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := &process.Log{}
	return server.Parts{
		Getenv: func(name string) string { return map[string]string{"SELF": self, "TOKEN": token}[name] },
		Log:    slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, log
}

// ready waits for the servers of a file, and returns why some are not connected.
func ready(t *testing.T, l *server.Loaded) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit)
	defer cancel()
	return fmt.Sprint(l.Ready(ctx))
}

// listed returns the names of the tools of an agent's toolsets.
func listed(a holdfast.Agent) string {
	var names []string
	for _, set := range a.Toolsets {
		for _, tool := range set.Tools() {
			names = append(names, tool.Spec().Name+" "+string(tool.Spec().Effect))
		}
	}
	return strings.Join(names, ", ")
}

// TestLoadMCP: an MCP server of a file is started, agents have the tools of it that they
// list, a run calls one, and another server that does not start disturbs nothing.
func TestLoadMCP(t *testing.T) {
	t.Parallel()
	path := written(t, withServers)
	parts, log := childParts(t, "the-token-of-the-child")
	l, err := server.Load(path, parts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if why := ready(t, l); !strings.Contains(why, "the MCP server broken: ") || strings.Contains(why, "child") {
		t.Errorf("ready says %s", why)
	}
	for i, want := range []string{"child_do idempotent, child_say pure", "child_do idempotent", ""} {
		if got := listed(l.Agents[i]); got != want {
			t.Errorf("the agent %s has %q, want %q", l.Agents[i].Name, got, want)
		}
	}
	if got := log.String(); !strings.Contains(got, "agent=b mcp=child tool=child_nosuch") ||
		strings.Contains(got, "the-token-of-the-child") {
		t.Errorf("the log is %s", got)
	}
	c := config(t)
	c.Agents = l.Agents
	if got := post(t, started(t, c), "t", "use child_say {}"); !strings.Contains(got,
		"the child has the-token-of-the-child") {
		t.Errorf("the answer is %s", got)
	}
	if n := childStarts(t, path); n != 1 {
		t.Errorf("the server was started %d times", n)
	}
}

// TestToolsetsAreLists: as long as nothing changes, the list of a toolset is the same, and
// asking for it costs nothing.
func TestToolsetsAreLists(t *testing.T) {
	parts, _ := childParts(t, "x")
	l, err := server.Load(written(t, withServers), parts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	ready(t, l)
	set := l.Agents[0].Toolsets[0]
	first := set.Tools()
	if len(first) != 2 {
		t.Fatalf("there are %d tools", len(first))
	}
	late, ok := set.(interface {
		AwaitTool(ctx context.Context, name string) error
	})
	if !ok || late.AwaitTool(t.Context(), "other_tool") != nil ||
		late.AwaitTool(t.Context(), first[0].Spec().Name) != nil {
		t.Error("the engine cannot wait for its tools after a restart")
	}
	if n := testing.AllocsPerRun(100, func() {
		if again := set.Tools(); len(again) != 2 || &again[0] != &first[0] {
			t.Error("the list is another one")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAgain: a file that is loaded again takes over the servers that are reached as before,
// and starts those that have changed. A server ends with the last who uses it.
func TestAgain(t *testing.T) {
	t.Parallel()
	path := written(t, withServers)
	parts, _ := childParts(t, "x")
	first, err := server.Load(path, parts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Close)
	ready(t, first)
	second, err := first.Again(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Close)
	if second.Servers[0] != first.Servers[0] {
		t.Error("the server was not taken over")
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(withServers, "exceptTools: [other]",
		"exceptTools: [other, do]")), 0o600); err != nil {
		t.Fatal(err)
	}
	third, err := second.Again(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(third.Close)
	if third.Servers[0] == first.Servers[0] || third.Servers[1] != first.Servers[1] {
		t.Error("of the servers, exactly the one that has changed must be another")
	}
	ready(t, third)
	if n := childStarts(t, path); n != 2 {
		t.Errorf("the server was started %d times", n)
	}
	first.Close()
	if got := listed(second.Agents[1]); got != "child_do idempotent" || second.Servers[0].Ready(t.Context()) != nil {
		t.Errorf("a server that is still used has ended: %q", got)
	}
	if got := listed(third.Agents[0]); got != "child_say pure" {
		t.Errorf("the changed server has %q", got)
	}
	second.Close()
	if err := speak(t, second.Servers[0]); err == nil {
		t.Error("the server lives on without anybody who uses it")
	}
	if err := speak(t, third.Servers[0]); err != nil {
		t.Errorf("the other server: %v", err)
	}
	if err := os.WriteFile(path, []byte("agents: [{name: a, tools: [nosuch]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := third.Again(path); err == nil || !server.IsFileMistake(err) {
		t.Errorf("%v, %v", l, err)
	}
}

// speak calls the server's tool say.
func speak(t *testing.T, s *mcp.Server) error {
	t.Helper()
	for _, tool := range s.Tools() {
		if c := (holdfast.ToolCall{ID: "c", Name: tool.Spec().Name, Key: "k"}); strings.HasSuffix(c.Name, "_say") {
			_, err := tool.Call(holdfast.ContextWithCall(t.Context(), c, nil), c)
			return err
		}
	}
	t.Fatal("there is no tool say")
	return nil
}

// TestValidateStartsNothing: no server of the file is started to check it.
func TestValidateStartsNothing(t *testing.T) {
	path := written(t, strings.ReplaceAll(withServers, "${SELF}", filepath.Join(t.TempDir(), "nosuch")))
	agents, _, err := server.ValidateAgents(path, server.Parts{Getenv: noEnv})
	if err != nil || len(agents) != 3 || len(agents[0].Toolsets) != 0 || len(agents[0].Tools) != 1 {
		t.Errorf("%+v, %v", agents, err)
	}
}
