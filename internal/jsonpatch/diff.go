// Package jsonpatch makes JSON Patches (RFC 6902) and applies them, and merge patches (RFC 7396). The official
// clients of AG-UI apply its patches without a warning. It is a leaf.
package jsonpatch

import (
	"bytes"
	"errors"
)

// ErrNoPatch is for documents between which there is no patch that every reader understands: store the
// later one whole.
var ErrNoPatch = errors.New("no patch says this")

// None is the patch that changes nothing.
const None = "[]"

// Diff returns a patch that makes the document before into the one after; [None] if they are equal. The
// order of an object's members, and white space, mean nothing. Both must be JSON. The error is ErrNoPatch.
//
// The patch has the operations add, remove and replace. An object or array of which most has changed is
// replaced.
func Diff(before, after []byte) ([]byte, error) {
	a, err := read(before)
	if err != nil {
		return nil, errors.Join(ErrNoPatch, err)
	}
	b, err := read(after)
	if err != nil {
		return nil, errors.Join(ErrNoPatch, err)
	}
	d := differ{a: a, b: b, out: append(make([]byte, 0, 512), '[')}
	d.value(0, 0)
	if d.unsafe {
		return nil, ErrNoPatch
	}
	return append(d.out, ']'), nil
}

// differ compares two documents.
type differ struct {
	a, b   *tape
	out    []byte  // the operations
	path   []byte  // of the values that are compared, as it stands in the text of a patch
	order  []int32 // memory for sorting; it grows and shrinks with the depth
	unsafe bool    // a path has a name that stock clients refuse
}

// value compares two values.
func (d *differ) value(i, j int32) {
	a, b := &d.a.nodes[i], &d.b.nodes[j]
	if a.hash == b.hash && d.same(i, j) {
		return
	}
	if a.kind != b.kind || a.kind != '{' && a.kind != '[' {
		d.op("replace", j)
		return
	}
	mark, unsafe := len(d.out), d.unsafe
	if a.kind == '{' {
		d.object(i, j)
	} else {
		d.array(i, j)
	}
	if whole := len(`,{"op":"replace","path":"","value":}`) + len(d.path) +
		int(b.end-b.start); len(d.out)-mark > whole {
		d.out, d.unsafe = d.out[:mark], unsafe
		d.op("replace", j)
	}
}

// same reports whether two values of the same hash are equal.
func (d *differ) same(i, j int32) bool {
	if bytes.Equal(d.a.text(i), d.b.text(j)) {
		return true
	}
	a, b := &d.a.nodes[i], &d.b.nodes[j]
	if a.kind != b.kind || a.count != b.count {
		return false
	}
	switch a.kind {
	case '[':
		i, j := i+1, j+1
		for range a.count {
			if !d.same(i, j) {
				return false
			}
			i, j = d.a.nodes[i].next, d.b.nodes[j].next
		}
		return true
	case '{':
		from := len(d.order)
		d.order = d.b.appendSorted(d.a.appendSorted(d.order, i), j)
		defer func() { d.order = d.order[:from] }()
		for k := range int(a.count) {
			m, n := d.order[from+k], d.order[from+k+int(a.count)]
			if !bytes.Equal(d.a.name(&d.a.nodes[m]), d.b.name(&d.b.nodes[n])) || !d.same(m, n) {
				return false
			}
		}
		return true
	}
	return false
}

// object compares the members of two objects.
func (d *differ) object(i, j int32) {
	if d.aligned(i, j) {
		m, n := i+1, j+1
		for range d.a.nodes[i].count {
			d.member(m, n)
			m, n = d.a.nodes[m].next, d.b.nodes[n].next
		}
		return
	}
	from, between := len(d.order), len(d.order)+int(d.a.nodes[i].count)
	d.order = d.b.appendSorted(d.a.appendSorted(d.order, i), j)
	to := len(d.order)
	for k, l := from, between; k < between || l < to; {
		order := -1
		if k == between {
			order = 1
		} else if l < to {
			order = bytes.Compare(d.a.name(&d.a.nodes[d.order[k]]), d.b.name(&d.b.nodes[d.order[l]]))
		}
		switch {
		case order == 0:
			d.member(d.order[k], d.order[l])
			k, l = k+1, l+1
		case order < 0:
			back := d.into(d.a.name(&d.a.nodes[d.order[k]]))
			d.op("remove", -1)
			d.path = d.path[:back]
			k++
		default:
			back := d.into(d.b.name(&d.b.nodes[d.order[l]]))
			d.op("add", d.order[l])
			d.path = d.path[:back]
			l++
		}
	}
	d.order = d.order[:from]
}

// aligned reports whether two objects have the same members in the same order.
func (d *differ) aligned(i, j int32) bool {
	if d.a.nodes[i].count != d.b.nodes[j].count {
		return false
	}
	m, n := i+1, j+1
	for range d.a.nodes[i].count {
		if !bytes.Equal(d.a.name(&d.a.nodes[m]), d.b.name(&d.b.nodes[n])) {
			return false
		}
		m, n = d.a.nodes[m].next, d.b.nodes[n].next
	}
	return true
}

// member compares two members of one name.
func (d *differ) member(i, j int32) {
	if d.a.nodes[i].hash == d.b.nodes[j].hash && d.same(i, j) {
		return
	}
	back := d.into(d.b.name(&d.b.nodes[j]))
	d.value(i, j)
	d.path = d.path[:back]
}

// into adds a name to the path, and returns how long the path was.
func (d *differ) into(name []byte) (back int) {
	back = len(d.path)
	d.path = append(d.path, '/')
	for _, c := range name {
		switch c {
		case '~':
			d.path = append(d.path, "~0"...)
		case '/':
			d.path = append(d.path, "~1"...)
		default:
			d.path = appendByte(d.path, c)
		}
	}
	return back
}

// refused are the names that stock clients refuse in a path, because they are more than names in
// JavaScript.
var refused = [][]byte{[]byte("__proto__"), []byte("prototype"), []byte("constructor")}

// op adds an operation at the path, with the value of the later document.
func (d *differ) op(name string, value int32) {
	for _, r := range refused {
		d.unsafe = d.unsafe || bytes.Contains(d.path, r)
	}
	if len(d.out) > 1 {
		d.out = append(d.out, ',')
	}
	d.out = append(append(d.out, `{"op":"`...), name...)
	d.out = append(append(d.out, `","path":"`...), d.path...)
	if value >= 0 {
		d.out = append(append(d.out, `","value":`...), d.b.text(value)...)
		d.out = append(d.out, '}')
		return
	}
	d.out = append(d.out, `"}`...)
}

// appendByte appends a byte of a string's text, with an escape if JSON needs one.
func appendByte(to []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch {
	case c == '"' || c == '\\':
		return append(to, '\\', c)
	case c < 0x20:
		return append(to, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
	}
	return append(to, c)
}
