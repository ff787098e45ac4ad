package config

// The tools that an agent lists: names, and patterns of names.

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// catalog is what the file declares that agents can list.
type catalog struct {
	// servers are the MCP servers, names the tools, in the order of the file, and places where
	// those are declared.
	servers []*Declaration
	names   []string
	places  map[string]place
	// unsure: because of other mistakes, not all names are known.
	unsure bool
}

// serverNames returns the names of the MCP servers.
func (c *catalog) serverNames() (names []string) {
	for _, d := range c.servers {
		names = append(names, d.Name)
	}
	return names
}

// patterns matches names of tools in which * stands for any characters.
var patterns = regexp.MustCompile(`^[A-Za-z0-9_*-]{1,128}$`)

// tools reads the list of an agent. Its entries are names of tools, or patterns, which pick
// from what the file declares: what begins with the name of an MCP server is the server's.
func (r *agentReader) tools(a *Agent, n *yaml.Node) {
	var listed []string
	r.p.list(n, "tools", func(n *yaml.Node) {
		entry, ok := r.p.text(n, "a tool")
		if !ok {
			return
		}
		if slices.Contains(listed, entry) {
			r.p.mistake(position(n), "the tool %s is listed twice", show(entry))
			return
		}
		listed = append(listed, entry)
		names, server := r.picked(entry)
		switch {
		case server != "":
			a.listServer(server, entry)
		case len(names) == 0 && !r.catalog.unsure:
			r.p.mistake(position(n), "%s", r.unknownTool(entry))
		}
		for _, name := range names {
			if !slices.Contains(a.ToolNames, name) {
				a.ToolNames = append(a.ToolNames, name)
			}
		}
	})
}

// picked returns the tools that an entry stands for, or the MCP server that they are of.
func (r *agentReader) picked(entry string) (names []string, server string) {
	if slices.Contains(r.catalog.names, entry) || slices.Contains(r.known.Tools, entry) {
		return []string{entry}, ""
	}
	if !patterns.MatchString(entry) {
		return nil, ""
	}
	if name, rest, _ := strings.Cut(entry, "_"); rest != "" && slices.Contains(r.catalog.serverNames(), name) {
		return nil, name
	}
	for _, name := range r.catalog.names {
		if ok, _ := path.Match(entry, name); ok {
			names = append(names, name)
		}
	}
	return names, ""
}

// listServer adds a pattern of an MCP server's tools.
func (a *Agent) listServer(server, pattern string) {
	i := slices.IndexFunc(a.ServerTools, func(t ServerTools) bool { return t.Server == server })
	if i < 0 {
		i = len(a.ServerTools)
		a.ServerTools = append(a.ServerTools, ServerTools{Server: server})
	}
	a.ServerTools[i].Patterns = append(a.ServerTools[i].Patterns, pattern)
}

// unknownTool says that an entry stands for nothing, and what may be meant.
func (r *agentReader) unknownTool(entry string) string {
	servers := r.catalog.serverNames()
	name, rest, _ := strings.Cut(entry, "_")
	switch meant := closest(name, servers); {
	case slices.Contains(servers, name): // with nothing after it
		return show(name) + " is an MCP server and no tool; write " + name + "_* for all of its tools"
	case rest != "" && meant != "" && !looksLikeKey(rest):
		return "unknown tool " + show(entry) + "; did you mean " + show(meant+"_"+rest) + "?"
	}
	known := slices.Concat(r.catalog.names, r.known.Tools)
	for _, server := range servers {
		known = append(known, server+"_*")
	}
	begin, _, isPattern := strings.Cut(entry, "*")
	if !isPattern {
		return "unknown tool " + show(entry) + suggest(entry, known)
	}
	for _, server := range servers {
		if begin != "" && strings.HasPrefix(server, begin) {
			return fmt.Sprintf("the pattern %s begins with no name of an MCP server; did you mean %s?", show(entry),
				show(server+"_*"))
		}
	}
	return fmt.Sprintf("the pattern %s stands for no tool that this file declares, and does not begin with the name "+
		"of an MCP server and _%s", show(entry), suggest(entry, known))
}
