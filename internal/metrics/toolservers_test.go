package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/metrics"
)

// serverNamed is the toolset of an MCP server. Without a revision it is not connected.
type serverNamed struct{ name, revision string }

func (s serverNamed) Name() string           { return s.name }
func (s serverNamed) Revision() string       { return s.revision }
func (s serverNamed) Tools() []holdfast.Tool { return nil }

// nameless is a toolset that comes from no server.
type nameless struct{}

func (nameless) Tools() []holdfast.Tool { return nil }

// TestMCPConnected: the gauge has the servers that agents have tools of, each once, and after a
// reload those of the new agents alone.
func TestMCPConnected(t *testing.T) {
	up, away := serverNamed{"github", "2025-06-18"}, serverNamed{name: "jira"}
	m := metrics.New([]holdfast.Agent{
		{Name: "a", Model: modelNamed("one"), Toolsets: []holdfast.Toolset{up, away, nameless{}}},
		{Name: "b", Model: modelNamed("one"), Toolsets: []holdfast.Toolset{up}},
	})
	shows := func(want ...string) {
		t.Helper()
		text := "# HELP holdfast_mcp_connected Whether this process is connected to an MCP server whose tools an " +
			"agent has: 1, or 0.\n# TYPE holdfast_mcp_connected gauge\n" +
			strings.Join(want, "\n") + "\n"
		if err := testutil.GatherAndCompare(m.Registry(), strings.NewReader(text),
			"holdfast_mcp_connected"); err != nil {
			t.Error(err)
		}
	}
	shows(`holdfast_mcp_connected{server="github"} 1`, `holdfast_mcp_connected{server="jira"} 0`)

	// Two servers of one name are shown as the worse of them.
	m.Add([]holdfast.Agent{
		{Name: "a", Model: modelNamed("one"), Toolsets: []holdfast.Toolset{up, serverNamed{name: "github"}}},
	})
	shows(`holdfast_mcp_connected{server="github"} 0`)
}
