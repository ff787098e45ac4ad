package config

// Reading the agents of the file: each key of an agent, its limits and its policy.

import (
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
	a := Agent{Line: n.Line, name: r.p.file, start: position(n)}
	var inline, file, list *yaml.Node
	var refusal string
	one := Model{file: r.p.file, start: a.start}
	known := r.modelFields(&one)
	maps.Copy(known, fields{
		"name":        func(n *yaml.Node) { a.Name = r.agentName(n) },
		"description": func(n *yaml.Node) { a.Description, _ = r.p.text(n, "description") },
		"model":       func(n *yaml.Node) { one.Name = r.modelName(n, "model") },
		"models":      func(n *yaml.Node) { list = n },
		"refusal":     r.p.oneOf(&refusal, "refusal", "end", "next"),

		"instructions":     func(n *yaml.Node) { inline = n; a.Instructions, _ = r.p.text(n, "instructions") },
		"instructionsFile": func(n *yaml.Node) { file = n },
		"tools":            func(n *yaml.Node) { r.tools(&a, n) },
		"middleware":       func(n *yaml.Node) { a.Middleware, a.Options = r.middleware(n) },
		"limits":           func(n *yaml.Node) { a.Limits = r.limits(n) },
		"output":           func(n *yaml.Node) { a.Output = r.output(n) },
		"policy":           func(n *yaml.Node) { a.Policy = r.policy(n) },

		"import":             r.p.oneOf(&a.Client.Import, "import", "all", "users", "none"),
		"clientInstructions": r.p.oneOf(&a.Client.Instructions, "clientInstructions", "system", "user", "drop"),
		"clientContext":      r.p.oneOf(&a.Client.Context, "clientContext", "system", "user", "drop"),
		"media":              func(n *yaml.Node) { r.media(n, &a.Client) },
		"toolErrors":         func(n *yaml.Node) { a.HideToolErrors = r.toolErrors(n) },
		"onRevision":         r.p.oneOf(&a.OnRevision, "onRevision", "adopt", "pin"),
		"approvals":          r.p.oneOf(&a.Approvals, "approvals", "user", "approver"),
	})
	a.at = r.p.object(n, "an agent", known)
	one.at = maps.Clone(a.at)
	delete(one.at, "name")
	if at, named := a.at["model"]; named {
		one.at["name"] = at
	}
	a.Models, a.FallbackRefused = r.modelsOf(&a, one, list), refusal == "next"
	if a.FallbackRefused && len(a.Models) < 2 {
		r.p.mistake(
			a.at["refusal"],
			"refusal: next needs a second model; list both under models, the one that is asked first at the beginning",
		)
	}
	if _, ok := a.at["name"]; !ok && resolve(n).Kind == yaml.MappingNode {
		r.p.mistake(position(n), "this agent has no name; add name:, which requests use")
	}
	switch {
	case inline != nil && file != nil:
		r.p.mistake(
			later(a.at["instructions"], a.at["instructionsFile"]),
			"instructions and instructionsFile are both set; keep one",
		)
	case file != nil:
		a.InstructionsFile, a.Instructions = r.instructionsFile(file)
	}
	return a
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
		r.p.mistake(
			position(n),
			"the name %s cannot be used in a URL; use up to 64 letters, digits, dots, - and _, "+
				"starting with a letter or digit",
			show(name),
		)
	}
	if line, twice := r.names[name]; twice {
		r.p.mistake(
			position(n),
			"two agents are named %s, the first on line %d; give each a name of its own",
			show(name),
			line,
		)
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

func (r *agentReader) limits(n *yaml.Node) (l Limits) {
	r.p.object(n, "limits", fields{
		"maxIterations":    func(n *yaml.Node) { l.MaxIterations = r.p.count(n, "maxIterations") },
		"modelTries":       func(n *yaml.Node) { l.ModelTries = r.p.count(n, "modelTries") },
		"modelTimeout":     func(n *yaml.Node) { l.ModelTimeout = r.p.duration(n, "modelTimeout") },
		"modelIdleTimeout": func(n *yaml.Node) { l.ModelIdleTimeout = r.p.duration(n, "modelIdleTimeout") },
		"maxAnswer":        func(n *yaml.Node) { l.MaxAnswer = r.p.size(n, "maxAnswer") },
		"maxCalls":         func(n *yaml.Node) { l.MaxCalls = r.p.count(n, "maxCalls") },
		"maxArguments":     func(n *yaml.Node) { l.MaxArguments = r.p.size(n, "maxArguments") },
		"maxMedia":         func(n *yaml.Node) { l.MaxMedia = r.p.size(n, "maxMedia") },
		"toolTimeout":      func(n *yaml.Node) { l.ToolTimeout = r.p.duration(n, "toolTimeout") },
		"maxToolResult":    func(n *yaml.Node) { l.MaxToolResult = r.p.size(n, "maxToolResult") },
	})
	return l
}

func (r *agentReader) media(n *yaml.Node, c *holdfast.ClientPolicy) {
	r.p.object(n, "media", fields{
		"urls":  r.p.oneOf(&c.MediaURLs, "urls", "https", "any", "none"),
		"files": func(n *yaml.Node) { c.MediaFiles = r.p.yes(n, "files") },
	})
}

func (r *agentReader) toolErrors(n *yaml.Node) (hide bool) {
	var said string
	r.p.oneOf(&said, "toolErrors", "show", "hide")(n)
	return said == "hide"
}

func (r *agentReader) policy(n *yaml.Node) (policy holdfast.Policy) {
	r.p.object(n, "policy", fields{
		"chat":          func(n *yaml.Node) { policy.Chat = r.p.yes(n, "chat") },
		"onBusy":        r.p.oneOf(&policy.OnBusy, "onBusy", "reject", "cancel_and_run"),
		"onInterrupted": r.p.oneOf(&policy.OnInterrupted, "onInterrupted", "reject", "decline"),
		"onUnfinished":  r.p.oneOf(&policy.OnUnfinished, "onUnfinished", "reject", "abandon"),
	})
	return policy
}
