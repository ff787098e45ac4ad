package agents

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/holdfast-agents/holdfast/sharedstate"
)

// The arguments of calls predict parts of the shared state, while a model writes them.

// Predictions returns what the calls of a tool predict. s may be nil.
func (s *Shared) Predictions(tool string) (of []sharedstate.Prediction) {
	if s == nil {
		return nil
	}
	for _, p := range s.predict {
		if p.Tool == tool {
			of = append(of, p)
		}
	}
	return of
}

// Told returns the value of the CUSTOM event PredictState, with which frontends predict by themselves: all
// predictions at the top of the document, since it knows no other place. It is nil if there are none.
func (s *Shared) Told() json.RawMessage { return s.told }

// predicted is a prediction as frontends know it.
type predicted struct {
	Key      string `json:"state_key"`
	Tool     string `json:"tool"`
	Argument string `json:"tool_argument"`
}

// told returns what frontends are told of the predictions; nil if nothing.
func told(all []sharedstate.Prediction) json.RawMessage {
	var top []predicted
	for _, p := range all {
		if atTop(p.Path) {
			top = append(top, predicted{unescaped.Replace(p.Path[1:]), p.Tool, p.Argument})
		}
	}
	if len(top) == 0 {
		return nil
	}
	data, err := json.Marshal(top)
	if err != nil {
		return nil // texts can be written
	}
	return data
}

// atTop reports whether a path of a prediction names a member of the document itself.
func atTop(path string) bool { return strings.LastIndexByte(path, '/') == 0 }

// HasPlace reports whether a state has the object that the value at a path is a member of.
func HasPlace(state, path string) bool {
	object, there := at(json.RawMessage(state), path[:strings.LastIndexByte(path, '/')])
	object = bytes.TrimLeft(object, " \t\r\n")
	return there && len(object) > 0 && object[0] == '{'
}
