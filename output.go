package holdfast

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Output is the form of an agent's answers: JSON that fits a schema. It holds for the
// answer that ends a run; while the model calls tools it is free. Each provider is told in
// its own way, and the server checks the answer. One that does not fit is taken back, and
// the model is asked once more, with what is wrong; if that does not help, the run ends with
// the error output_invalid. One that fits is the result of RUN_FINISHED.
type Output struct {
	// Name is a short name of the form, which some providers want: letters, digits, _ and -.
	// The default is "answer".
	Name string
	// Description tells the model what the form is for.
	Description string
	// Schema is the JSON Schema that the answer must fit. Its type must be object, because
	// providers take no other; references to other documents are refused.
	Schema json.RawMessage
}

// OutputOf returns the form of answers that can be decoded into a T, a struct: as for
// [NewTool], json tags name the members, a jsonschema tag describes one, and omitempty makes
// it optional.
//
// OutputOf panics if T cannot be described: that is a mistake in the program, and this way it
// shows up at startup.
func OutputOf[T any](name string) *Output {
	s, err := schema.For(reflect.TypeFor[T]())
	if err != nil {
		panic(fmt.Sprintf("holdfast.OutputOf(%q): %s cannot be described as JSON Schema: %v", name,
			reflect.TypeFor[T](), err))
	}
	return &Output{Name: name, Schema: s.JSON()}
}
