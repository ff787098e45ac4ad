package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-agents/holdfast"
)

// toolServer is what a toolset is that comes from an MCP server. Revision is that of the
// protocol that is spoken with it; empty while it is not connected to.
type toolServer interface {
	Name() string
	Revision() string
}

// serverCollector shows which MCP servers are connected to: those whose tools the agents of
// the moment have. They are looked at when they are scraped.
type serverCollector struct{ *Metrics }

// mcpConnected describes its gauge; it is read only.
var mcpConnected = prometheus.NewDesc("holdfast_mcp_connected",
	"Whether this process is connected to an MCP server whose tools an agent has: 1, or 0.", []string{"server"}, nil)

// Describe implements [prometheus.Collector].
func (c serverCollector) Describe(ch chan<- *prometheus.Desc) { ch <- mcpConnected }

// Collect implements [prometheus.Collector]. Servers of one name are connected to if all of
// them are.
func (c serverCollector) Collect(ch chan<- prometheus.Metric) {
	connected := map[string]float64{}
	for _, s := range c.configured.Load().servers {
		name, up := label(s.Name()), 1.0
		if s.Revision() == "" {
			up = 0
		}
		if before, twice := connected[name]; twice {
			up = min(up, before)
		}
		connected[name] = up
	}
	for name, up := range connected {
		ch <- prometheus.MustNewConstMetric(mcpConnected, prometheus.GaugeValue, up, name)
	}
}

// toolServers returns the MCP servers that agents have tools of.
func toolServers(agents []holdfast.Agent) (servers []toolServer) {
	for _, a := range agents {
		for _, set := range a.Toolsets {
			if s, ok := set.(toolServer); ok && s.Name() != "" {
				servers = append(servers, s)
			}
		}
	}
	slices.SortStableFunc(servers, func(a, b toolServer) int { return cmp.Compare(a.Name(), b.Name()) })
	return servers
}
