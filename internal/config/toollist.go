package config

// The tools that an agent lists: names, and patterns of names.

import (
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

// toolLister reads the tools of an agent.
type toolLister struct{ *parser }

// patterns matches names of tools in which * stands for any characters.
var patterns = regexp.MustCompile(`^[A-Za-z0-9_*-]{1,128}$`)

// read reads the list of an agent. Its entries are names of tools, or patterns, which pick
// from what the file declares: what begins with the name of an MCP server is the server's.
func (p toolLister) read(a *Agent, n *yaml.Node) {
	var listed []string
	p.list(n, "tools", func(n *yaml.Node) {
		entry, ok := p.text(n, "a tool")
		if !ok {
			return
		}
		if slices.Contains(listed, entry) {
			p.mistake(position(n), "the tool %s is listed twice", show(entry))
			return
		}
		listed = append(listed, entry)
		names, server := p.picked(entry)
		switch {
		case server != "":
			a.listServer(server, entry)
		case len(names) == 0 && !p.catalog.unsure:
			p.mistake(position(n), "%s", p.unknownTool(entry))
		}
		for _, name := range names {
			if !slices.Contains(a.Tools, name) {
				a.Tools = append(a.Tools, name)
			}
		}
	})
}

// picked returns the tools that an entry stands for, or the MCP server that they are of.
func (p toolLister) picked(entry string) (names []string, server string) {
	if slices.Contains(p.catalog.names, entry) || slices.Contains(p.known.Tools, entry) {
		return []string{entry}, ""
	}
	if !patterns.MatchString(entry) {
		return nil, ""
	}
	if name, rest, _ := strings.Cut(entry, "_"); rest != "" && slices.Contains(p.catalog.serverNames(), name) {
		return nil, name
	}
	for _, name := range p.catalog.names {
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
func (p toolLister) unknownTool(entry string) string {
	servers := p.catalog.serverNames()
	name, rest, _ := strings.Cut(entry, "_")
	switch meant := closest(name, servers); {
	case slices.Contains(servers, name): // with nothing after it
		return show(name) + " is an MCP server and no tool; write " + name + "_* for all of its tools"
	case rest != "" && meant != "" && !looksLikeKey(rest):
		return "unknown tool " + show(entry) + "; did you mean " + show(meant+"_"+rest) + "?"
	}
	known := slices.Concat(p.catalog.names, p.known.Tools)
	for _, server := range servers {
		known = append(known, server+"_*")
	}
	if begin, _, isPattern := strings.Cut(entry, "*"); isPattern {
		for _, server := range servers {
			if begin != "" && strings.HasPrefix(server, begin) {
				return "the pattern " + show(
					entry,
				) + " begins with no name of an MCP server; did you mean " + show(
					server+"_*",
				) + "?"
			}
		}
		return "the pattern " + show(
			entry,
		) + " stands for no tool that this file declares, and does not begin with the name of an MCP server and _" +
			suggest(
				entry,
				known,
			)
	}
	return "unknown tool " + show(entry) + suggest(entry, known)
}
