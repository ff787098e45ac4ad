package config

// The parser's basis: turns YAML into nodes, bounds what they can expand to, and reads
// mappings, lists and texts while it collects mistakes.

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxSize bounds the file, and each one that it names but OpenAPI documents, in bytes.
const MaxSize = 1 << 20

// maxDocument bounds an OpenAPI document, in bytes.
const maxDocument = 16 << 20

// Bounds on what one file may expand to. With aliases a few lines can stand for billions
// of values, and an anchor may even contain itself.
const (
	maxValues = 100_000
	maxDepth  = 50
)

// parser collects mistakes while it walks the file's nodes. Only the nodes come from the
// YAML library: its own decoder stops at the first mistake and has no suggestions.
type parser struct {
	mistakes
	readFile func(path string) ([]byte, error)
	schema   *shape
}

// def returns a definition of the schema.
func (p *parser) def(name string) *shape { return p.schema.Defs[name] }

// document returns the file's one value, or nil if there is nothing more to check.
func (p *parser) document(data []byte) *yaml.Node {
	start := place{1, 1}
	if len(data) > MaxSize {
		p.mistake(start, "the file is larger than 1 MiB; move long texts to files of their own and name "+
			"them with instructionsFile")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		p.mistake(start, "the file cannot be read as YAML: %v", err)
		return nil
	}
	var doc, next yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		p.mistake(start, "the file is empty; it needs agents, see holdfast.example.yaml")
		return nil
	case err != nil:
		p.syntax(data, err)
		return nil
	}
	switch err := loader.Load(&next); {
	case err == nil:
		p.mistake(position(&next), "a second document starts here; keep one, and remove the line ---")
	case !errors.Is(err, io.EOF):
		p.syntax(data, err)
		return nil
	}
	budget := maxValues
	if len(doc.Content) != 1 || !p.bounded(doc.Content[0], maxDepth, &budget) {
		return nil
	}
	return doc.Content[0]
}

// syntax reports that the file is not YAML.
func (p *parser) syntax(data []byte, err error) {
	var bad *yaml.LoadError
	if !errors.As(err, &bad) {
		p.mistake(place{1, 1}, "this is not YAML: %v", err)
		return
	}
	text := "this is not YAML: " + bad.Message
	if bad.ContextMsg != "" {
		text += " " + bad.ContextMsg
	}
	if i := bad.Mark.Index; bad.Mark.Line > 0 && i >= 0 && i < len(data) && data[i] == '\t' {
		text = "YAML cannot be indented with tabs; use spaces"
	}
	mark := bad.Mark
	if mark.Index >= len(data) && bad.ContextMark.Line > 0 {
		// Something is never closed: its start tells more than the end of the file.
		mark = bad.ContextMark
	}
	p.mistake(place{mark.Line, mark.Column}, "%s", text)
}

// bounded checks how much a value expands to when every alias is followed.
func (p *parser) bounded(n *yaml.Node, depth int, budget *int) bool {
	if n.Kind == yaml.AliasNode {
		return p.bounded(n.Alias, depth, budget)
	}
	// Long texts count for more, so that aliases cannot multiply them either.
	*budget -= 1 + len(n.Value)/100
	if depth == 0 || *budget < 0 {
		p.mistake(position(n), "this is nested more than %d levels deep or expands to more than %d values; "+
			"use fewer aliases (*name)", maxDepth, maxValues)
		return false
	}
	for _, c := range n.Content {
		if !p.bounded(c, depth-1, budget) {
			return false
		}
	}
	return true
}

func position(n *yaml.Node) place { return place{n.Line, n.Column} }

// resolve follows an alias to its anchor.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// fields maps each key of a mapping to what is done with its value.
type fields map[string]func(n *yaml.Node)

// object walks a mapping whose keys are known and returns their places.
func (p *parser) object(n *yaml.Node, what string, known fields) map[string]place {
	names := slices.Sorted(maps.Keys(known))
	at := map[string]place{}
	p.entries(n, what, func(key string, where place, value *yaml.Node) {
		read, ok := known[key]
		if !ok {
			p.mistake(where, "%s", unknownKey(key, names))
			return
		}
		at[key] = where
		read(value)
	})
	return at
}

// unknownKey has special messages for the two keys that many people will try.
func unknownKey(key string, known []string) string {
	switch {
	case key == "<<":
		return "merge keys (<<) are not supported; write the values out, or give the whole mapping an alias"
	case strings.EqualFold(strings.ReplaceAll(key, "_", ""), "apikey"):
		return "keys must not be in this file; use apiKeyEnv with the NAME of the environment " +
			"variable that holds the key"
	}
	return "unknown key " + show(key) + suggest(key, known)
}

// entries calls visit for each key of a mapping, the first time it appears.
func (p *parser) entries(n *yaml.Node, what string, visit func(key string, at place, value *yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		p.wrongType(n, what, "a mapping (key: value)")
		return
	}
	seen := map[string]place{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, at := resolve(n.Content[i]), position(n.Content[i])
		if key.Kind != yaml.ScalarNode || (key.ShortTag() != "!!str" && key.ShortTag() != "!!merge") {
			p.mistake(at, "a key must be text; put it in quotes")
			continue
		}
		if first, twice := seen[key.Value]; twice {
			p.mistake(at, "the key %s occurs twice; the first is on line %d", show(key.Value), first.line)
			continue
		}
		seen[key.Value] = at
		visit(key.Value, at, n.Content[i+1])
	}
}

// list calls visit for each element of a sequence.
func (p *parser) list(n *yaml.Node, what string, visit func(n *yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		p.wrongType(n, what, "a list (- item, or [item, item])")
		return
	}
	for _, c := range n.Content {
		visit(resolve(c))
	}
}

// text returns a value that must be text and not empty.
func (p *parser) text(n *yaml.Node, what string) (string, bool) {
	n = resolve(n)
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		p.wrongType(n, what, "text")
		return "", false
	case strings.TrimSpace(n.Value) == "":
		p.mistake(position(n), "%s is empty; give it a value or remove it", what)
		return "", false
	case strings.ContainsRune(n.Value, 0):
		p.mistake(position(n), "%s has a NUL character; remove it", what)
		return "", false
	}
	return n.Value, true
}

func (p *parser) wrongType(n *yaml.Node, what, want string) {
	is, hint := "text", ""
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.MappingNode:
		is = "a mapping (key: value)"
	case n.Kind == yaml.SequenceNode:
		is = "a list"
	case tag == "!!null":
		p.mistake(position(n), "%s is empty; give it a value or remove it", what)
		return
	case tag == "!!int" || tag == "!!float":
		is = "a number"
	case tag == "!!bool":
		is = "true or false"
	case tag == "!!timestamp":
		is = "a date"
	case tag != "!!str":
		is = "a value with the tag " + show(tag)
	}
	if want == "text" && n.Kind == yaml.ScalarNode && is != "text" && !strings.HasPrefix(is, "a value with") {
		hint = "; put it in quotes"
	}
	p.mistake(position(n), "%s must be %s, not %s%s", what, want, is, hint)
}

// member names a member in messages, unless that would be too long to read or would show
// a key.
func member(what, key string) string {
	if len(what)+len(key) > 80 || looksLikeKey(key) {
		return what
	}
	return what + "." + key
}
