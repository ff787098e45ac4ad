package config

// Reading the agents of the file: each key of an agent, its limits and its policy.

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"go.yaml.in/yaml/v4"
)

// agentReader reads the agents, with what they can refer to.
type agentReader struct {
	p       *parser
	known   Known
	catalog *catalog
	prices  map[string]any
	names   map[string]int // the line of every name so far
}

func (r *agentReader) agents(n *yaml.Node) (agents []Agent) {
	r.p.list(n, "agents", func(n *yaml.Node) { agents = append(agents, r.agent(n)) })
	if n = resolve(n); n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.p.mistake(position(n), "agents has no agent; it needs at least one")
	}
	return agents
}

// agent reads one entry of agents.
func (r *agentReader) agent(n *yaml.Node) Agent {
	d := newDeclaring(r.p, "agents", position(n))
	d.short = true
	a := Agent{Line: n.Line, file: r.p.file, start: position(n)}
	one := newDeclaring(r.p, "model", a.start)
	var name string
	var inline, file, list *yaml.Node
	shape := r.p.def("agent")
	known := d.members(shape, d.d.values, "")
	maps.Copy(known, r.modelFields(one))
	maps.Copy(known, fields{
		"name":             func(n *yaml.Node) { a.Name = r.agentName(n) },
		"model":            func(n *yaml.Node) { name = r.modelName(n, "model") },
		"models":           func(n *yaml.Node) { list = n },
		"instructions":     func(n *yaml.Node) { inline = n; a.Instructions, _ = r.p.text(n, "instructions") },
		"instructionsFile": func(n *yaml.Node) { file = n },
		"tools":            func(n *yaml.Node) { r.tools(&a, n) },
		"middleware":       func(n *yaml.Node) { a.Middleware, a.Options = r.middleware(n) },
		"output":           func(n *yaml.Node) { a.Output = r.output(n) },
		"remote":           func(n *yaml.Node) { a.Remote = r.remote(n) },
	})
	a.at = r.p.object(n, shape.Title, known)
	r.said(&a, d.d)
	if a.State != nil {
		if err := a.State.Validate(); err != nil {
			r.p.mistake(d.d.at["state"], "state: %v", err)
		}
	}
	one.d.at = maps.Clone(a.at)
	delete(one.d.at, "name")
	if at, named := a.at["model"]; named {
		one.d.at["name"] = at
	}
	a.Models = r.modelsOf(&a, Model{one.d, name}, list)
	if a.Remote != nil {
		r.onlyRemote(&a)
	}
	if a.FallbackRefused && len(a.Models) < 2 {
		r.p.mistake(a.at["refusal"], "refusal: next needs a second model; list both under models, the one that is "+
			"asked first at the beginning")
	}
	if _, ok := a.at["name"]; !ok && resolve(n).Kind == yaml.MappingNode {
		r.p.mistake(position(n), "this agent has no name; add name:, which requests use")
	}
	switch {
	case inline != nil && file != nil:
		r.p.mistake(later(a.at["instructions"], a.at["instructionsFile"]),
			"instructions and instructionsFile are both set; keep one")
	case file != nil:
		a.InstructionsFile, a.Instructions = r.instructionsFile(file)
	}
	return a
}

// said takes over what the file says of an agent. Some of it has another name in the type.
func (r *agentReader) said(a *Agent, d *Declaration) {
	said := struct {
		*holdfast.Agent
		Limits                                                         json.RawMessage
		Refusal, ToolErrors, Import, ClientInstructions, ClientContext string
		Media                                                          struct {
			URLs  string
			Files bool
		}
	}{Agent: &a.Agent}
	if err := d.Decode(&said, nil); err != nil {
		r.p.mistake(a.start, "%v", err) // a key of the schema that is not known here
	}
	a.Limits, a.FallbackRefused, a.HideToolErrors = said.Limits, said.Refusal == "next", said.ToolErrors == "hide"
	a.Client = holdfast.ClientPolicy{
		Import:       said.Import,
		Instructions: said.ClientInstructions,
		Context:      said.ClientContext,
		MediaURLs:    said.Media.URLs,
		MediaFiles:   said.Media.Files,
	}
}

// agentNames matches names that need no escaping in a URL: POST /agents/{name}/runs. A
// name that is only dots would be taken for a directory.
var agentNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (r *agentReader) agentName(n *yaml.Node) string {
	name, ok := r.p.text(n, "name")
	if !ok {
		return ""
	}
	if !agentNames.MatchString(name) {
		r.p.mistake(position(n), "the name %s cannot be used in a URL; use up to 64 letters, digits, dots, - and _, "+
			"starting with a letter or digit", show(name))
	}
	if line, twice := r.names[name]; twice {
		r.p.mistake(position(n), "two agents are named %s, the first on line %d; give each a name of its own",
			show(name), line)
		return name
	}
	r.names[name] = n.Line
	return name
}

func (r *agentReader) instructionsFile(n *yaml.Node) (path, text string) {
	const what = "instructionsFile"
	path, data, ok := r.p.besideFile(n, what, MaxSize, "; instructions are sent with every model call")
	at, shown := position(resolve(n)), show(resolve(n).Value)
	switch {
	case !ok:
	case !utf8.Valid(data):
		r.p.mistake(at, "the file %s is not UTF-8 text", shown)
	case strings.TrimSpace(string(data)) == "":
		r.p.mistake(at, "the file %s is empty", shown)
	default:
		return path, string(data)
	}
	return "", ""
}
