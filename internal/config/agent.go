package config

// Reading the agents of the file: each key of an agent, its limits and its policy.

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"go.yaml.in/yaml/v4"
)

func (p *parser) agents(f *File, n *yaml.Node) {
	names := map[string]int{}
	p.list(n, "agents", func(n *yaml.Node) { f.Agents = append(f.Agents, p.agent(n, names)) })
	if n = resolve(n); n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		p.mistake(position(n), "agents has no agent; it needs at least one")
	}
}

// agent reads one entry of agents. names has the line of every name so far.
func (p *parser) agent(n *yaml.Node, names map[string]int) Agent {
	a := Agent{Line: n.Line, name: p.name, start: position(n)}
	var inline, file, list *yaml.Node
	var refusal string
	one := Model{file: p.name, start: a.start}
	known := p.modelFields(&one)
	maps.Copy(known, fields{
		"name":        func(n *yaml.Node) { a.Name = p.agentName(n, names) },
		"description": func(n *yaml.Node) { a.Description, _ = p.text(n, "description") },
		"model":       func(n *yaml.Node) { one.Name = p.modelName(n, "model") },
		"models":      func(n *yaml.Node) { list = n },
		"refusal":     p.oneOf(&refusal, "refusal", "end", "next"),

		"instructions":     func(n *yaml.Node) { inline = n; a.Instructions, _ = p.text(n, "instructions") },
		"instructionsFile": func(n *yaml.Node) { file = n },
		"tools":            func(n *yaml.Node) { toolLister{p}.read(&a, n) },
		"middleware":       func(n *yaml.Node) { a.Middleware, a.Options = p.middleware(n) },
		"limits":           func(n *yaml.Node) { a.Limits = p.limits(n) },
		"output":           func(n *yaml.Node) { a.Output = formParser{p}.read(n) },
		"policy":           func(n *yaml.Node) { a.Policy = p.policy(n) },

		"import":             p.oneOf(&a.Client.Import, "import", "all", "users", "none"),
		"clientInstructions": p.oneOf(&a.Client.Instructions, "clientInstructions", "system", "user", "drop"),
		"clientContext":      p.oneOf(&a.Client.Context, "clientContext", "system", "user", "drop"),
		"media":              func(n *yaml.Node) { p.media(n, &a.Client) },
		"toolErrors":         func(n *yaml.Node) { a.HideToolErrors = p.toolErrors(n) },
		"onRevision":         p.oneOf(&a.OnRevision, "onRevision", "adopt", "pin"),
		"approvals":          p.oneOf(&a.Approvals, "approvals", "user", "approver"),
	})
	a.at = p.object(n, "an agent", known)
	one.at = maps.Clone(a.at)
	delete(one.at, "name")
	if at, named := a.at["model"]; named {
		one.at["name"] = at
	}
	a.Models, a.FallbackRefused = p.modelsOf(&a, one, list), refusal == "next"
	if a.FallbackRefused && len(a.Models) < 2 {
		p.mistake(
			a.at["refusal"],
			"refusal: next needs a second model; list both under models, the one that is asked first at the beginning",
		)
	}
	if _, ok := a.at["name"]; !ok && resolve(n).Kind == yaml.MappingNode {
		p.mistake(position(n), "this agent has no name; add name:, which requests use")
	}
	switch {
	case inline != nil && file != nil:
		p.mistake(
			later(a.at["instructions"], a.at["instructionsFile"]),
			"instructions and instructionsFile are both set; keep one",
		)
	case file != nil:
		a.InstructionsFile, a.Instructions = p.instructionsFile(file)
	}
	return a
}

func later(a, b place) place {
	if a.line > b.line || (a.line == b.line && a.column > b.column) {
		return a
	}
	return b
}

// agentNames matches names that need no escaping in a URL: POST /agents/{name}/runs. A
// name that is only dots would be taken for a directory.
var agentNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (p *parser) agentName(n *yaml.Node, names map[string]int) string {
	name, ok := p.text(n, "name")
	if !ok {
		return ""
	}
	if !agentNames.MatchString(name) {
		p.mistake(
			position(n),
			"the name %s cannot be used in a URL; use up to 64 letters, digits, dots, - and _, "+
				"starting with a letter or digit",
			show(name),
		)
	}
	if line, twice := names[name]; twice {
		p.mistake(
			position(n),
			"two agents are named %s, the first on line %d; give each a name of its own",
			show(name),
			line,
		)
		return name
	}
	names[name] = n.Line
	return name
}

func (p *parser) instructionsFile(n *yaml.Node) (path, text string) {
	path, ok := p.text(n, "instructionsFile")
	if !ok {
		return "", ""
	}
	at, shown := position(resolve(n)), show(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(p.name), path)
	}
	data, err := p.readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.mistake(at, "there is no file %s; the path is relative to this file", shown)
	case err != nil:
		p.mistake(at, "instructionsFile cannot be read: %v", err)
	case len(data) > MaxSize:
		p.mistake(at, "the file %s is larger than 1 MiB; instructions are sent with every model call", shown)
	case !utf8.Valid(data):
		p.mistake(at, "the file %s is not UTF-8 text", shown)
	case strings.TrimSpace(string(data)) == "":
		p.mistake(at, "the file %s is empty", shown)
	default:
		return path, string(data)
	}
	return "", ""
}

func (p *parser) limits(n *yaml.Node) (l Limits) {
	p.object(n, "limits", fields{
		"maxIterations":    func(n *yaml.Node) { l.MaxIterations = p.count(n, "maxIterations") },
		"modelTries":       func(n *yaml.Node) { l.ModelTries = p.count(n, "modelTries") },
		"modelTimeout":     func(n *yaml.Node) { l.ModelTimeout = p.duration(n, "modelTimeout") },
		"modelIdleTimeout": func(n *yaml.Node) { l.ModelIdleTimeout = p.duration(n, "modelIdleTimeout") },
		"maxAnswer":        func(n *yaml.Node) { l.MaxAnswer = p.size(n, "maxAnswer") },
		"maxCalls":         func(n *yaml.Node) { l.MaxCalls = p.count(n, "maxCalls") },
		"maxArguments":     func(n *yaml.Node) { l.MaxArguments = p.size(n, "maxArguments") },
		"maxMedia":         func(n *yaml.Node) { l.MaxMedia = p.size(n, "maxMedia") },
		"toolTimeout":      func(n *yaml.Node) { l.ToolTimeout = p.duration(n, "toolTimeout") },
		"maxToolResult":    func(n *yaml.Node) { l.MaxToolResult = p.size(n, "maxToolResult") },
	})
	return l
}

// oneOf returns a function that reads one of the known values.
func (p *parser) oneOf(dst *string, what string, known ...string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		value, ok := p.text(n, what)
		if ok && !slices.Contains(known, value) {
			p.mistake(position(resolve(n)), "%s cannot be %s%s", what, show(value), suggest(value, known))
			return
		}
		*dst = value
	}
}

func (p *parser) media(n *yaml.Node, c *holdfast.ClientPolicy) {
	p.object(n, "media", fields{
		"urls":  p.oneOf(&c.MediaURLs, "urls", "https", "any", "none"),
		"files": func(n *yaml.Node) { c.MediaFiles = p.yes(n, "files") },
	})
}

func (p *parser) toolErrors(n *yaml.Node) (hide bool) {
	var said string
	p.oneOf(&said, "toolErrors", "show", "hide")(n)
	return said == "hide"
}

func (p *parser) policy(n *yaml.Node) (policy holdfast.Policy) {
	p.object(n, "policy", fields{
		"chat":          func(n *yaml.Node) { policy.Chat = p.yes(n, "chat") },
		"onBusy":        p.oneOf(&policy.OnBusy, "onBusy", "reject", "cancel_and_run"),
		"onInterrupted": p.oneOf(&policy.OnInterrupted, "onInterrupted", "reject", "decline"),
		"onUnfinished":  p.oneOf(&policy.OnUnfinished, "onUnfinished", "reject", "abandon"),
	})
	return policy
}

// yes reads true or false.
func (p *parser) yes(n *yaml.Node, what string) (v bool) {
	n = resolve(n)
	if n.ShortTag() != "!!bool" || n.Decode(&v) != nil {
		p.wrongType(n, what, "true or false")
	}
	return v
}

// scalar returns the text in the file, whatever its YAML type: to YAML, 30 is a number
// and 30s is text.
func (p *parser) scalar(n *yaml.Node, what, want string) (string, bool) {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		p.wrongType(n, what, want)
		return "", false
	}
	return n.Value, true
}

func (p *parser) count(n *yaml.Node, what string) int {
	text, ok := p.scalar(n, what, "a number")
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || v < 1 {
		p.mistake(position(resolve(n)), "%s cannot be %s; write a whole number from 1, like 20", what, show(text))
		return 0
	}
	return int(v)
}

func (p *parser) duration(n *yaml.Node, what string) time.Duration {
	text, ok := p.scalar(n, what, "a duration")
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.mistake(
			position(resolve(n)),
			"%s cannot be %s; write a duration above 0 with its unit, like 30s, 2m or 1h30m",
			what,
			show(text),
		)
		return 0
	}
	return d
}

// maxBytes is 1 GiB: the largest size that makes sense here, and one that fits an int
// on every machine.
const maxBytes = 1 << 30

func (p *parser) size(n *yaml.Node, what string) int {
	text, ok := p.scalar(n, what, "a size")
	if !ok {
		return 0
	}
	digits := strings.TrimRight(text, "KMGiB")
	unit, known := map[string]int64{
		"B":   1,
		"KB":  1e3,
		"MB":  1e6,
		"GB":  1e9,
		"KiB": 1 << 10,
		"MiB": 1 << 20,
		"GiB": 1 << 30,
	}[text[len(digits):]]
	v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 32)
	if !known || err != nil || v < 1 || v > maxBytes/unit {
		p.mistake(
			position(resolve(n)),
			"%s cannot be %s; write a size from 1B to 1GiB with its unit, like 256KiB or 1MiB",
			what,
			show(text),
		)
		return 0
	}
	return int(v * unit)
}
