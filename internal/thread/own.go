package thread

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// Calls that the model's side carries out by itself, because the model is an agent.

// OwnCall is what is known of such a call while it is open.
type OwnCall struct {
	// Effect and InDoubt say what happens if the model is lost before it has told the result.
	Effect  holdfast.Effect `json:"effect,omitempty"`
	InDoubt holdfast.Doubt  `json:"inDoubt,omitempty"`
	// Message is what the model's side calls the result's message.
	Message string `json:"message,omitempty"`
}

// DoubtFail as the InDoubt of an [OwnCall] ends the run with an error.
const DoubtFail holdfast.Doubt = "fail"

// Answering is how far the answer of such a model has come.
type Answering struct {
	// More means that the last message is one of an answer that goes on.
	More bool `json:"more,omitempty"`
	// Begun is what stands of a message that is not complete; nil for most.
	Begun *Begun `json:"begun,omitempty"`
}

// Begun is what an answer would be if its stream ended now, once the model's side carries out
// calls with effects.
type Begun struct {
	// After is the id of the message that they follow.
	After string `json:"after,omitempty"`
	// Messages are those of the answer.
	Messages []json.RawMessage `json:"messages"`
	// Calls are the open calls in them, a list of [Call].
	Calls json.RawMessage `json:"calls"`
}
