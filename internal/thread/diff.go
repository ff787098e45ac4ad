package thread

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one of an RFC 6902 patch.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// difference collects the operations that make one value of another.
type difference struct {
	operations []operation
	// refused means that clients do not apply it.
	refused bool
}

// patchOf returns the patch that makes after of before, both JSON objects; nil if clients would
// not apply it.
func patchOf(before, after json.RawMessage) json.RawMessage {
	a, err := decodedJSON(before)
	b, otherErr := decodedJSON(after)
	if err != nil || otherErr != nil {
		return nil
	}
	d := difference{operations: []operation{}}
	d.values("", a, b)
	if d.refused {
		return nil
	}
	return MustJSON(d.operations)
}

// sameJSON reports whether both texts say the same; numbers are compared as they are written.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := decodedJSON(a)
	y, otherErr := decodedJSON(b)
	return err == nil && otherErr == nil && reflect.DeepEqual(x, y)
}

func decodedJSON(data json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func (d *difference) values(at string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		if b, is := b.(map[string]any); is {
			d.objects(at, a, b)
			return
		}
	case []any:
		if b, is := b.([]any); is {
			d.lists(at, a, b)
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		d.add("replace", at, b)
	}
}

func (d *difference) objects(at string, a, b map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if _, stays := b[name]; !stays {
			d.add("remove", d.member(at, name), nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if was, there := a[name]; there {
			d.values(d.member(at, name), was, b[name])
		} else {
			d.add("add", d.member(at, name), b[name])
		}
	}
}

// lists leaves alone what both begin and end with. Of the rest, elements are changed in place
// as far as both go, and then removed or added.
func (d *difference) lists(at string, a, b []any) {
	from := 0
	for from < min(len(a), len(b)) && reflect.DeepEqual(a[from], b[from]) {
		from++
	}
	a, b = a[from:], b[from:]
	for len(a) > 0 && len(b) > 0 && reflect.DeepEqual(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	both := min(len(a), len(b))
	place := func(i int) string { return at + "/" + strconv.Itoa(from+i) }
	for i := range both {
		d.values(place(i), a[i], b[i])
	}
	for range a[both:] {
		d.add("remove", place(both), nil)
	}
	for i := range b[both:] {
		d.add("add", place(both+i), b[both+i])
	}
}

// add adds an operation; value is nil for the JSON null, too, and for one that takes none.
func (d *difference) add(op, at string, value any) {
	o := operation{Op: op, Path: at}
	if op != "remove" {
		o.Value = MustJSON(value)
	}
	d.operations = append(d.operations, o)
}

// escapePointer is for the names of members in a JSON Pointer.
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// member returns the pointer to a member. Clients in JavaScript refuse the names through which
// a patch could change the prototype of objects.
func (d *difference) member(at, name string) string {
	d.refused = d.refused || name == "__proto__" || name == "constructor" || name == "prototype"
	return at + "/" + escapePointer.Replace(name)
}
