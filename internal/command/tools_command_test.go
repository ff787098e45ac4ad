package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// childEnv makes this test's own program an MCP server.
const childEnv = "TOOLS_COMMAND_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := child().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(m.Run())
}

// child is an MCP server with tools of all kinds.
func child() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "child", Version: "1"}, nil)
	for name, hints := range map[string]*sdk.ToolAnnotations{
		"read": {ReadOnlyHint: true}, "put": {IdempotentHint: true}, "pay": nil, "secret": nil, "no name": nil,
	} {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: hints},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{}, nil
			})
	}
	return s
}

// TestToolsCommand: the list has what servers and the file offer, the effect of each tool
// and why, and who has it. It needs no key of a model. A server that cannot be reached is
// said to be, beside the others, and makes the command fail.
func TestToolsCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	file := `
agents:
  - {name: a, model: openai/x, tools: [calculate, "child_*", get_order, refund]}
  - {name: b, model: demo, tools: [child_pay, calculate]}
mcpServers:
  child: {command: "${SELF}", env: {` + childEnv + `: "1"}, exceptTools: [secret], effects: {pay: idempotent}}
tools:
  - {name: get_order, description: Reads an order., http: {url: "https://shop.example/orders/{id}"}}
  - {name: refund, description: Gives money back., effect: idempotent, http: {url: "https://shop.example/orders/{id}/refund", method: POST}}
  - {name: nobodys, description: Nobody lists it., http: {url: "https://shop.example/x", method: DELETE}}
`
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file)
	getenv := env(map[string]string{"SELF": self})
	code, out, errOut := runCommand(t, getenv, "tools", "--config", path)
	want := `child (MCP server, revision 2026-07-28): 3 tools
  child_pay   idempotent  the configuration says so for this tool                                      a, b
  child_put   idempotent  the server says that calling it again changes nothing more (idempotentHint)  a
  child_read  pure        the server says that it only reads (readOnlyHint)                            a
  "no name"   not used    its name is not made of 1 to 128 letters, digits, underscores, hyphens and dots
  "secret"    not used    the configuration leaves it out

declared in the file: 3 tools
  get_order  pure        its method is GET          a
  refund     idempotent  the configuration says so  a
  nobodys    once        its method is DELETE       (no agent lists it)

built in: 1 tool
  calculate  pure  the tool declares it  a, b
`
	if code != exitOK || out != want || errOut != "" {
		t.Errorf("%d, %q,\n%s\nwant\n%s", code, errOut, out, want)
	}

	write(file + "  - {name: x, description: x, http: {url: ftp://x}}\n")
	if code, out, errOut = runCommand(t, getenv, "tools", "--config", path); code != exitUsage || out != "" ||
		!strings.HasPrefix(errOut, path+":11:43: ") {
		t.Errorf("a mistake: %d %q %q", code, out, errOut)
	}
	write(strings.Replace(file, "mcpServers:\n", "mcpServers:\n  gone: {command: nosuch-program}\n", 1))
	code, out, _ = runCommand(t, getenv, "tools", "--config", path, "--json")
	var sources []toolSource
	if err := json.Unmarshal([]byte(out), &sources); err != nil || code != exitFailed || len(sources) != 4 {
		t.Fatalf("%d, %v: %s", code, err, out)
	}
	if gone, child := sources[0], sources[1]; !strings.Contains(gone.Error, "nosuch-program") || gone.Tools == nil ||
		len(child.Tools) != 3 || child.Tools[0].Remote != "pay" || child.Revision == "" {
		t.Errorf("%+v", sources)
	}
	if code, _, errOut = runCommand(t, getenv, "tools", "--config", path+"x"); code != exitUsage ||
		!strings.Contains(errOut, "there is no file") {
		t.Errorf("no file: %d %q", code, errOut)
	}
}
