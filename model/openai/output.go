package openai

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// EnforcesOutput reports whether the API enforces the form of an answer. For a server that does not know
// json_schema, Params have a response_format of their own.
func (m *Model) EnforcesOutput(*holdfast.ModelRequest) bool {
	_, set := m.client.Params["response_format"]
	return !set
}

// format writes the form of the answer.
func format(o *holdfast.Output) map[string]any {
	form := map[string]any{"name": o.Name, "schema": o.Schema, "strict": modelhttp.Strict(o.Schema)}
	if o.Description != "" {
		form["description"] = o.Description
	}
	return map[string]any{"type": "json_schema", "json_schema": form}
}

// Media returns which media the model takes in messages, and which it makes. Whether the
// model sees and hears is not known.
func (m *Model) Media() (takes, makes map[holdfast.PartType]bool) {
	return map[holdfast.PartType]bool{holdfast.PartVideo: false}, map[holdfast.PartType]bool{holdfast.PartAudio: false}
}
