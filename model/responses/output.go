package responses

import (
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// text returns the parameter text, which has the form of an answer beside other members, and
// whether it has one.
func (m *Model) text() (text map[string]any, formed bool) {
	text, _ = m.client.Params["text"].(map[string]any)
	_, formed = text["format"]
	return text, formed
}

// EnforcesOutput reports whether the API enforces the form of an answer.
func (m *Model) EnforcesOutput(*holdfast.ModelRequest) bool {
	_, formed := m.text()
	return !formed
}

// formed writes the form of the answer into the parameter text.
func (m *Model) formed(o *holdfast.Output) map[string]any {
	params, _ := m.text()
	text := maps.Clone(params)
	if text == nil {
		text = map[string]any{}
	}
	format := map[string]any{
		"type":   "json_schema",
		"name":   o.Name,
		"schema": o.Schema,
		"strict": modelhttp.Strict(o.Schema),
	}
	if o.Description != "" {
		format["description"] = o.Description
	}
	text["format"] = format
	return text
}

// Media returns which media the model takes in messages, and which it makes. Whether the model sees is not known.
func (m *Model) Media() (takes, makes map[holdfast.PartType]bool) {
	paints := slices.ContainsFunc(m.builtin, func(t any) bool {
		tool, _ := t.(map[string]any)
		return tool["type"] == "image_generation"
	})
	return map[holdfast.PartType]bool{holdfast.PartAudio: false, holdfast.PartVideo: false},
		map[holdfast.PartType]bool{holdfast.PartImage: paints, holdfast.PartAudio: false}
}
