package config

// Reading single values: words, numbers, durations and sizes, those of any type, and files
// that stand beside this one.

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// oneOf reads one of the known words; nil if it is another.
func (p *parser) oneOf(n *yaml.Node, what string, known []string) any {
	value, ok := p.text(n, what)
	if ok && !slices.Contains(known, value) {
		p.mistake(position(resolve(n)), "%s cannot be %s%s", what, show(value), suggest(value, known))
		ok = false
	}
	if !ok {
		return nil
	}
	return value
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
		p.mistake(position(resolve(n)),
			"%s cannot be %s; write a duration above 0 with its unit, like 30s, 2m or 1h30m", what, show(text))
		return 0
	}
	return d
}

// sizes are those that a value may have.
type sizes struct {
	units string // what the names of the units are made of
	most  int64
	hint  string
}

// smallSizes fit an int on every machine.
func smallSizes() sizes {
	return sizes{"KMGiB", 1 << 30, "write a size from 1B to 1GiB with its unit, like 256KiB or 1MiB"}
}

// largeSizes may be those of many threads.
func largeSizes() sizes {
	return sizes{"KMGTiB", math.MaxInt64 >> 10, "write a size with its unit, like 500MiB or 10GiB"}
}

func (p *parser) size(n *yaml.Node, what string, s sizes) int64 {
	text, ok := p.scalar(n, what, "a size")
	if !ok {
		return 0
	}
	digits := strings.TrimRight(text, s.units)
	unit, known := map[string]int64{
		"B":   1,
		"KB":  1e3,
		"MB":  1e6,
		"GB":  1e9,
		"TB":  1e12,
		"KiB": 1 << 10,
		"MiB": 1 << 20,
		"GiB": 1 << 30,
		"TiB": 1 << 40,
	}[text[len(digits):]]
	v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !known || err != nil || v < 1 || v > s.most/unit {
		p.mistake(position(resolve(n)), "%s cannot be %s; %s", what, show(text), s.hint)
		return 0
	}
	return v * unit
}

// free returns a value of any type that JSON has.
func (p *parser) free(n *yaml.Node, what string) any {
	n = resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		p.entries(n, what, func(key string, _ place, value *yaml.Node) { m[key] = p.free(value, member(what, key)) })
		return m
	case yaml.SequenceNode:
		list := []any{}
		p.list(n, what, func(n *yaml.Node) { list = append(list, p.free(n, what)) })
		return list
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			break
		}
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			break
		}
		if n.ShortTag() != "!!bool" && json.Valid([]byte(n.Value)) {
			return json.Number(n.Value) // money must not become a float
		}
		return v
	}
	p.mistake(position(n), "%s must be a value that JSON can express: text, a number, true, false, "+
		"null, a list or a mapping", what)
	return nil
}

// ordered returns a value as JSON whose members have the order of the file: models write
// their answers in the order of the schema.
func (p *parser) ordered(n *yaml.Node, what string) json.RawMessage {
	var b bytes.Buffer
	n = resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		p.entries(n, what, func(key string, _ place, value *yaml.Node) {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(text(key))
			b.WriteByte(':')
			b.Write(p.ordered(value, member(what, key)))
		})
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		p.list(n, what, func(value *yaml.Node) {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(p.ordered(value, what))
		})
		b.WriteByte(']')
	default:
		b.Write(text(p.free(n, what)))
	}
	return b.Bytes()
}

// text returns a scalar as JSON.
func text(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil { // p.free has found it to be one
		return []byte("null")
	}
	return raw
}

// besideFile reads a file that the value of what names, and returns its path. Mistakes add
// why a file that is larger than the limit is none to be used.
func (p *parser) besideFile(n *yaml.Node, what string, limit int, why string) (path string, data []byte, ok bool) {
	path, ok = p.text(n, what)
	if !ok {
		return "", nil, false
	}
	at, shown := position(resolve(n)), show(path)
	path = beside(p.file, path)
	data, err := p.readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.mistake(at, "there is no file %s; the path is relative to this file", shown)
	case err != nil:
		p.mistake(at, "%s cannot be read: %v", what, err)
	case len(data) > limit:
		p.mistake(at, "the file %s is larger than %d MiB%s", shown, limit>>20, why)
	default:
		return path, data, true
	}
	return "", nil, false
}
