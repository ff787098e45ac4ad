package thread

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// refLength is how many characters name a schema within its thread: 42 bits. With
// its member name that is 16 bytes of a checkpoint.
const refLength = 7

// schemaRef is the name under which a thread keeps a schema. It is made of the
// content, so that a thread that changes back and forth keeps each once.
func schemaRef(info holdfast.SchemaInfo) string {
	sum := sha256.Sum256(MustJSON(info))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:refLength]
}

// SchemaBlob is the id of the blob with a schema.
func SchemaBlob(ref string) string { return "schema/" + ref }

// NewerState is a state that was set aside, because its version was not known.
type NewerState struct {
	Version  int             `json:"version"`
	Data     json.RawMessage `json:"data"`
	Redacted bool            `json:"redacted,omitempty"`
}

// Blobs returns the ids of the blobs that the state refers to.
func (s *State) Blobs() []string {
	var ids []string
	if s.Shared != "" {
		ids = append(ids, s.Shared)
	}
	if s.Schema != "" {
		ids = append(ids, SchemaBlob(s.Schema))
	}
	return ids
}

// takeStates puts the states of the middleware into what is stored. Whoever wrote
// them made sure that they can be.
func (s *State) takeStates() {
	if s.live == nil || s.live.Now() == s.taken {
		return
	}
	now := s.live.Now()
	values, err := now.Values()
	if err != nil {
		panic("loop: a state that cannot be encoded was written: " + err.Error())
	}
	known := now.Info().StateVersions
	s.taken, s.States, s.StateVersions, s.NewerStates, s.Redacted = now, nil, nil, nil, nil
	for _, v := range values {
		if v.Aside {
			setIn(&s.NewerStates, v.Name, NewerState{v.Version, v.Data, v.Redacted})
			continue
		}
		setIn(&s.States, v.Name, v.Data)
		if known[v.Name] != v.Version {
			setIn(&s.StateVersions, v.Name, v.Version)
		}
		if v.Redacted && !slices.Contains(now.Info().Redacted, v.Name) {
			s.Redacted = append(s.Redacted, v.Name)
		}
	}
}

func setIn[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}

// Values returns the states of the middleware as they are stored, written under the
// schema in info.
func (s *State) Values(info holdfast.SchemaInfo) []holdfast.StateValue {
	var out []holdfast.StateValue
	for name, data := range s.States {
		version := s.StateVersions[name]
		if version == 0 {
			version = info.StateVersions[name]
		}
		out = append(out, holdfast.StateValue{
			Name: name, Version: max(version, 1), Data: data,
			Redacted: slices.Contains(s.Redacted, name) || slices.Contains(info.Redacted, name),
		})
	}
	for name, kept := range s.NewerStates {
		out = append(out, holdfast.StateValue{Name: name, Version: kept.Version, Data: kept.Data, Redacted: kept.Redacted, Aside: true})
	}
	return out
}

// Schema is the states of one agent's middleware.
type Schema struct {
	*holdfast.Schema
	Ref string
}

func NewSchema(a *holdfast.Agent) (*Schema, error) {
	var states []holdfast.AnyState
	for _, m := range a.Middleware {
		states = append(states, m.States...)
	}
	s, err := holdfast.NewSchema(states...)
	if err != nil {
		return nil, err
	}
	return &Schema{Schema: s, Ref: schemaRef(s.Info())}, nil
}

func EmptySchema() *holdfast.Schema {
	s, err := holdfast.NewSchema()
	if err != nil {
		panic("loop: a schema without states is always valid: " + err.Error())
	}
	return s
}

// ReadSchema reads the schema that the states in st were written under.
func ReadSchema(ctx context.Context, store holdfast.Reader, key holdfast.ThreadKey, st *State) (info holdfast.SchemaInfo, err error) {
	if st.Schema == "" {
		return info, nil
	}
	raw, err := store.Value(ctx, key, holdfast.KindBlob, SchemaBlob(st.Schema))
	if err != nil {
		return info, fmt.Errorf("read the schema of thread %s: %w", key, err)
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return info, fmt.Errorf("read the schema of thread %s: %w: %w", key, ErrUnreadable, err)
	}
	return info, nil
}

// Schemas returns the schema of each agent, by its name.
func Schemas(agents []holdfast.Agent) (map[string]*holdfast.Schema, error) {
	out := make(map[string]*holdfast.Schema, len(agents))
	for i := range agents {
		s, err := NewSchema(&agents[i])
		if err != nil {
			return nil, fmt.Errorf("agent %q: %w", agents[i].Name, err)
		}
		out[agents[i].Name] = s.Schema
	}
	return out, nil
}
