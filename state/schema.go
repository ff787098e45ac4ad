package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// The schema of an agent: which states its middleware keeps, at which versions. It is
// saved with every checkpoint, and decides what becomes of a stored state whose version
// is another, or that no middleware has any more.

// redactedState stands for a state that cannot be shown.
var redactedState = []byte(`"[redacted]"`)

// Schema is the states of one agent's middleware. It describes itself as a
// [SchemaInfo] and restores stored states.
type Schema struct {
	defs   []*stateDef // by name
	byName map[string]*stateDef
	listed []bool // by slot, up to the last state's
	info   *SchemaInfo
}

// SchemaInfo says which states a program knew when it wrote a checkpoint.
type SchemaInfo struct {
	// Signature is the sorted names of the states, joined by commas.
	Signature string `json:"schemaSignature"`
	// Version is the version of the container's form; 0 if older than schemas.
	Version int `json:"schemaVersion"`
	// StateVersions are the versions of the states, by name.
	StateVersions map[string]int `json:"stateVersions"`
	// Redacted are the names of the states that must not be shown in full, for those
	// who read a store without the program.
	Redacted []string `json:"redacted,omitempty"`
}

// NewSchema makes the schema of an agent's states. The same key may occur twice; two
// keys with the same name are a mistake, and the error names both types.
func NewSchema(states ...holdfast.State) (*Schema, error) {
	s := &Schema{byName: map[string]*stateDef{}}
	for _, state := range states {
		key, ok := state.(declared)
		if !ok {
			return nil, fmt.Errorf("the state %q is a %T: list keys that package state has registered",
				state.StateName(), state)
		}
		def := key.definition()
		other, taken := s.byName[def.name]
		if taken && other != def {
			return nil, fmt.Errorf("two states are named %q: %s and %s; give each a name of its own", def.name,
				other.typ, def.typ)
		}
		if !taken {
			s.byName[def.name] = def
			s.defs = append(s.defs, def)
			s.list(def)
		}
	}
	slices.SortFunc(s.defs, func(a, b *stateDef) int { return strings.Compare(a.name, b.name) })
	s.info = &SchemaInfo{Version: containerVersion, StateVersions: make(map[string]int, len(s.defs))}
	names := make([]string, len(s.defs))
	for i, def := range s.defs {
		names[i] = def.name
		s.info.StateVersions[def.name] = def.version
		if def.show != nil {
			s.info.Redacted = append(s.info.Redacted, def.name)
		}
	}
	s.info.Signature = strings.Join(names, ",")
	return s, nil
}

// list makes a state usable in runs.
func (s *Schema) list(def *stateDef) {
	s.listed = append(s.listed, make([]bool, max(def.slot+1-len(s.listed), 0))...)
	s.listed[def.slot] = true
}

// lists reports whether runs can use the state. Every Load asks, so it is an index.
func (s *Schema) lists(def *stateDef) bool { return def.slot < len(s.listed) && s.listed[def.slot] }

// Info returns what checkpoints say about the schema. Its map and its slice are
// shared and must not be changed.
func (s *Schema) Info() SchemaInfo { return *s.info }

// Empty reports whether there are no states.
func (s *Schema) Empty() bool { return len(s.defs) == 0 }

// New returns the states of a new conversation: none has a value.
func (s *Schema) New() *States { return &States{info: s.info} }

// Restore makes states from their stored form; info is the schema that they were
// written under. Values are decoded and migrated when they are first read. States
// that the schema does not know are kept unchanged. A value that was set aside comes
// back if its version is known now. missing, if not nil, is called when a migration
// does not exist; otherwise reading such a state fails.
func (s *Schema) Restore(info SchemaInfo, values []Value, missing func(name string, from, to int)) *States {
	out := &States{info: &info}
	for _, v := range values {
		def := s.byName[v.Name]
		kept := &stored{version: max(v.Version, 1), data: v.Data, missing: missing}
		// [Schema.Adopt] replaces info, and what must not be shown must remain hidden.
		kept.redacted = v.Redacted || slices.Contains(info.Redacted, v.Name)
		switch {
		case v.Aside && (def == nil || kept.version > def.version):
			setIn(&out.newer, v.Name, kept)
		case def == nil:
			setIn(&out.named, v.Name, kept)
		default:
			// Of two values, the one that was set aside is second in the list and wins.
			out.put(def, def.restored(kept))
		}
	}
	return out
}

// put does what set does, in a container that shares no nodes with another.
func (s *States) put(def *stateDef, c cell) {
	i, at := place(def.slot)
	for len(s.more) <= i {
		s.more = append(s.more, nil)
	}
	if s.node(i) == nil {
		s.more[i] = &node{}
	}
	s.node(i)[at] = c
}

// Adopt returns the states with this schema's metadata. Call [Schema.Compare] first,
// since the difference can no longer be seen afterwards.
func (s *Schema) Adopt(states *States) *States {
	next := &States{}
	if states != nil {
		*next = *states
	}
	next.info = s.info
	return next
}

// NewRun returns the states with which a run with new messages starts: those of
// [ScopeRun] have their initial value again.
func (s *Schema) NewRun(states *States) *States {
	for _, def := range s.defs {
		if def.scope == ScopeRun && states.cell(def) != nil {
			states = states.with(def, nil)
		}
	}
	return states
}

// SetAside returns states in which the named ones have their initial value again.
// Their stored values are kept aside, and come back when their version is known.
func (s *Schema) SetAside(states *States, names []string) *States {
	for _, name := range names {
		def := s.byName[name]
		if def == nil {
			continue // a state that the schema does not know is kept unchanged anyway
		}
		c := states.cell(def)
		if c == nil || c.stored() == nil {
			continue
		}
		states = states.with(def, nil)
		states.newer = maps.Clone(states.newer)
		setIn(&states.newer, name, c.stored())
	}
	return states
}

// Shown returns the states as the thread's owner may see them: as
// [States.MarshalJSON] writes them, redacted where a state asks for it. If this
// schema does not know a state, or not in its version, the schema that the state was
// written under decides.
func (s *Schema) Shown(states *States) ([]byte, error) {
	values, err := states.Values()
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		def := s.byName[v.Name]
		switch {
		case v.Aside || def == nil || v.Version > def.version:
			if v.Redacted || slices.Contains(states.Info().Redacted, v.Name) || def != nil && def.show != nil {
				values[i].Data = redactedState
			}
		case def.show != nil:
			values[i].Data = def.shown(states.cell(def))
		}
	}
	return marshalForm(states.Info(), values)
}

func (d *stateDef) shown(c cell) (data []byte) {
	defer func() {
		if recover() != nil { // in Redact
			data = redactedState
		}
	}()
	data, err := d.show(c)
	if err != nil {
		return redactedState
	}
	return data
}

// ShortNames returns the last parts of states' names, joined for a log line.
func ShortNames(names []string) string {
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = shortName(n)
	}
	return strings.Join(short, ", ")
}
