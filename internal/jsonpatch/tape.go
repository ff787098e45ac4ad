package jsonpatch

import (
	"bytes"
	"errors"
	"hash/maphash"
	"slices"
	"unicode/utf8"
)

// Two documents are compared as tapes: the values of each in the order of its text, in one slice, so that
// a large document costs a few allocations.

// tape is a document that was read.
type tape struct {
	src   []byte
	nodes []node
	// plain has the names that are written with escapes, without them.
	plain []byte
	// order is memory for sorting the members of an object.
	order []int32
}

// node is a value.
type node struct {
	kind       byte  // '{', '[', '"', or 0 for anything else
	start, end int32 // its text in src
	// name is where the name of a member begins: in src, or in plain if escaped is set.
	name, nameEnd int32
	escaped       bool
	next          int32 // the node after this one and everything in it
	count         int32 // of members or items
	hash          uint64
}

// The hashes only sort out what is different.
var seed = maphash.MakeSeed()

// mixing are odd numbers with which hashes are mixed.
const (
	mixObject = 0x9E3779B97F4A7C15
	mixArray  = 0xC2B2AE3D27D4EB4F
	mixMember = 0xFF51AFD7ED558CCD
)

// maxDepth bounds how deep a document may be, as that of encoding/json.
const maxDepth = 10_000

// errDuplicate is for a document with an object that has two members of one name, which readers
// understand in different ways.
var errDuplicate = errors.New("an object has two members of the same name")

// errText is for a text that is no JSON.
var errText = errors.New("it is not JSON")

// read reads a document. Its text must be JSON.
func read(src []byte) (*tape, error) {
	t := &tape{src: src, nodes: make([]node, 0, len(src)/12+1)}
	end, err := t.value(skipSpace(src, 0), 0)
	if err != nil {
		return nil, err
	}
	if skipSpace(src, end) != len(src) {
		return nil, errText
	}
	return t, nil
}

// value reads the value that begins there, and returns where it ends.
func (t *tape) value(at, depth int) (int, error) {
	if at >= len(t.src) || depth > maxDepth {
		return 0, errText
	}
	i := len(t.nodes)
	t.nodes = append(t.nodes, node{start: int32(at)})
	var end int
	var err error
	switch t.src[at] {
	case '{':
		end, err = t.object(i, at, depth)
	case '[':
		end, err = t.array(i, at, depth)
	case '"':
		t.nodes[i].kind = '"'
		end, _ = endOfString(t.src, at)
		t.nodes[i].hash = maphash.Bytes(seed, t.src[at:max(at, end)])
	default:
		end = endOfScalar(t.src, at)
		t.nodes[i].hash = maphash.Bytes(seed, t.src[at:end])
	}
	if err == nil && end <= at {
		err = errText
	}
	t.nodes[i].end, t.nodes[i].next = int32(end), int32(len(t.nodes))
	return end, err
}

// object reads the members of an object.
func (t *tape) object(i, at, depth int) (int, error) {
	t.nodes[i].kind = '{'
	hash, count := uint64(mixObject), int32(0)
	if at = skipSpace(t.src, at+1); at < len(t.src) && t.src[at] == '}' {
		t.nodes[i].hash = hash
		return at + 1, nil
	}
	for {
		if at >= len(t.src) || t.src[at] != '"' {
			return 0, errText
		}
		end, escaped := endOfString(t.src, at)
		if end == 0 {
			return 0, errText
		}
		from, to := int32(at+1), int32(end-1)
		if escaped {
			from = int32(len(t.plain))
			var ok bool
			if t.plain, ok = appendPlain(t.plain, t.src[at+1:end-1]); !ok {
				return 0, errName
			}
			to = int32(len(t.plain))
		}
		if at = skipSpace(t.src, end); at >= len(t.src) || t.src[at] != ':' {
			return 0, errText
		}
		member := len(t.nodes)
		var err error
		if at, err = t.value(skipSpace(t.src, at+1), depth+1); err != nil {
			return 0, err
		}
		n := &t.nodes[member]
		n.name, n.nameEnd, n.escaped = from, to, escaped
		// Members have no order, so their sum is that of the object.
		hash += (maphash.Bytes(seed, t.name(n)) ^ n.hash*mixMember) * mixMember
		count++
		at = skipSpace(t.src, at)
		if at >= len(t.src) || t.src[at] != ',' && t.src[at] != '}' {
			return 0, errText
		}
		if t.src[at] == '}' {
			break
		}
		at = skipSpace(t.src, at+1)
	}
	t.nodes[i].hash, t.nodes[i].count = hash, count
	if t.doubled(int32(i)) {
		return 0, errDuplicate
	}
	return at + 1, nil
}

// array reads the items of an array.
func (t *tape) array(i, at, depth int) (int, error) {
	t.nodes[i].kind = '['
	hash, count := uint64(mixArray), int32(0)
	if at = skipSpace(t.src, at+1); at < len(t.src) && t.src[at] == ']' {
		t.nodes[i].hash = hash
		return at + 1, nil
	}
	for {
		item := len(t.nodes)
		var err error
		if at, err = t.value(at, depth+1); err != nil {
			return 0, err
		}
		hash = (hash ^ t.nodes[item].hash) * mixArray
		count++
		at = skipSpace(t.src, at)
		if at >= len(t.src) || t.src[at] != ',' && t.src[at] != ']' {
			return 0, errText
		}
		if t.src[at] == ']' {
			break
		}
		at = skipSpace(t.src, at+1)
	}
	t.nodes[i].hash, t.nodes[i].count = hash, count
	return at + 1, nil
}

// name returns the name of a member, without escapes.
func (t *tape) name(n *node) []byte {
	if n.escaped {
		return t.plain[n.name:n.nameEnd]
	}
	return t.src[n.name:n.nameEnd]
}

// text returns the text of a value.
func (t *tape) text(i int32) []byte { return t.src[t.nodes[i].start:t.nodes[i].end] }

// few is how many members are compared each with each.
const few = 8

// doubled reports whether two members of an object have the same name.
func (t *tape) doubled(i int32) bool {
	n := t.nodes[i].count
	if n <= few {
		for a, k := i+1, int32(0); k < n; a, k = t.nodes[a].next, k+1 {
			for b, l := t.nodes[a].next, k+1; l < n; b, l = t.nodes[b].next, l+1 {
				if bytes.Equal(t.name(&t.nodes[a]), t.name(&t.nodes[b])) {
					return true
				}
			}
		}
		return false
	}
	sorted := t.sorted(i)
	for k := 1; k < len(sorted); k++ {
		if bytes.Equal(t.name(&t.nodes[sorted[k-1]]), t.name(&t.nodes[sorted[k]])) {
			return true
		}
	}
	return false
}

// sorted returns the members of an object by name, in memory that the next call uses again.
func (t *tape) sorted(i int32) []int32 {
	t.order = t.appendSorted(t.order[:0], i)
	return t.order
}

// appendSorted appends the members of an object by name.
func (t *tape) appendSorted(to []int32, i int32) []int32 {
	from := len(to)
	for m, k := i+1, int32(0); k < t.nodes[i].count; m, k = t.nodes[m].next, k+1 {
		to = append(to, m)
	}
	slices.SortFunc(to[from:], func(a, b int32) int {
		return bytes.Compare(t.name(&t.nodes[a]), t.name(&t.nodes[b]))
	})
	return to
}

// skipSpace returns where the next character that is no white space is.
func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t') {
		at++
	}
	return at
}

// endOfString returns where the string that begins there ends, and whether it has escapes; 0 if it has no
// end.
func endOfString(b []byte, at int) (end int, escaped bool) {
	for i := at + 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
	}
	return 0, escaped
}

// endOfScalar returns where a number, true, false or null ends.
func endOfScalar(b []byte, at int) int {
	for at < len(b) {
		switch b[at] {
		case ',', ']', '}', ' ', '\n', '\r', '\t', ':', '"', '{', '[':
			return at
		}
		at++
	}
	return at
}

// errName is for a name that not all readers of JSON understand.
var errName = errors.New("a name has half of a surrogate pair")

// appendPlain appends a string, which is written with escapes, without them; false if it has half of a
// surrogate pair.
func appendPlain(to, text []byte) ([]byte, bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 >= len(text) {
			to = append(to, text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'n':
			to = append(to, '\n')
		case 'r':
			to = append(to, '\r')
		case 't':
			to = append(to, '\t')
		case 'u':
			r, size := unescaped(text[i-1:])
			if size == 0 {
				return to, false
			}
			to = utf8.AppendRune(to, r)
			i += size - 2
		default:
			to = append(to, c)
		}
	}
	return to, true
}

// unescaped returns the character of the \u escape that a text begins with, and how long that is; 0 if it
// is half of a pair.
func unescaped(text []byte) (rune, int) {
	first, ok := hex(text)
	if !ok {
		return 0, 0
	}
	if first < 0xD800 || first > 0xDFFF {
		return first, 6
	}
	if first > 0xDBFF || len(text) < 12 {
		return 0, 0
	}
	second, ok := hex(text[6:])
	if !ok || second < 0xDC00 || second > 0xDFFF {
		return 0, 0
	}
	return 0x10000 + (first-0xD800)<<10 + second - 0xDC00, 12
}

// hex returns the number of a \u escape.
func hex(text []byte) (n rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
