package sharedstate

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Typed is a shared state with a type of Go: its document is the JSON of a T.
type Typed[T any] struct {
	schema json.RawMessage
}

// Of returns the shared state whose document can be decoded into a T, a struct: as for
// holdfast.NewTool, json tags name the members, a jsonschema tag describes one, omitempty makes it
// optional, and members without a field are refused. Slices, maps and pointers may be null, as Go writes
// them.
//
// Of panics if T cannot be described: that is a mistake in the program, and this way it shows up at
// startup.
func Of[T any]() Typed[T] {
	s, err := schema.ForValues(reflect.TypeFor[T]())
	if err != nil {
		panic(fmt.Sprintf("sharedstate.Of: %s cannot be described as JSON Schema: %v", reflect.TypeFor[T](), err))
	}
	return Typed[T]{s}
}

// Options returns the options of an agent whose state this is. Set the other members to show it to the
// model.
func (t Typed[T]) Options() *Options { return &Options{Schema: t.schema} }

// Read decodes a state, such as that of holdfast.ToolCall. A thread without one has the zero T.
func (t Typed[T]) Read(state json.RawMessage) (T, error) {
	var value T
	if len(state) == 0 {
		return value, nil
	}
	if err := json.Unmarshal(state, &value); err != nil {
		return value, fmt.Errorf("the shared state cannot be read as %T: %w", value, err)
	}
	return value, nil
}

// Change returns a function for holdfast.UpdateState that changes the state with f. If f fails nothing is
// changed.
func (t Typed[T]) Change(f func(*T) error) func(json.RawMessage) (json.RawMessage, error) {
	return func(state json.RawMessage) (json.RawMessage, error) {
		value, err := t.Read(state)
		if err != nil {
			return nil, err
		}
		if err := f(&value); err != nil {
			return nil, err
		}
		changed, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("the shared state cannot be written: %w", err)
		}
		return changed, nil
	}
}
