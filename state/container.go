package state

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// The container of state values. Copying it must be cheap, since every write makes a new
// one, and reading must be an array index; hence nodes of a fixed width, of which a write
// copies only the one that it changes. Stored values that no key of this program knows
// are kept as they are and written again.

// nodeWidth is how many states one node holds. A program with no more states than
// that keeps all of them in the container itself; the server brings a dozen. It must
// be a power of 2.
const nodeWidth = 32

// containerVersion is the version of the form below.
const containerVersion = 1

type node [nodeWidth]cell

// States holds the values of middleware states. It never changes: a write through a
// [Key] returns a new States that shares all other values. A nil *States has no
// values. Reads need no lock, and reading a registered state is an array index.
type States struct {
	first node
	more  []*node
	// named are stored states that the schema does not know. They are kept unchanged,
	// so that a deployment and its rollback lose nothing.
	named map[string]*stored
	// newer are values of a version that is not known here, set aside when their state
	// was reset.
	newer map[string]*stored
	info  *SchemaInfo
}

// place returns where the value of a slot is: the index in more (-1 for the first
// node) and the index in the node.
func place(slot int) (node, at int) { return slot/nodeWidth - 1, slot % nodeWidth }

// node returns a node by its index; nil if it holds nothing.
func (s *States) node(i int) *node {
	switch {
	case s == nil:
		return nil
	case i < 0:
		return &s.first
	case i < len(s.more):
		return s.more[i]
	}
	return nil
}

// cell returns the content of a state's place; nil if the state has no value.
func (s *States) cell(def *stateDef) cell {
	if s == nil {
		return nil
	}
	i, at := place(def.slot)
	if n := s.node(i); n != nil && n[at] != nil {
		return n[at]
	}
	if kept, ok := s.named[def.name]; ok {
		return kept.cell(def)
	}
	return nil
}

// with returns a copy that has c in the state's place.
func (s *States) with(def *stateDef, c cell) *States {
	next := &States{}
	if s != nil {
		*next = *s
	}
	next.set(def, c)
	if _, ok := next.named[def.name]; ok {
		next.named = maps.Clone(next.named)
		delete(next.named, def.name)
	}
	return next
}

// set writes into a container that nobody else has seen yet; its nodes may be shared.
func (s *States) set(def *stateDef, c cell) {
	i, at := place(def.slot)
	if i < 0 {
		s.first[at] = c
		return
	}
	n := &node{}
	if old := s.node(i); old != nil {
		*n = *old
	}
	n[at] = c
	more := make([]*node, max(i+1, len(s.more)))
	copy(more, s.more)
	more[i], s.more = n, more
}

// Info returns the schema that the states were written under; the zero value if they
// are older than schemas.
func (s *States) Info() SchemaInfo {
	if s == nil || s.info == nil {
		return SchemaInfo{}
	}
	return *s.info
}

// Value is the stored form of one state.
type Value struct {
	// Name is the state's "owner.name".
	Name string
	// Version is the version of the state's type under which Data was written.
	Version int
	// Data is shared with the states and must not be changed.
	Data json.RawMessage
	// Aside: the value was set aside when the state was reset, because its version was
	// not known. There may be another value of the same name.
	Aside bool
	// Redacted: this program does not know the state, and the program that wrote it
	// asked not to show it.
	Redacted bool
}

// Values returns the stored form of all states that have a value, sorted by name,
// including those that this program does not know. It fails if a value set by
// [Key.With] cannot be written as JSON.
func (s *States) Values() ([]Value, error) {
	if s == nil {
		return nil, nil
	}
	var out []Value
	var failed error
	s.each(func(c cell) {
		data, err := c.encode()
		if err != nil {
			failed = err
			return
		}
		v := Value{Name: c.definition().name, Version: c.definition().version, Data: data}
		if kept := c.stored(); kept != nil {
			v.Version = kept.version
		}
		out = append(out, v)
	})
	for name, kept := range s.named {
		out = append(out, Value{Name: name, Version: kept.version, Data: kept.data, Redacted: kept.redacted})
	}
	for name, kept := range s.newer {
		out = append(out, Value{
			Name:     name,
			Version:  kept.version,
			Data:     kept.data,
			Aside:    true,
			Redacted: kept.redacted,
		})
	}
	// Of two values of the same name, the one that was set aside stays second.
	slices.SortStableFunc(out, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	return out, failed
}

// each calls f for every value that is in a place.
func (s *States) each(f func(cell)) {
	for i := -1; i < len(s.more); i++ {
		n := s.node(i)
		if n == nil {
			continue
		}
		for _, c := range n {
			if c != nil {
				f(c)
			}
		}
	}
}

// String returns the states as the thread's owner may see them, as JSON, for logs and
// debuggers. See [Schema.Shown].
func (s *States) String() string {
	known := &Schema{byName: map[string]*stateDef{}}
	if s != nil {
		s.each(func(c cell) { known.byName[c.definition().name] = c.definition() })
	}
	text, err := known.Shown(s)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// LogValue is what a log shows of the states: their String, in which what must not be
// shown is hidden.
func (s *States) LogValue() slog.Value { return slog.StringValue(s.String()) }

// statesJSON is the form in which states are shown and exported. A reader may ignore
// members that it does not know.
type statesJSON struct {
	Signature *string                    `json:"schemaSignature"`
	Version   int                        `json:"schemaVersion"`
	Versions  map[string]int             `json:"stateVersions"`
	States    map[string]json.RawMessage `json:"states"`
	Newer     map[string]newerJSON       `json:"newerStates,omitempty"`
}

type newerJSON struct {
	Version int             `json:"version"`
	Data    json.RawMessage `json:"data"`
}

// MarshalJSON writes all states as schemaSignature, schemaVersion, stateVersions and
// states. The version of a state is that of its stored value or else the schema's.
// States without a schema list only versions above 1.
func (s *States) MarshalJSON() ([]byte, error) {
	values, err := s.Values()
	if err != nil {
		return nil, err
	}
	return marshalForm(s.Info(), values)
}

func formOf(info SchemaInfo, values []Value) statesJSON {
	form := statesJSON{States: map[string]json.RawMessage{}}
	if info.Version > 0 {
		form.Signature, form.Version, form.Versions = &info.Signature, info.Version, maps.Clone(info.StateVersions)
	}
	for _, v := range values {
		if v.Aside {
			setIn(&form.Newer, v.Name, newerJSON{v.Version, v.Data})
			continue
		}
		form.States[v.Name] = v.Data
		if info.Version > 0 || v.Version > 1 {
			setIn(&form.Versions, v.Name, v.Version)
		}
	}
	return form
}

// UnmarshalJSON reads what MarshalJSON writes; the schema members may be missing, as
// they were before there were schemas. Values are decoded when they are first read.
// [Schema.Restore] makes reads an index again.
func (s *States) UnmarshalJSON(b []byte) error {
	var form statesJSON
	if err := json.Unmarshal(b, &form); err != nil {
		return err
	}
	*s = States{named: make(map[string]*stored, len(form.States))}
	for name, data := range form.States {
		version := max(form.Versions[name], 1)
		s.named[name] = &stored{version: version, data: data}
	}
	for name, kept := range form.Newer {
		setIn(&s.newer, name, &stored{version: kept.Version, data: kept.Data})
	}
	if form.Signature != nil {
		s.info = &SchemaInfo{Signature: *form.Signature, Version: max(form.Version, 1), StateVersions: form.Versions}
	}
	return nil
}

// setIn writes into a map, which it makes if there is none yet.
func setIn[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}

func marshalForm(info SchemaInfo, values []Value) ([]byte, error) {
	return json.Marshal(formOf(info, values))
}
