package httptool

// Reading an OpenAPI document: JSON or YAML as one tree of plain values, in which every
// place has a name for errors. It is read here and not by a library, because of a document
// only a few operations are wanted: the ones for Go load all of it, with its faults, and
// bring two to four further modules.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	// maxDocument bounds a document, in bytes; maxValues bounds its values, so that aliases
	// in YAML cannot make a small document a large one; maxNesting bounds its depth.
	maxDocument = 16 << 20
	maxValues   = 1 << 20
	maxNesting  = 200
)

// place is a value of a document and where it is.
type place struct {
	doc   *document
	value any // map[string]any, []any, string, json.Number, bool or nil
	path  string
}

// document is a document as a whole.
type document struct {
	root   any
	values int
	// old: it is OpenAPI 3.0, whose schemas are not those of JSON Schema.
	old bool
}

// readDocument reads JSON or YAML.
func readDocument(text []byte) (*document, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("the document has %d bytes; at most %d are read", len(text), maxDocument)
	}
	d := &document{}
	if err := d.read(text); err != nil {
		return nil, fmt.Errorf("the document cannot be read: %w", err)
	}
	version, _ := d.at().get("openapi").value.(string)
	if n, ok := d.at().get("openapi").value.(json.Number); ok { // 3.1 without quotes
		version = n.String()
	}
	switch {
	case version == "3.0" || strings.HasPrefix(version, "3.0."):
		d.old = true
	case version == "3.1" || strings.HasPrefix(version, "3.1.") || version == "3.2" ||
		strings.HasPrefix(version, "3.2."):
	case d.at().get("swagger").value != nil:
		return nil, errors.New("the document is Swagger 2.0: convert it to OpenAPI 3")
	default:
		return nil, fmt.Errorf("openapi: %q is no version that is known: it must be 3.0 or 3.1", version)
	}
	return d, nil
}

func (d *document) read(text []byte) (err error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		decoder := json.NewDecoder(bytes.NewReader(trimmed))
		decoder.UseNumber()
		return decoder.Decode(&d.root)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return err
	}
	d.root, err = d.fromYAML(&n, 0)
	return err
}

// fromYAML returns what a node stands for.
func (d *document) fromYAML(n *yaml.Node, depth int) (any, error) {
	fail := func(what string) (any, error) {
		return nil, fmt.Errorf("line %d, column %d: %s", n.Line, n.Column, what)
	}
	if d.values++; d.values > maxValues || depth > maxNesting {
		return fail("it is too large or nested too deep")
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return d.fromYAML(n.Content[0], depth+1)
	case yaml.AliasNode:
		return d.fromYAML(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := d.fromYAML(c, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return nil, fmt.Errorf("line %d, column %d: keys must be plain names", key.Line, key.Column)
			}
			v, err := d.fromYAML(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			object[key.Value] = v
		}
		return object, nil
	case yaml.ScalarNode:
		return scalarOf(n), nil
	}
	return nil, nil // an empty document
}

// scalarOf returns a plain value; numbers as they are written, if JSON can write them so.
func scalarOf(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		var f float64
		if n.Decode(&f) == nil {
			if b, err := json.Marshal(f); err == nil { // not for .inf
				return json.Number(b)
			}
		}
	}
	return n.Value
}

// at returns the document's root.
func (d *document) at() place { return place{doc: d, value: d.root} }

// get returns a member; its value is nil if there is none.
func (p place) get(name string) place {
	object, _ := p.value.(map[string]any)
	return place{p.doc, object[name], p.path + separator(p.path) + name}
}

func separator(path string) string {
	if path == "" {
		return ""
	}
	return "."
}

// items returns the items of a list.
func (p place) items() []place {
	list, _ := p.value.([]any)
	all := make([]place, len(list))
	for i := range list {
		all[i] = place{p.doc, list[i], p.path + "[" + strconv.Itoa(i) + "]"}
	}
	return all
}

// object returns the value as an object; nil if it is none.
func (p place) object() map[string]any {
	object, _ := p.value.(map[string]any)
	return object
}

// text returns a text member; empty if there is none.
func (p place) text(name string) string {
	s, _ := p.get(name).value.(string)
	return s
}

// yes returns a member that is true or false.
func (p place) yes(name string) bool {
	b, _ := p.get(name).value.(bool)
	return b
}

// errorf returns an error that begins with the place.
func (p place) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", p.path, fmt.Errorf(format, args...))
}

// maxReferences is how many references may lead to each other.
const maxReferences = 32

// resolve follows references, which must stay in the document.
func (p place) resolve() (place, error) {
	from := p
	for range maxReferences {
		ref, ok := p.get("$ref").value.(string)
		if !ok {
			return p, nil
		}
		next, err := p.doc.find(ref)
		if err != nil {
			return p, p.errorf("%w", err)
		}
		p = next
	}
	return p, from.errorf("its $ref leads in a circle")
}

// find returns what a reference means.
func (d *document) find(ref string) (place, error) {
	pointer, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !local || err != nil || pointer != "" && pointer[0] != '/' {
		return place{}, fmt.Errorf("$ref %q: only references within the document are read, like "+
			"#/components/schemas/Order", ref)
	}
	p := d.at()
	if pointer == "" {
		return p, nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		next := place{doc: d}
		if list := p.items(); len(list) > 0 {
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list) {
				next = list[i]
			}
		} else {
			next = p.get(token)
		}
		if next.value == nil {
			return place{}, fmt.Errorf("$ref %q leads nowhere", ref)
		}
		p = next
	}
	return p, nil
}
