package thread

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// The states of the middleware are part of the thread's state, so that each commit
// stores them with what they are about. A schema says which states an agent has, in
// which versions, and which of them must not be shown. A thread keeps the schema that
// its states were written under as a blob with a short name, so that a run that begins
// or takes over can see by one comparison whether anything changed.

// refLength is how many characters name a schema within its thread: 42 bits. With the
// name of its JSON member that is 16 bytes of a checkpoint.
const refLength = 7

// SchemaRef returns the name under which a thread keeps a schema, which is given as it is
// stored. It is derived from the content, so that a thread that changes back and forth
// keeps each schema once.
func SchemaRef(stored []byte) string {
	sum := sha256.Sum256(stored)
	return base64.RawURLEncoding.EncodeToString(sum[:])[:refLength]
}

// SchemaBlob returns the id of the blob with a schema.
func SchemaBlob(ref string) string { return schemaPrefix + ref }

// SchemaOf returns the name of the schema in the blob; false if it holds no schema.
func SchemaOf(blob string) (ref string, is bool) { return strings.CutPrefix(blob, schemaPrefix) }

const schemaPrefix = "schema/"

// NewerState is a state that was set aside because its version is not known here.
type NewerState struct {
	Version  int             `json:"version"`            // that it was written in
	Data     json.RawMessage `json:"data"`               // as it was written
	Redacted bool            `json:"redacted,omitempty"` // it must not be shown
}

// Blobs returns the ids of the blobs that the state refers to.
func (s *State) Blobs() []string {
	var ids []string
	if s.Shared != "" {
		ids = append(ids, SharedParts(s.Shared)...)
	}
	if s.Schema != "" {
		ids = append(ids, SchemaBlob(s.Schema))
	}
	return ids
}

// takeStates copies the middleware's states into the members that are stored. They were
// encoded once when they were set, so encoding cannot fail here.
func (s *State) takeStates() {
	if s.live == nil || s.live.Now() == s.taken {
		return
	}
	now := s.live.Now()
	values, err := now.Values()
	if err != nil {
		panic("thread: a state that cannot be encoded was written: " + err.Error())
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

// setIn sets an entry of a map that may be nil.
func setIn[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}

// Values returns the middleware's states as they are stored. info is the schema that
// they were written under.
func (s *State) Values(info state.SchemaInfo) []state.Value {
	var out []state.Value
	for name, data := range s.States {
		version := s.StateVersions[name]
		if version == 0 {
			version = info.StateVersions[name]
		}
		out = append(out, state.Value{
			Name: name, Version: max(version, 1), Data: data,
			Redacted: slices.Contains(s.Redacted, name) || slices.Contains(info.Redacted, name),
		})
	}
	for name, kept := range s.NewerStates {
		out = append(out, state.Value{
			Name:     name,
			Version:  kept.Version,
			Data:     kept.Data,
			Redacted: kept.Redacted,
			Aside:    true,
		})
	}
	return out
}

// Schema describes the states of one agent's middleware.
type Schema struct {
	*state.Schema
	Ref string // under which a thread keeps it
}

// NewSchema returns the schema of an agent. It returns an error if the agent's
// middleware registers two states of one name.
func NewSchema(a *holdfast.Agent) (*Schema, error) {
	var states []holdfast.State
	for _, m := range a.Middleware {
		states = append(states, m.States...)
	}
	s, err := state.NewSchema(states...)
	if err != nil {
		return nil, err
	}
	return &Schema{Schema: s, Ref: SchemaRef(MustJSON(s.Info()))}, nil
}

// EmptySchema returns a schema without states.
func EmptySchema() *state.Schema {
	s, err := state.NewSchema()
	if err != nil {
		panic("thread: a schema without states is always valid: " + err.Error())
	}
	return s
}

// ReadSchema reads the schema that the states in st were written under. A thread without
// one has the zero schema.
func ReadSchema(
	ctx context.Context, db store.Reader, key store.ThreadKey, st *State,
) (info state.SchemaInfo, err error) {
	if st.Schema == "" {
		return info, nil
	}
	raw, err := db.Value(ctx, key, store.KindBlob, SchemaBlob(st.Schema))
	if errors.Is(err, store.ErrNotFound) {
		err = ErrNoBlob
	}
	if err != nil {
		return info, fmt.Errorf("read the schema of thread %s: %w", key, err)
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return info, fmt.Errorf("read the schema of thread %s: %w: %w", key, ErrUnreadable, err)
	}
	return info, nil
}

// Schemas returns the schema of each agent by the agent's name.
func Schemas(agents []holdfast.Agent) (map[string]*state.Schema, error) {
	out := make(map[string]*state.Schema, len(agents))
	for i := range agents {
		s, err := NewSchema(&agents[i])
		if err != nil {
			return nil, fmt.Errorf("agent %q: %w", agents[i].Name, err)
		}
		out[agents[i].Name] = s.Schema
	}
	return out, nil
}
