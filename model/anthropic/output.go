package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// The form of an answer. The API enforces it for a part of JSON Schema only, and refuses the
// rest; so most of this file takes that part of a schema, and says when nothing but the
// model's word is left.

// unformed are the beginnings of the names of models that do not know forms.
var unformed = []string{
	"claude-2",
	"claude-3",
	"claude-instant",
	"claude-sonnet-4-0",
	"claude-opus-4-0",
	"claude-sonnet-4-2025",
	"claude-opus-4-2025",
}

// EnforcesOutput reports whether the API enforces the form of an answer. Older models do not, and no model does
// for a schema that the API does not take.
func (m *Model) EnforcesOutput(req *holdfast.ModelRequest) bool {
	config, _ := m.client.Params["output_config"].(map[string]any)
	_, own := config["format"]
	_, old := m.client.Params["output_format"]
	older := slices.ContainsFunc(unformed, func(name string) bool { return strings.HasPrefix(m.client.Model, name) })
	if own || old || older || req.Output == nil {
		return false
	}
	_, taken := subset(req.Output.Schema)
	return taken
}

// formed writes the form of the answer into the parameter output_config.
func (m *Model) formed(o *holdfast.Output) map[string]any {
	params, _ := m.client.Params["output_config"].(map[string]any)
	config := maps.Clone(params)
	if config == nil {
		config = map[string]any{}
	}
	schema, _ := subset(o.Schema)
	config["format"] = map[string]any{"type": "json_schema", "schema": schema}
	return config
}

// Media returns which media the model takes in messages, and which it makes.
func (m *Model) Media() (takes, makes map[holdfast.PartType]bool) {
	return map[holdfast.PartType]bool{
			holdfast.PartImage:    true,
			holdfast.PartDocument: true,
			holdfast.PartAudio:    false,
			holdfast.PartVideo:    false,
		},
		map[holdfast.PartType]bool{
			holdfast.PartImage: false,
			holdfast.PartAudio: false,
		}
}

// keywords are those of JSON Schema that the API takes in a form. The server checks the
// answer against the whole schema, so that a keyword less lets nothing through.
var keywords = []string{
	"type",
	"properties",
	"required",
	"items",
	"enum",
	"const",
	"anyOf",
	"allOf",
	"$ref",
	"$defs",
	"title",
	"description",
	"default",
	"format",
}

// subset returns a schema as the API takes it: without other keywords, and with objects that
// have no other members than those that are listed. It reports false for a schema that allows
// others, and for one that refers to itself.
func subset(schema json.RawMessage) (json.RawMessage, bool) {
	t := &taking{taken: true}
	out := t.schema(schema)
	return out, t.taken && !t.circular()
}

// taking is a schema while its subset is taken.
type taking struct {
	taken bool
	// refs are the definitions that each definition refers to; those of the schema itself
	// have the name "".
	refs map[string][]string
	in   string
}

// schema takes the subset of a schema.
func (t *taking) schema(raw json.RawMessage) json.RawMessage {
	list, is := modelhttp.Members(raw)
	if !is { // true, for instance
		t.taken = false
		return raw
	}
	object, closed, listed := false, true, false
	kept := list[:0]
	for _, m := range list {
		if m.Name == "definitions" {
			m.Name = "$defs"
		}
		switch m.Name {
		case "oneOf":
			m.Name, m.Value = "anyOf", t.each(m.Value)
		case "anyOf", "allOf":
			m.Value = t.each(m.Value)
		case "items":
			m.Value = t.schema(m.Value)
		case "type":
			object = strings.Contains(string(m.Value), `"object"`)
		case "properties":
			listed = true
			m.Value = t.named(m.Value, false)
		case "$defs":
			m.Value = t.named(m.Value, true)
		case "additionalProperties":
			closed = string(m.Value) == "false"
		case "$ref":
			m.Value = t.ref(m.Value)
		}
		if slices.Contains(keywords, m.Name) {
			kept = append(kept, m)
		}
	}
	if object || listed {
		t.taken = t.taken && closed && listed
		kept = append(kept, modelhttp.Member{Name: "additionalProperties", Value: json.RawMessage("false")})
	}
	return modelhttp.Object(kept)
}

// each takes the subset of each schema in a list.
func (t *taking) each(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		t.taken = false
		return raw
	}
	for i := range list {
		list[i] = t.schema(list[i])
	}
	out, err := json.Marshal(list)
	if err != nil {
		t.taken = false
	}
	return out
}

// named takes the subset of each schema in an object of them, which may be definitions.
func (t *taking) named(raw json.RawMessage, definitions bool) json.RawMessage {
	list, is := modelhttp.Members(raw)
	if !is {
		t.taken = false
		return raw
	}
	within := t.in
	for i := range list {
		if definitions {
			t.in = list[i].Name
		}
		list[i].Value = t.schema(list[i].Value)
	}
	t.in = within
	return modelhttp.Object(list)
}

// ref takes a reference to a definition.
func (t *taking) ref(raw json.RawMessage) json.RawMessage {
	var to string
	if json.Unmarshal(raw, &to) != nil {
		t.taken = false
		return raw
	}
	name, is := strings.CutPrefix(strings.Replace(to, "#/definitions/", "#/$defs/", 1), "#/$defs/")
	if !is {
		t.taken = false
		return raw
	}
	if t.refs == nil {
		t.refs = map[string][]string{}
	}
	t.refs[t.in] = append(t.refs[t.in], name)
	out, err := json.Marshal("#/$defs/" + name)
	if err != nil {
		t.taken = false
	}
	return out
}

// circular reports whether a definition leads to itself.
func (t *taking) circular() bool {
	done, on := map[string]bool{}, map[string]bool{}
	var leads func(name string) bool
	leads = func(name string) bool {
		if on[name] || done[name] {
			return on[name]
		}
		on[name] = true
		for _, next := range t.refs[name] {
			if leads(next) {
				return true
			}
		}
		on[name], done[name] = false, true
		return false
	}
	for name := range t.refs {
		if leads(name) {
			return true
		}
	}
	return false
}
