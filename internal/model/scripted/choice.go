package scripted

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// Answers to requests that say which tools must be called.

// chosen gives an answer the calls that the request wants: none, or the one that must be
// called, with arguments that its schema allows.
func chosen(a answer, req *holdfast.ModelRequest) answer {
	switch {
	case req.ToolChoice == "none" && len(a.calls) > 0:
		return say("I was told to call no tool.")
	case req.ToolChoice != "required" || len(req.Tools) == 0:
		return a
	case req.ChosenTool == "" && len(a.calls) > 0:
		return a
	}
	at := slices.IndexFunc(req.Tools, func(t holdfast.ToolSpec) bool { return t.Name == req.ChosenTool })
	if at >= 0 && slices.ContainsFunc(a.calls, func(c call) bool { return c.name == req.ChosenTool }) {
		return a
	}
	if at < 0 { // any will do: one that changes nothing, if there is one
		at = max(0, slices.IndexFunc(req.Tools, func(t holdfast.ToolSpec) bool {
			return t.Effect == holdfast.EffectPure
		}))
	}
	tool := &req.Tools[at]
	var s shape
	if json.Unmarshal(tool.Parameters, &s) != nil {
		s = shape{}
	}
	s.Type = "object"
	args, err := json.Marshal(s.example("", 0, levels))
	if err != nil {
		args = []byte("{}")
	}
	return answer{pace: 1}.with(call{tool.Name, string(args)})
}

// shape is what of a schema an example is made of.
type shape struct {
	Type       string            `json:"type"`
	Enum       []json.RawMessage `json:"enum"`
	Properties map[string]shape  `json:"properties"`
	Required   []string          `json:"required"`
	Items      *shape            `json:"items"`
}

// How much an example has: elements of a list, and levels.
const examples, levels = 2, 8

// saying returns a text for a member of that name: what a person may say to the demo, if it
// asks for that.
func saying(name string, n int) string {
	switch name {
	case "title":
		return [examples]string{"A plan of 5 steps", "6 × 7"}[n%examples]
	case "message":
		return [examples]string{"plan 5 steps", "calculate 6 * 7"}[n%examples]
	}
	return "example"
}

// example returns a value that the schema allows, as well as a script can: that of a member of
// the name, in element n of a list, with so many levels below it.
func (s *shape) example(name string, n, levels int) any {
	if len(s.Enum) > 0 {
		return s.Enum[n%len(s.Enum)]
	}
	switch s.Type {
	case "object":
		object := map[string]any{}
		for _, member := range s.Required {
			if p, known := s.Properties[member]; known && levels > 0 {
				object[member] = p.example(member, n, levels-1)
			}
		}
		return object
	case "array":
		list := []any{}
		for i := range examples {
			if s.Items != nil && levels > 0 {
				list = append(list, s.Items.example(name, i, levels-1))
			}
		}
		return list
	case "string":
		return saying(name, n)
	case "integer", "number":
		return 1
	case "boolean":
		return true
	}
	return nil
}
