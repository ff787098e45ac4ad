package decide

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Choice is whether the model may, must or must not call tools in its next answer, as a
// request chose it in forwardedProps.toolChoice. The zero value leaves it to the model.
type Choice struct {
	// Mode is "none", "required" or empty, as in [holdfast.ModelRequest].
	Mode string
	// Tool is the name of the tool that must be called. Mode is then "required".
	Tool string
}

// The modes of a [Choice].
const (
	ChoiceNone     = "none"
	ChoiceRequired = "required"
	choiceAuto     = "auto"
)

// hintChoice says what forwardedProps.toolChoice may hold.
const hintChoice = `Send "auto", "none", "required", or {"type": "function", "function": {"name": "the name of a ` +
	`tool"}}; or leave it out.`

// ChoiceOf reads forwardedProps.toolChoice. The error is an invalid_input that says what is
// accepted.
func ChoiceOf(props json.RawMessage) (Choice, error) {
	outer := map[string]json.RawMessage{}
	// Other applications' props may have any shape and size; only this member is read.
	if !bytes.Contains(props, []byte("toolChoice")) || json.Unmarshal(props, &outer) != nil {
		return Choice{}, nil
	}
	raw := bytes.TrimSpace(outer["toolChoice"])
	if len(raw) == 0 || string(raw) == "null" {
		return Choice{}, nil
	}
	var mode string
	if json.Unmarshal(raw, &mode) == nil {
		return choiceOfMode(mode)
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &named) != nil {
		return Choice{}, errChoice()
	}
	switch name := named.Function.Name; {
	case named.Type == "function" && name != "" && (named.Name == "" || named.Name == name):
		return Choice{Mode: ChoiceRequired, Tool: name}, nil
	case named.Type == "function" && name == "" && named.Name != "":
		return Choice{Mode: ChoiceRequired, Tool: named.Name}, nil
	case named.Name == "" && name == "":
		return choiceOfMode(named.Type)
	}
	return Choice{}, errChoice()
}

func choiceOfMode(mode string) (Choice, error) {
	switch mode {
	case choiceAuto:
		return Choice{}, nil
	case ChoiceNone, ChoiceRequired:
		return Choice{Mode: mode}, nil
	}
	return Choice{}, errChoice()
}

// At returns what of the choice counts in an iteration. To have to call a tool counts for the
// first one only: the model could never answer otherwise.
func (c Choice) At(iteration int) Choice {
	if iteration > 0 && c.Mode == ChoiceRequired {
		return Choice{}
	}
	return c
}

// Allows reports whether the model may call a tool.
func (c Choice) Allows(tool string) bool {
	return c.Mode != ChoiceNone && (c.Tool == "" || c.Tool == tool)
}

// Among returns the choice, or the zero one if it is to call a tool that there is not, and an
// error that says so.
func (c Choice) Among(tools []holdfast.ToolSpec) (Choice, *holdfast.Error) {
	if c.Mode != ChoiceRequired {
		return c, nil
	}
	for i := range tools {
		if c.Tool == "" || tools[i].Name == c.Tool {
			return c, nil
		}
	}
	if c.Tool == "" {
		return Choice{}, refusedChoice("forwardedProps.toolChoice is that a tool must be called, and there is none.").
			WithHint("Offer one in tools, or leave toolChoice out.")
	}
	return Choice{}, refusedChoice("forwardedProps.toolChoice names a tool that there is not: %.64q.", c.Tool).
		WithHint("Name one of the request's tools, or one of the agent's: GET /agents lists them.")
}

func errChoice() error {
	return refusedChoice("forwardedProps.toolChoice cannot be read.").WithHint(hintChoice)
}

func refusedChoice(format string, args ...any) *holdfast.Error {
	return holdfast.Errorf(codes.InvalidInput, format, args...).With("field", "forwardedProps.toolChoice")
}
