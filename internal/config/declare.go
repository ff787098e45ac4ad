package config

// Reading single values of a declaration: texts with variables, secrets, headers, schemas. A
// reader's result goes into the declaration under the key of the value.

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

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
	found := slices.ContainsFunc(strings.FieldsFunc(value, func(c rune) bool {
		return strings.ContainsRune(" \t\n=,;", c)
	}), looksLikeKey)
	for _, word := range words.FindAllString(value, -1) {
		lower := strings.ToLower(word)
		found = found || len(word) >= 16 &&
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

func duration(r declaring, n *yaml.Node, what string) any  { return int64(r.p.duration(n, what)) }
func size(r declaring, n *yaml.Node, what string) any      { return r.p.size(n, what, smallSizes()) }
func largeSize(r declaring, n *yaml.Node, what string) any { return r.p.size(n, what, largeSizes()) }
func count(r declaring, n *yaml.Node, what string) any     { return r.p.count(n, what) }
func anything(r declaring, n *yaml.Node, what string) any  { return r.p.ordered(n, what) }

// schemaHere reads a JSON Schema.
func schemaHere(r declaring, n *yaml.Node, what string) any {
	if resolve(n).Kind != yaml.MappingNode {
		r.p.wrongType(resolve(n), what, "a mapping (key: value)")
		return nil
	}
	return r.p.ordered(n, what)
}

// schemaIn reads a JSON Schema from a file of its own; key is where it belongs.
func schemaIn(key string) reader {
	return func(r declaring, n *yaml.Node, what string) any {
		_, data, ok := r.p.besideFile(n, what, MaxSize, "")
		at := position(resolve(n))
		switch {
		case !ok:
		case !json.Valid(data):
			r.p.mistake(at, "the file %s is not JSON", show(resolve(n).Value))
		default:
			r.d.values[key], r.d.at[key] = json.RawMessage(data), at
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
		r.p.mistake(position(resolve(n)),
			"%s needs either env, the NAME of an environment variable, or file, the path of a file that "+
				"has only the credential", what)
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
		r.p.mistake(position(resolve(n)),
			"%s must be the NAME of an environment variable, like GITHUB_TOKEN, and not the credential itself", what)
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

// command reads a program, or a program and its arguments.
func command(r declaring, n *yaml.Node, what string) any {
	if resolve(n).Kind == yaml.SequenceNode {
		return each(with(plainText))(r, n, what)
	}
	program := with(plainText)(r, n, what)
	if program == nil {
		return nil
	}
	return []any{program}
}

// pointer reads a JSON pointer, of which the empty one means all.
func pointer(r declaring, n *yaml.Node, what string) any {
	if n = resolve(n); n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == "" {
		return ""
	}
	return plain(r, n, what)
}

// operationName reads an operation of which only the name is there.
func operationName(r declaring, n *yaml.Node, what string) any {
	return map[string]any{"operation": plain(r, n, what)}
}

// document reads an OpenAPI document.
func document(r declaring, n *yaml.Node, what string) any {
	_, r.d.Document, _ = r.p.besideFile(n, what, maxDocument, "")
	return nil
}

var toolNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// toolName reads the name of a tool, or a part of it.
func toolName(r declaring, n *yaml.Node, what string) any {
	name, ok := r.p.text(n, what)
	if ok && !toolNames.MatchString(name) {
		r.p.mistake(position(resolve(n)),
			"%s %s cannot be in the name of a tool; use 1 to 64 letters, digits, _ and -", what, show(name))
		ok = false
	}
	if !ok {
		return nil
	}
	return name
}

// apiKeyEnv never shows the value, which may be the key itself.
func (r declaring) apiKeyEnv(n *yaml.Node, what string) any {
	name, ok := r.p.text(n, what)
	if !ok {
		return nil
	}
	at := position(resolve(n))
	switch {
	case looksLikeKey(name):
		r.p.mistake(at, "apiKeyEnv looks like the key itself; write the NAME of an environment variable, like "+
			"OPENAI_API_KEY, and replace that key, because it is no longer secret")
	case !variableNames.MatchString(name):
		r.p.mistake(at, "apiKeyEnv must be the NAME of an environment variable, like "+
			"OPENAI_API_KEY: letters, digits and _")
	default:
		return name
	}
	return nil
}

// params reads what is passed to the model.
func params(r declaring, n *yaml.Node, what string) any {
	if resolve(n).Kind != yaml.MappingNode {
		r.p.wrongType(resolve(n), what, "a mapping (key: value)")
		return nil
	}
	return r.p.free(n, what)
}
