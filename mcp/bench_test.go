package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkCall is a call over standard input and output, to the same server, with this
// package and with nothing but the SDK.
func BenchmarkCall(b *testing.B) {
	const arguments = `{"text":"hello"}`
	b.Run("holdfast", func(b *testing.B) {
		t := tool(b, open(b, process(b, "plain")), "srv_echo")
		c := holdfast.ToolCall{ID: "c1", Key: "key1", Arguments: json.RawMessage(arguments)}
		for b.Loop() {
			if r, err := t.Call(b.Context(), c); err != nil || r.Failed {
				b.Fatalf("%+v %v", r, err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = []string{serverEnv + "=plain"}
		client := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"},
			&sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
		x, err := client.Connect(b.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer x.Close()
		for b.Loop() {
			r, err := x.CallTool(b.Context(), &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(arguments)})
			if err != nil || r.IsError {
				b.Fatalf("%+v %v", r, err)
			}
		}
	})
}

// BenchmarkTools is what a run pays for a server's thousand tools.
func BenchmarkTools(b *testing.B) {
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprintf(`{"name":"tool%d","description":"does `+
			`%d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, i, i))
	}
	f := newFake(b, strings.Join(all, ","), func(w http.ResponseWriter, m message) {})
	s := open(b, mcp.Options{URL: f.URL})
	n := 0
	for b.Loop() {
		n = len(s.Tools())
	}
	if n != 1000 {
		b.Fatalf("there are %d tools", n)
	}
}
