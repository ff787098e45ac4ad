package jsonpatch

// Applying patches: the operations of RFC 6902, and merge patches. The document that they change is in value.go.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Apply returns a document after patches, which are applied in their order. The parts that they do not touch
// are written as they were. Applying patches together gives the same text as applying them one after the other.
// If an operation cannot be applied, nothing is.
func Apply(doc []byte, patches ...[]byte) ([]byte, error) {
	left := math.MaxInt
	return apply(doc, patches, &left)
}

const (
	// maxOperations bounds the operations of a patch that somebody else has written: each may have to
	// look through the whole document.
	maxOperations = 1000
	// maxCopied bounds what these copy and compare, in bytes: a copy of what was copied doubles it. It also
	// bounds the documents that they make larger.
	maxCopied = 8 << 20
	// maxNested bounds how deep the documents are that they make deeper.
	maxNested = 1000
)

// Change is [Apply] for a patch that somebody else has written. It may have 1,000 operations, which copy
// and compare at most 8 MiB of the document, and make it at most that large, and 1,000 levels deep.
func Change(doc, patch []byte) ([]byte, error) {
	if err := Check(patch); err != nil {
		return nil, err
	}
	left := maxCopied
	changed, err := apply(doc, [][]byte{patch}, &left)
	switch {
	case err != nil:
		return nil, err
	case len(changed) > max(len(doc), maxCopied):
		return nil, errLarge
	case depthOf(changed) > max(depthOf(doc), maxNested):
		return nil, errDeep
	}
	return changed, nil
}

// depthOf returns how many values are inside of each other in a document.
func depthOf(doc []byte) (most int) {
	depth := 0
	for at := 0; at < len(doc); at++ {
		switch doc[at] {
		case '"':
			if end, _ := endOfString(doc, at); end > 0 {
				at = end - 1
			}
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}

// apply is Apply, as long as there is something left of the bytes that may be copied and compared.
func apply(doc []byte, patches [][]byte, left *int) ([]byte, error) {
	root := &value{raw: bytes.TrimSpace(doc)}
	for _, patch := range patches {
		operations, err := operationsOf(patch)
		if err != nil {
			return nil, err
		}
		for i := range operations {
			if err := operations[i].apply(&root, left); err != nil {
				return nil, fmt.Errorf("operation %d (%s %s): %w", i, operations[i].Op, *operations[i].Path, err)
			}
		}
	}
	return root.append(make([]byte, 0, len(doc)+len(doc)/8)), nil
}

// Merge returns a document after a merge patch (RFC 7396): members are replaced, and null removes one. The
// members keep their order, and many take time in proportion; evanphx/json-patch does neither.
func Merge(doc, patch []byte) ([]byte, error) {
	root, with := &value{raw: bytes.TrimSpace(doc)}, &value{raw: bytes.TrimSpace(patch)}
	merged, err := root.merged(with)
	if err != nil {
		return nil, err
	}
	return merged.append(make([]byte, 0, len(doc)+len(patch))), nil
}

// operation is one of a patch.
type operation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`
	path  []string
}

// operationsOf reads a patch.
func operationsOf(patch []byte) ([]operation, error) {
	var list []operation
	if err := json.Unmarshal(patch, &list); err != nil {
		return nil, fmt.Errorf("a patch is a list of operations: %w", err)
	}
	for i := range list {
		o := &list[i]
		if o.Path == nil {
			return nil, fmt.Errorf("operation %d has no path", i)
		}
		var err error
		if o.path, err = Pointer(*o.Path); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
		switch o.Op {
		case "add", "replace", "test":
			if o.Value == nil {
				return nil, fmt.Errorf("operation %d (%s %s) has no value", i, o.Op, *o.Path)
			}
		case "move", "copy":
			if o.From == nil {
				return nil, fmt.Errorf("operation %d (%s %s) has no from", i, o.Op, *o.Path)
			}
		case "remove":
		default:
			return nil, fmt.Errorf("operation %d has the unknown op %q", i, o.Op)
		}
	}
	return list, nil
}

// Check returns what is wrong with the form of a patch that somebody else has written.
func Check(patch []byte) error {
	operations, err := operationsOf(patch)
	if err == nil && len(operations) > maxOperations {
		err = fmt.Errorf("it has %d operations, and may have %d", len(operations), maxOperations)
	}
	return err
}

// Pointer returns the names of a JSON Pointer (RFC 6901).
func Pointer(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("%q is no JSON Pointer: it does not begin with /", text)
	}
	names := strings.Split(text[1:], "/")
	for i, name := range names {
		if !strings.Contains(name, "~") {
			continue
		}
		for at := range len(name) {
			if name[at] == '~' && (at+1 == len(name) || name[at+1] != '0' && name[at+1] != '1') {
				return nil, fmt.Errorf("%q is no JSON Pointer: ~ stands for itself only as ~0", text)
			}
		}
		names[i] = unescapedNames.Replace(name)
	}
	return names, nil
}

var unescapedNames = strings.NewReplacer("~1", "/", "~0", "~")

// The reasons for which an operation cannot be applied.
var (
	errMissing = errors.New("there is nothing at this place")
	errIndex   = errors.New("the array has no such place")
	errScalar  = errors.New("the value on the way there has no members")
	errDiffers = errors.New("the value there is another one")
	errInside  = errors.New("a value cannot be moved into itself")
	errCopied  = errors.New("the operations copy and compare more than 8 MiB")
	errLarge   = errors.New("the document would have more than 8 MiB")
	errDeep    = errors.New("the document would be more than 1,000 levels deep")
)

// copyOf returns the text of the value at a path, which counts as copied.
func copyOf(root *value, path []string, left *int) ([]byte, error) {
	there, err := find(root, path)
	if err != nil {
		return nil, err
	}
	text := there.append(nil)
	if *left -= len(text); *left < 0 {
		return nil, errCopied
	}
	return text, nil
}

// apply changes the document.
func (o *operation) apply(root **value, left *int) error {
	switch o.Op {
	case "add":
		return add(root, o.path, &value{raw: o.Value})
	case "remove":
		_, err := remove(root, o.path)
		return err
	case "replace":
		there, err := find(*root, o.path)
		if err == nil {
			*there = value{raw: o.Value}
		}
		return err
	case "test":
		there, err := copyOf(*root, o.path, left)
		if err == nil && !Alike(there, o.Value) {
			err = errDiffers
		}
		return err
	}
	from, err := Pointer(*o.From)
	if err != nil {
		return err
	}
	if o.Op == "copy" {
		there, err := copyOf(*root, from, left)
		if err != nil {
			return err
		}
		return add(root, o.path, &value{raw: there})
	}
	if len(from) < len(o.path) && slices.Equal(from, o.path[:len(from)]) {
		return errInside
	}
	if slices.Equal(from, o.path) {
		_, err := find(*root, from)
		return err
	}
	moved, err := remove(root, from)
	if err != nil {
		return err
	}
	return add(root, o.path, moved)
}

// merged returns the value after a merge patch.
func (v *value) merged(patch *value) (*value, error) {
	if err := patch.open(); err != nil {
		return nil, err
	}
	if patch.kind != '{' {
		return patch, nil
	}
	if err := v.open(); err != nil {
		return nil, err
	}
	if v.kind != '{' {
		v = &value{kind: '{'}
	}
	at := make(map[string]int, len(v.members))
	for i := range v.members {
		at[v.members[i].name] = i
	}
	for _, m := range patch.members {
		i, there := at[m.name]
		switch {
		case string(m.value.raw) == "null":
			if there {
				v.members[i].value = nil
			}
			continue
		case !there:
			i = len(v.members)
			v.members = append(v.members, member{m.name, m.text, &value{raw: []byte("null")}})
		}
		inner, err := v.members[i].value.merged(m.value)
		if err != nil {
			return nil, err
		}
		v.members[i].value = inner
	}
	v.members = slices.DeleteFunc(v.members, func(m member) bool { return m.value == nil })
	return v, nil
}

// Clean returns a document as every reader understands it: of two members of one name the last one, at
// the place of the first, and no bytes that are no UTF-8. Most are clean, and returned as they are.
func Clean(doc []byte) ([]byte, error) {
	if !utf8.Valid(doc) {
		doc = bytes.ToValidUTF8(doc, []byte("\uFFFD"))
	}
	if _, err := read(doc); err == nil || !errors.Is(err, errDuplicate) {
		return doc, nil
	}
	root := &value{raw: bytes.TrimSpace(doc)}
	if err := root.openAll(0); err != nil {
		return nil, err
	}
	return root.append(make([]byte, 0, len(doc))), nil
}

// openAll takes a value apart, and all that is in it.
func (v *value) openAll(depth int) error {
	if depth > maxDepth {
		return errText
	}
	if err := v.open(); err != nil {
		return err
	}
	for i := range v.members {
		if err := v.members[i].value.openAll(depth + 1); err != nil {
			return err
		}
	}
	for _, item := range v.items {
		if err := item.openAll(depth + 1); err != nil {
			return err
		}
	}
	return nil
}
