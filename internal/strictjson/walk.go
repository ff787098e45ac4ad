package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
)

// The pass over a body: lists and objects, the names in them, and where errors are. The forms
// of strings and numbers are in tokens.go.

// walk is a pass over a body.
type walk struct {
	body []byte
	at   int
	// path leads to the value at hand.
	path []step
	// names are the names of the objects that are open, the innermost last.
	names []span
	// decoded holds names that were written with escapes, without them.
	decoded []byte
	counts  Counts
	seed    maphash.Seed
}

// step leads from an object to a member, or from a list to an element.
type step struct {
	name  span
	index int // of the element; -1 for a member
}

// span is a part of the body or, past its end, of walk.decoded.
type span struct{ from, to uint32 }

func (w *walk) text(s span) []byte {
	if n := uint32(len(w.body)); s.from >= n {
		return w.decoded[s.from-n : s.to-n]
	}
	return w.body[s.from:s.to]
}

// value passes one value.
func (w *walk) value(s *Shape) *Error {
	if s == nil {
		s = anything
	}
	c := w.space()
	if s.Kind != Any && c != 'n' && kindOf(c) != s.Kind {
		if found(c) == "" {
			return notJSON
		}
		place := w.place()
		return w.refuse(fmt.Sprintf("%s has the wrong type: found %s, wanted %s.", place, found(c), wanted[s.Kind]),
			"Correct this member and send the request again.")
	}
	switch c {
	case '{':
		return w.object(s)
	case '[':
		return w.list(s)
	case '"':
		_, err := w.quoted()
		return err
	}
	return w.scalar(c)
}

// enter passes the bracket that opens a list or an object.
func (w *walk) enter() *Error {
	if len(w.path) >= MaxDepth { // one step for each list or object around this one
		return tooDeep
	}
	w.at++
	return nil
}

// next passes the comma before another element or member, or the bracket that closes the
// list or object.
func (w *walk) next(closing byte) (end bool, err *Error) {
	c := w.space()
	if c != ',' && c != closing {
		return false, notJSON
	}
	w.at++
	return c == closing, nil
}

func (w *walk) list(s *Shape) *Error {
	if err := w.enter(); err != nil {
		return err
	}
	if w.space() == ']' {
		w.at++
		return nil
	}
	w.path = append(w.path, step{})
	here := len(w.path) - 1
	for n := 0; ; n++ {
		if err := w.count(s, n, here); err != nil {
			return err
		}
		w.path[here] = step{index: n}
		if err := w.value(s.Elements); err != nil {
			return err
		}
		end, err := w.next(']')
		if err != nil {
			return err
		}
		if end {
			w.path = w.path[:here]
			return nil
		}
	}
}

// count counts an element, and refuses one that is too many. It comes after n others of a
// list at place here of the path.
func (w *walk) count(s *Shape, n, here int) *Error {
	if s.Most == 0 && s.Total == 0 {
		return nil
	}
	if w.counts == nil {
		w.counts = Counts{}
	}
	all := w.counts[s] + 1
	w.counts[s] = all
	one := s.Most > 0 && n >= s.Most
	if !one && (s.Total == 0 || all <= s.Total) {
		return nil
	}
	w.path = w.path[:here]
	message := fmt.Sprintf("%s holds more than %d %s.", w.place(), s.Most, s.Noun)
	if !one {
		message = fmt.Sprintf("With %s, the request holds more than %d %s.", w.place(), s.Total, s.Noun)
	}
	return w.refuse(message, "Send fewer. The server keeps the history of a thread, so only "+
		"what is new has to be sent.")
}

func (w *walk) object(s *Shape) *Error {
	if err := w.enter(); err != nil {
		return err
	}
	if w.space() == '}' {
		w.at++
		return nil
	}
	w.path = append(w.path, step{})
	first, here := len(w.names), len(w.path)-1
	for {
		if err := w.member(s, first, here); err != nil {
			return err
		}
		end, err := w.next('}')
		if err != nil {
			return err
		}
		if end {
			break
		}
	}
	if err := w.unique(first, here); err != nil {
		return err
	}
	w.names, w.path = w.names[:first], w.path[:here]
	return nil
}

// member passes a member of an object whose names start at first, and which is at place
// here of the path.
func (w *walk) member(s *Shape, first, here int) *Error {
	name, err := w.name()
	if err != nil {
		return err
	}
	w.path[here] = step{name: name, index: -1}
	of, err := w.known(s, name, first)
	if err != nil {
		return err
	}
	if w.space() != ':' {
		return notJSON
	}
	w.at++
	return w.value(of)
}

// name passes the name of a member, and adds it to names.
func (w *walk) name() (span, *Error) {
	if w.space() != '"' {
		return span{}, notJSON
	}
	name, err := w.quoted()
	if err != nil {
		return name, err
	}
	if raw := w.body[name.from:name.to]; bytes.IndexByte(raw, '\\') >= 0 {
		var text string
		// It is a valid string, so there is no error.
		_ = json.Unmarshal(w.body[name.from-1:name.to+1], &text)
		start := len(w.body) + len(w.decoded)
		w.decoded = append(w.decoded, text...)
		name = span{uint32(start), uint32(start + len(text))}
	}
	if len(w.names) == cap(w.names) {
		// Twice as large, because append would grow it in steps that cost more in total.
		w.names = slices.Grow(w.names, max(16, len(w.names)))
	}
	w.names = append(w.names, name)
	return name, nil
}

// few is how many names are compared with each other one by one.
const few = 16

// known returns the Shape of a member, and refuses a name that the object of the shape
// cannot have. Among few names it also finds a double one at once, so that its place is
// reported before anything inside it.
func (w *walk) known(s *Shape, name span, first int) (*Shape, *Error) {
	text := w.text(name)
	if others := w.names[first : len(w.names)-1]; len(others) < few {
		for _, o := range others {
			if bytes.Equal(w.text(o), text) {
				return nil, w.double()
			}
		}
	}
	if s.Members == nil && !s.Closed {
		return nil, nil
	}
	if of, ok := s.Members[string(text)]; ok {
		return of, nil
	}
	if s.Closed {
		return nil, w.refuse(fmt.Sprintf("There is no member %q here.", short(text)), s.Hint)
	}
	for right := range s.Members {
		if strings.EqualFold(right, string(text)) {
			return nil, w.refuse(fmt.Sprintf("%s is not spelled like the member %q.", w.place(), right),
				"Names are case-sensitive: correct it and send the request again.")
		}
	}
	return nil, nil
}

// unique refuses a double name among those of the object that ends, whose names start at
// first.
func (w *walk) unique(first, here int) *Error {
	names := w.names[first:]
	if len(names) <= few {
		return nil // known has compared them
	}
	if w.seed == (maphash.Seed{}) {
		w.seed = maphash.MakeSeed()
	}
	size := 1
	for size < 2*len(names) {
		size *= 2
	}
	table := make([]uint32, size) // places in names, from 1; open addressing
	for i, name := range names {
		text := w.text(name)
		slot := int(maphash.Bytes(w.seed, text)) & (size - 1)
		for ; table[slot] != 0; slot = (slot + 1) & (size - 1) {
			if bytes.Equal(w.text(names[table[slot]-1]), text) {
				w.path = append(w.path[:here], step{name: name, index: -1})
				return w.double()
			}
		}
		table[slot] = uint32(i) + 1
	}
	return nil
}

func (w *walk) double() *Error {
	return w.refuse(w.place()+" is there twice.",
		"Send each member once: which of them counts would depend on who reads it.")
}

func (w *walk) refuse(message, hint string) *Error {
	return &Error{Place: w.place(), Message: message, Hint: hint}
}

// maxPlace bounds the text of a place in bytes.
const maxPlace = 256

// place names the value at hand.
func (w *walk) place() string {
	var b strings.Builder
	for _, s := range w.path {
		switch {
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() > 0:
			b.WriteString("." + short(w.text(s.name)))
		default:
			b.WriteString(short(w.text(s.name)))
		}
		if b.Len() > maxPlace {
			return b.String()[:strings.LastIndexAny(b.String(), ".[")] + "…"
		}
	}
	return b.String()
}

// short cuts a name that a client chose to a length that fits a response.
func short(name []byte) string {
	const most = 64
	if len(name) <= most {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:most]), "") + "…"
}

// kindOf returns the kind of a value by its first byte; Any for one that has no kind here.
func kindOf(c byte) Kind {
	switch c {
	case '"':
		return String
	case '[':
		return List
	case '{':
		return Object
	}
	return Any
}

// found names a value by its first byte; it returns nothing if no value begins like this.
func found(c byte) string {
	switch c {
	case '"':
		return "string"
	case '[':
		return "array"
	case '{':
		return "object"
	case 't', 'f':
		return "bool"
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "number"
	}
	return ""
}
