package config

// The keys of mcpServers, tools and openapi, and the names that are declared with them.

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// declarer reads what a file declares.
type declarer struct {
	p       *parser
	look    func(*Declaration) ([]string, error) // Known.Declared
	catalog *catalog
	all     []*Declaration
}

// declare takes over a declaration without mistakes: the code that knows its options reads it,
// and says which tools it makes. before is the number of mistakes before it was read.
func (s *declarer) declare(d *Declaration, before int) {
	s.all = append(s.all, d)
	names := s.toolsOf(d, before)
	if d.Kind == KindMCP {
		s.catalog.servers = append(s.catalog.servers, d)
		s.catalog.unsure = s.catalog.unsure || strings.Contains(d.Name, "_")
		return
	}
	if d.Name != "" {
		names = []string{d.Name}
	}
	for i, name := range names {
		at := d.start
		for _, path := range []string{"name", item("operations", i), item("operations", i) + ".name"} {
			if where, ok := d.at[path]; ok {
				at = where
			}
		}
		s.declareTool(name, at)
	}
}

// toolsOf returns the names of the tools that a declaration makes, as far as they are known.
func (s *declarer) toolsOf(d *Declaration, before int) []string {
	if len(s.p.found) > before {
		s.catalog.unsure = s.catalog.unsure || d.Name == ""
		return nil
	}
	if s.look == nil {
		return nil
	}
	names, err := s.look(d)
	var wrong *Error
	switch {
	case errors.As(err, &wrong):
		s.p.found = append(s.p.found, wrong.Mistakes...)
	case err != nil:
		s.p.mistake(d.start, "%v", err)
	}
	s.catalog.unsure = s.catalog.unsure || err != nil && d.Name == ""
	return names
}

// declareTool takes over the name of a tool.
func (s *declarer) declareTool(name string, at place) {
	if first, twice := s.catalog.places[name]; twice {
		s.p.mistake(at, "the tool %s is declared twice, the first on line %d; give each a name of its own", show(name),
			first.line)
		return
	}
	for _, server := range s.catalog.servers {
		if strings.HasPrefix(name, server.Name+"_") {
			s.p.mistake(at, "the tool %s has a name that a tool of the MCP server %s on line %d can have, because it "+
				"begins with %s_; choose another", show(name), server.Name, server.start.line, server.Name)
			break
		}
	}
	s.catalog.places[name] = at
	s.catalog.names = append(s.catalog.names, name)
}

// servers reads the MCP servers.
func (s *declarer) servers(n *yaml.Node) {
	s.p.entries(n, "mcpServers", func(name string, at place, value *yaml.Node) {
		before := len(s.p.found)
		r := newDeclaring(s.p, KindMCP, at)
		r.d.Name, r.d.at["name"], r.d.values["name"] = name, at, name
		var args *yaml.Node
		known := r.members(s.p.def("mcpServer"), r.d.values, "")
		known["args"] = func(n *yaml.Node) { args = n }
		r.hinted(value, "an MCP server", known, map[string]string{
			"type": "it is not needed: command starts a server that speaks over its standard input and output, " +
				"url reaches one over streamable HTTP",
			"cwd":       "write dir",
			"transport": "it is not needed: command or url says it",
			"disabled":  "remove the server, or put a # before its lines",
		})
		r.arguments(args)
		if r.d.Credential != nil && r.d.values["url"] == nil && len(s.p.found) == before {
			r.p.mistake(r.d.at["credential"],
				"credential is for a server that is reached with url; a command gets what it needs with env")
		}
		s.declare(r.d, before)
	})
}

// arguments adds args to the command.
func (r declaring) arguments(args *yaml.Node) {
	program, _ := r.d.values["command"].([]any)
	if args == nil {
		if p, ok := r.d.values["command"].([]any); ok && len(p) == 1 && resolveText(p[0]) {
			r.p.mistake(r.d.at["command"], "command is only the program; list its arguments in args, one by one")
		}
		return
	}
	all, _ := each(with(plainText))(r, args, "args").([]any)
	switch {
	case r.d.at["command"] == (place{}):
		r.p.mistake(position(resolve(args)), "args are the arguments of command, which is missing")
	case len(program) > 1:
		r.p.mistake(position(resolve(args)), "command is a list, so it has the arguments already; keep one of them")
	default:
		r.d.values["command"] = slices.Concat(program, all)
	}
}

// resolveText reports whether a program looks like a whole line of a shell.
func resolveText(program any) bool {
	t, _ := program.(phrase)
	first, rest, more := strings.Cut(t.text, " ")
	return more && rest != "" && !strings.ContainsAny(first, `/\`)
}

// tools reads the list of tools.
func (s *declarer) tools(n *yaml.Node) {
	s.p.list(n, "tools", func(n *yaml.Node) {
		before := len(s.p.found)
		r := newDeclaring(s.p, "", position(n))
		r.tool(n)
		s.declare(r.d, before)
	})
}

// tool reads an entry of tools.
func (r declaring) tool(n *yaml.Node) {
	known := r.members(r.p.def("tool"), r.d.values, "")
	var first string
	hints := map[string]string{}
	for _, kind := range []string{KindFetch, KindFiles, KindHTTP, KindOutside} {
		keys := r.members(r.p.def(kind), r.d.values, "")
		known[kind] = func(n *yaml.Node) {
			if r.d.Kind = kind; first != "" {
				r.p.mistake(position(resolve(n)),
					"a tool is made of one thing, and this one has %s and %s; make two entries of it", first, kind)
				return
			}
			first = kind
			at := r.hinted(n, kind, keys, map[string]string{
				"name":        "write it beside " + kind,
				"description": "write it beside " + kind,
				"effect":      "write it beside " + kind,
				"inDoubt":     "write it beside " + kind,
				"parameters":  "write it beside " + kind,
			})
			r.onlyOne(at, "result", "resultFile")
		}
		for key := range keys {
			hints[key] = listed(hints[key], "indent it below what the tool is made of, ", kind)
		}
	}
	before := len(r.p.found)
	at := r.hinted(n, "a tool", known, hints)
	r.onlyOne(at, "parameters", "parametersFile")
	if name, ok := r.d.values["name"].(string); ok {
		r.d.Name = name
	}
	if len(r.p.found) == before {
		r.complete(n, first, at)
	}
}

// onlyOne reports two keys that mean the same.
func (r declaring) onlyOne(at map[string]place, a, b string) {
	if at[a] != (place{}) && at[b] != (place{}) {
		r.p.mistake(later(at[a], at[b]), "%s and %s are both set; keep one", a, b)
	}
}

// listed adds a word to a list that has a beginning.
func listed(list, beginning, word string) string {
	if list == "" {
		return beginning + word
	}
	return list + " or " + word
}

// complete finds out what is missing or too much in an entry of tools.
func (r declaring) complete(n *yaml.Node, kind string, at map[string]place) {
	switch kind {
	case "":
		r.p.mistake(position(n), "this tool has nothing that it is made of; add http, outside, files or fetch")
	case KindFiles, KindFetch:
		for _, key := range []string{"name", "description", "parameters", "parametersFile", "effect", "inDoubt"} {
			if where, set := at[key]; set && !(key == "name" && r.d.Name == "http_get" && kind == KindFetch) {
				r.p.mistake(where, "%s makes tools that have a %s already; remove it. %s", kind, key, map[string]string{
					KindFiles: "They are list_files and read_file, after the prefix if there is one",
					KindFetch: "It is http_get",
				}[kind])
			}
		}
		if kind == KindFiles && r.d.values["directory"] == nil {
			r.p.mistake(r.d.start, "files needs directory, the one that can be read")
		}
		r.d.Name, r.d.values["name"] = "", nil
		delete(r.d.values, "name")
	default:
		if _, ok := at["name"]; !ok {
			r.p.mistake(position(n), "this tool has no name; add name:, which agents list")
		}
		if _, ok := r.d.values["url"]; !ok && kind == KindHTTP {
			r.p.mistake(r.d.start, "http needs url, like https://api.example/orders/{id}")
		}
	}
}

// openAPI reads the list of OpenAPI documents.
func (s *declarer) openAPI(n *yaml.Node) {
	shape := s.p.def("openapi")
	s.p.list(n, "openapi", func(n *yaml.Node) {
		before := len(s.p.found)
		r := newDeclaring(s.p, KindOpenAPI, position(n))
		at := r.p.object(n, shape.Title, r.members(shape, r.d.values, ""))
		if _, ok := at["document"]; !ok && len(s.p.found) == before {
			r.p.mistake(position(n), "this entry has no document; add document: with the path of an OpenAPI "+
				"document in JSON or YAML")
		}
		if r.d.Credential != nil && r.d.values["server"] == nil {
			r.p.mistake(r.d.at["credential"],
				"credential needs server, the URL of the one that gets it: otherwise the document would say who does")
		}
		s.declare(r.d, before)
	})
}

// hinted walks a mapping whose keys are known. Of some others it is known what is meant.
func (r declaring) hinted(n *yaml.Node, what string, known fields, hints map[string]string) map[string]place {
	at := map[string]place{}
	var names []string
	for key := range known {
		names = append(names, key)
	}
	slices.Sort(names)
	r.p.entries(n, what, func(key string, where place, value *yaml.Node) {
		read, ok := known[key]
		hint, meant := hints[key]
		switch {
		case ok:
			at[key] = where
			read(value)
		case meant:
			r.p.mistake(where, "unknown key %s; %s", show(key), hint)
		default:
			r.p.mistake(where, "%s", unknownKey(key, names))
		}
	})
	return at
}
