package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// problem is one thing that is wrong, and where: a JSON pointer, empty for the whole
// value.
type problem struct {
	path string
	text string
}

// decode reads JSON text and keeps numbers as they are written. The problems that it
// returns are those that a decoded value no longer shows.
func decode(raw []byte) (any, []problem) {
	// This checks the whole syntax and bounds the depth.
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return nil, []problem{{text: notJSON(raw, err)}}
	}
	d := decoder{tokens: json.NewDecoder(bytes.NewReader(raw))}
	d.tokens.UseNumber()
	v := d.value()
	return v, d.problems
}

func notJSON(raw []byte, err error) string {
	if len(bytes.TrimSpace(raw)) == 0 {
		return "it is empty; it must be JSON"
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return "it is not JSON: " + err.Error()
	}
	if syntax.Offset >= int64(len(raw)) {
		return "it is not complete JSON: " + syntax.Error()
	}
	return fmt.Sprintf("it is not JSON: %s (byte %d)", syntax.Error(), syntax.Offset)
}

type decoder struct {
	tokens   *json.Decoder
	path     []string
	problems []problem
}

func (d *decoder) report(text string) {
	if len(d.problems) > maxProblems {
		return
	}
	d.problems = append(d.problems, problem{pointer(d.path), text})
}

// next returns the next token. The text has been checked, so there is one.
func (d *decoder) next() json.Token {
	t, err := d.tokens.Token()
	if err != nil {
		return nil
	}
	return t
}

func (d *decoder) value() any {
	switch t := d.next().(type) {
	case json.Delim:
		if t == '{' {
			return d.object()
		}
		return d.array()
	case json.Number:
		if outOfRange(string(t)) {
			d.report("the number is out of range")
		}
		return t
	default:
		return t
	}
}

func (d *decoder) object() any {
	object := map[string]any{}
	for d.tokens.More() {
		name, _ := d.next().(string)
		if _, twice := object[name]; twice {
			d.report(quote(name) + " is given twice")
		}
		object[name] = d.member(name)
	}
	d.next()
	return object
}

func (d *decoder) array() any {
	array := []any{}
	for d.tokens.More() {
		array = append(array, d.member(strconv.Itoa(len(array))))
	}
	d.next()
	return array
}

func (d *decoder) member(name string) any {
	d.path = append(d.path, name)
	v := d.value()
	d.path = d.path[:len(d.path)-1]
	return v
}

// outOfRange reports whether a number is beyond the range of a float64. The validator
// computes exactly, so 1e999999999 would take it minutes.
func outOfRange(number string) bool {
	const digits, exponent = 400, 400
	if len(number) > digits {
		return true
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return false
	}
	e, err := strconv.Atoi(number[i+1:])
	return err != nil || e > exponent || e < -exponent
}

// escape returns a member's name as a part of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
