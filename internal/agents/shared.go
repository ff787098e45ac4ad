package agents

// The shared state as an agent has it: the schema that each change must fit, and the part that the model is shown.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/schema"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// Shared is an agent's State, ready to use.
type Shared struct {
	all   bool           // is shown
	paths []string       // to what is shown
	most  int            // bytes that are shown
	form  *schema.Schema // that it must fit; nil if any will do

	predict []sharedstate.Prediction
	told    json.RawMessage // what clients are told of it; nil if nothing
	// conflict is what happens to a page's change of what has changed meanwhile.
	conflict string
}

// Conflict returns the agent's rule for what a page and somebody else have both changed. s may be nil.
func (s *Shared) Conflict() string {
	if s == nil {
		return sharedstate.ConflictRefuse
	}
	return cmp.Or(s.conflict, sharedstate.ConflictRefuse)
}

const (
	// defaultMaxShown bounds what a model is shown of a state, in bytes.
	defaultMaxShown = 16 << 10
	// maxState bounds a state, in bytes: each checkpoint, fork and export has it.
	maxState = 8 << 20
)

// newShared returns what an agent does with the shared state; nil if nothing.
func newShared(a *holdfast.Agent) (*Shared, error) {
	if a.State == nil {
		return nil, nil
	}
	if err := a.State.Validate(); err != nil {
		return nil, fmt.Errorf("agent %q: its State: %w", a.Name, err)
	}
	s := &Shared{
		all:   a.State.Show == "all",
		paths: a.State.Paths,
		most:  cmp.Or(a.State.MaxBytes, defaultMaxShown),

		predict:  a.State.Predict,
		told:     told(a.State.Predict),
		conflict: a.State.Conflict,
	}
	if len(a.State.Schema) > 0 {
		var err error
		if s.form, err = schema.Compile(a.State.Schema); err != nil {
			return nil, fmt.Errorf("agent %q: the schema of its State: %w", a.Name, err)
		}
	}
	return s, nil
}

// Check is what every change of a thread's shared state passes: a page's, a tool's or a person's. The
// error is state_invalid, and lists everything that is wrong. A state may have 8 MiB; null is no state, and
// always fits. s may be nil.
func (s *Shared) Check(ctx context.Context, state json.RawMessage) error {
	if len(state) > maxState {
		return holdfast.Errorf(codes.StateInvalid, "The shared state would have %d bytes, of %d that it may have.",
			len(state), maxState).
			WithHint("The state is as it was. Keep what is large elsewhere, and in the state where that is.")
	}
	if s == nil || s.form == nil || len(state) == 0 || string(bytes.TrimSpace(state)) == "null" {
		return nil
	}
	violations, err := s.form.Violations(ctx, state)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		violations = []string{fmt.Sprintf("it cannot be checked: %v", err)}
	case len(violations) == 0:
		return nil
	}
	return holdfast.Errorf(codes.StateInvalid, "The shared state does not fit the agent's schema: %s.",
		strings.Join(violations, "; ")).
		WithHint("The state is as it was. Send one that fits, or leave it out.").
		With("violations", violations)
}

// CheckState is [Shared.Check] for a thread of the named agent. An agent that there is not checks
// nothing.
func (a *Set) CheckState(ctx context.Context, agent string, state json.RawMessage) error {
	one, known := a.ByName[agent]
	if !known {
		return nil
	}
	return one.Shared.Check(ctx, state)
}

// Shown returns what the model is shown of a state, as JSON on one line; nil if nothing. If
// that is more than the agent shows, it returns only how many bytes it has. s may be nil.
func (s *Shared) Shown(state json.RawMessage) (shown json.RawMessage, tooLarge int) {
	if s == nil || !s.all && len(s.paths) == 0 || len(state) == 0 || string(state) == "null" {
		return nil, 0
	}
	var b bytes.Buffer
	if s.all {
		if json.Compact(&b, state) != nil {
			return nil, 0 // what is stored is JSON
		}
	} else {
		s.pick(&b, state)
	}
	if b.Len() > s.most {
		return nil, b.Len()
	}
	return b.Bytes(), 0
}

// pick writes an object with a member for each path that the state has.
func (s *Shared) pick(b *bytes.Buffer, state json.RawMessage) {
	b.WriteByte('{')
	for _, path := range s.paths {
		value, there := at(state, path)
		if !there {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(path)
		if err != nil {
			continue // texts can be written
		}
		b.Write(name)
		b.WriteByte(':')
		if json.Compact(b, value) != nil {
			b.WriteString("null") // it is a part of JSON
		}
	}
	b.WriteByte('}')
}

// unescaped is what ~0 and ~1 stand for in a JSON Pointer.
var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// at returns the value that a JSON Pointer points to.
func at(value json.RawMessage, pointer string) (json.RawMessage, bool) {
	for pointer != "" {
		name, rest, more := strings.Cut(pointer[1:], "/")
		if pointer = ""; more {
			pointer = "/" + rest
		}
		value = bytes.TrimLeft(value, " \t\r\n")
		switch name = unescaped.Replace(name); {
		case len(value) > 0 && value[0] == '{':
			var members map[string]json.RawMessage
			if json.Unmarshal(value, &members) != nil {
				return nil, false
			}
			inner, there := members[name]
			if !there {
				return nil, false
			}
			value = inner
		case len(value) > 0 && value[0] == '[':
			var items []json.RawMessage
			i, err := strconv.Atoi(name)
			if err != nil || strconv.Itoa(i) != name || json.Unmarshal(value, &items) != nil || i < 0 ||
				i >= len(items) {
				return nil, false
			}
			value = items[i]
		default:
			return nil, false
		}
	}
	return value, true
}
