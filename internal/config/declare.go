package config

// Reading mcpServers, tools and openapi: which keys a declaration has, and what their values
// are. Each key has a reader; what it returns goes into the declaration under the same key.

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"go.yaml.in/yaml/v4"
)

// declaring reads one declaration.
type declaring struct {
	p *parser
	d *Declaration
}

// reader reads a value. what is its path in the declaration. Without a value it returns nil.
type reader func(r declaring, n *yaml.Node, what string) any

// newDeclaring begins a declaration.
func newDeclaring(p *parser, kind string, at place) declaring {
	return declaring{p, &Declaration{
		Kind:   kind,
		file:   p.file,
		start:  at,
		at:     map[string]place{},
		values: map[string]any{},
	}}
}

// into returns fields that put what the readers return into values.
func (r declaring) into(values map[string]any, path string, readers map[string]reader) fields {
	known := fields{}
	for key, read := range readers {
		what := join(path, key)
		known[key] = func(n *yaml.Node) {
			r.d.at[what] = position(resolve(n))
			if v := read(r, n, what); v != nil {
				values[key] = v
			}
		}
	}
	return known
}

// nested reads a mapping with keys of its own.
func nested(readers map[string]reader) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		values := map[string]any{}
		r.p.object(n, what, r.into(values, what, readers))
		return values
	}
}

// each reads a list.
func each(read reader) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		all := []any{}
		r.p.list(n, what, func(n *yaml.Node) {
			at := item(what, len(all))
			r.d.at[at] = position(n)
			all = append(all, read(r, n, at))
		})
		return all
	}
}

// mapped reads a mapping whose keys are names.
func mapped(read reader) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		all := map[string]any{}
		r.p.entries(n, what, func(key string, _ place, value *yaml.Node) {
			at := join(what, key)
			r.d.at[at] = position(resolve(value))
			if v := read(r, value, member(what, key)); v != nil {
				all[key] = v
			}
		})
		return all
	}
}

// plain reads a text without variables.
func plain(r declaring, n *yaml.Node, what string) any {
	value, ok := r.p.text(n, what)
	if !ok {
		return nil
	}
	return value
}

// with reads a text that may have variables.
func with(as phraseKind) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		value, ok := r.p.text(n, what)
		at := position(resolve(n))
		if !ok || !r.p.variablesIn(value, what, at) || r.hasKey(value, what, n) {
			return nil
		}
		if (as == addressText || as == template) && hasPassword(value) {
			r.p.mistake(at, "%s has a password or a token in it; %s", what, useVariable)
			return nil
		}
		return phrase{text: value, what: what, at: at, as: as}
	}
}

// words are the pieces of a text.
var words = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// hasKey reports a key in a text.
func (r declaring) hasKey(value, what string, n *yaml.Node) bool {
	value = variables.ReplaceAllString(value, " ")
	found := slices.ContainsFunc(
		strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t\n=,;", c) }),
		looksLikeKey,
	)
	for _, word := range words.FindAllString(value, -1) {
		lower := strings.ToLower(word)
		found = found ||
			len(word) >= 16 &&
				slices.ContainsFunc(keyPrefixes(), func(prefix string) bool { return strings.HasPrefix(lower, prefix) })
	}
	if found {
		r.p.mistake(position(resolve(n)), "%s looks like a key; %s", what, useVariable)
	}
	return found
}

// secretText reads a text that is nothing but a secret.
func secretText(r declaring, n *yaml.Node, what string) any {
	value, ok := r.p.text(n, what)
	at := position(resolve(n))
	if !ok || !r.p.variablesIn(value, what, at) {
		return nil
	}
	if !variables.MatchString(value) {
		r.p.mistake(at, "%s must not be in this file; %s", what, useVariable)
		return nil
	}
	return phrase{text: value, what: what, at: at}
}

// headersAs reads headers. Those that are there for secrets must come from the environment.
func headersAs(as phraseKind) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		all := map[string]any{}
		texts, at := r.p.headers(n)
		for name, value := range texts {
			r.d.at[join(what, name)] = at[name]
			if slices.Contains([]string{"authorization", "proxy-authorization", "cookie"}, strings.ToLower(name)) &&
				!variables.MatchString(value) {
				r.p.mistake(at[name], "%s must not be in this file; %s", member(what, name), useVariable)
				continue
			}
			all[name] = phrase{text: value, what: member(what, name), at: at[name], as: as}
		}
		return all
	}
}

// environment reads the variables of a process.
func environment(r declaring, n *yaml.Node, what string) any {
	r.p.entries(n, what, func(name string, at place, _ *yaml.Node) {
		if !variableNames.MatchString(name) {
			r.p.mistake(at, "%s cannot be the name of an environment variable; use letters, digits and _", show(name))
		}
	})
	before := len(r.p.found)
	all := mapped(with(plainText))(r, n, what)
	if len(r.p.found) > before { // the first walk has found the same
		return nil
	}
	return all
}

func duration(r declaring, n *yaml.Node, what string) any { return int64(r.p.duration(n, what)) }
func size(r declaring, n *yaml.Node, what string) any     { return r.p.size(n, what) }
func count(r declaring, n *yaml.Node, what string) any    { return r.p.count(n, what) }
func yes(r declaring, n *yaml.Node, what string) any      { return r.p.yes(n, what) }
func anything(r declaring, n *yaml.Node, what string) any {
	return r.p.ordered(n, what)
}

// choice reads one of the known words.
func choice[T ~string](known ...T) reader {
	var names []string
	for _, k := range known {
		names = append(names, string(k))
	}
	return func(r declaring, n *yaml.Node, what string) any {
		var value string
		r.p.oneOf(&value, what, names...)(n)
		return value
	}
}

// effect reads the effect of a tool.
func effect() reader {
	return choice(holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce, holdfast.EffectQuery)
}

// doubt reads what is done with a call in doubt.
func doubt() reader { return choice(holdfast.DoubtTell, holdfast.DoubtAsk) }

// schemaHere reads a JSON Schema.
func schemaHere(r declaring, n *yaml.Node, what string) any {
	if resolve(n).Kind != yaml.MappingNode {
		r.p.wrongType(resolve(n), what, "a mapping (key: value)")
		return nil
	}
	return r.p.ordered(n, what)
}

// schemaIn reads a JSON Schema from a file of its own; key is where it belongs.
func schemaIn(key string, values map[string]any) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		_, data, ok := r.p.besideFile(n, what, MaxSize, "")
		at := position(resolve(n))
		switch {
		case !ok:
		case !json.Valid(data):
			r.p.mistake(at, "the file %s is not JSON", show(resolve(n).Value))
		default:
			values[key], r.d.at[key] = json.RawMessage(data), at
		}
		return nil
	}
}

// credential reads where the credential for a service is.
func credential(r declaring, n *yaml.Node, what string) any {
	c := &Credential{}
	before := len(r.p.found)
	note := func(key string, n *yaml.Node) string {
		r.d.at[join(what, key)] = position(resolve(n))
		return join(what, key)
	}
	at := r.p.object(n, what, fields{
		"env":    func(n *yaml.Node) { c.Env = r.variableName(n, note("env", n)) },
		"file":   func(n *yaml.Node) { c.File, _ = r.p.text(n, note("file", n)) },
		"header": func(n *yaml.Node) { c.Header = r.headerName(n, what+".header") },
		"prefix": func(n *yaml.Node) { c.Prefix, _ = r.p.text(n, what+".prefix") },
		"scopes": func(n *yaml.Node) {
			r.p.list(n, what+".scopes", func(n *yaml.Node) {
				scope, _ := r.p.text(n, what+".scopes")
				c.Scopes = append(c.Scopes, scope)
			})
		},
	})
	_, env := at["env"]
	_, file := at["file"]
	switch {
	case len(r.p.found) > before:
	case env == file:
		r.p.mistake(
			position(resolve(n)),
			"%s needs either env, the NAME of an environment variable, or file, the path of a file that "+
				"has only the credential",
			what,
		)
	default:
		if file {
			c.File = beside(r.p.file, c.File)
		}
		r.d.Credential = c
	}
	return nil
}

// variableName never shows the value, which may be a key.
func (r declaring) variableName(n *yaml.Node, what string) string {
	name, ok := r.p.text(n, what)
	if ok && (looksLikeKey(name) || !variableNames.MatchString(name)) {
		r.p.mistake(
			position(resolve(n)),
			"%s must be the NAME of an environment variable, like GITHUB_TOKEN, and not the credential itself",
			what,
		)
		return ""
	}
	return name
}

func (r declaring) headerName(n *yaml.Node, what string) string {
	name, ok := r.p.text(n, what)
	if ok && (looksLikeKey(name) || !headerNames.MatchString(name)) {
		r.p.mistake(position(resolve(n)), "%s must be the name of a header, like X-Api-Key", what)
	}
	return name
}

// statuses reads a list of numbers.
func statuses() reader { return each(count) }
