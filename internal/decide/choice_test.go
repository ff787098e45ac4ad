package decide

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestChoiceOf: what clients send to have the model call a tool, and what is refused.
func TestChoiceOf(t *testing.T) {
	t.Parallel()
	suggest := Choice{Mode: ChoiceRequired, Tool: "suggest"}
	for sent, want := range map[string]Choice{
		``:                                   {},
		`null`:                               {},
		`"props of another kind"`:            {},
		`{"user":1}`:                         {},
		`{"toolchoice":"none"}`:              {},
		`{"toolChoice":null}`:                {},
		`{"toolChoice":"auto"}`:              {},
		`{"toolChoice":"none"}`:              {Mode: ChoiceNone},
		`{"toolChoice":"required"}`:          {Mode: ChoiceRequired},
		`{"toolChoice":{"type":"auto"}}`:     {},
		`{"toolChoice":{"type":"required"}}`: {Mode: ChoiceRequired},
		`{"toolChoice":{"type":"function","function":{"name":"suggest"}}}`:     suggest,
		`{"a":1,"toolChoice":{"type":"function","name":"suggest"}}`:            suggest,
		`{"toolChoice":{"type":"function","name":"x","function":{"name":""}}}`: {Mode: ChoiceRequired, Tool: "x"},
	} {
		if got, err := ChoiceOf(json.RawMessage(sent)); got != want || err != nil {
			t.Errorf("%s: got %+v, %v; want %+v", sent, got, err, want)
		}
	}
	for _, sent := range []string{
		`"any"`, `"suggest"`, `""`, `1`, `true`, `[]`, `{}`, `{"type":"function"}`,
		`{"type":"function","function":{}}`, `{"type":"tool","name":"x"}`,
		`{"type":"function","function":"x"}`, `{"type":"none","name":"x"}`,
		`{"type":"function","name":"a","function":{"name":"b"}}`, `{"type":1}`,
	} {
		_, err := ChoiceOf(json.RawMessage(`{"toolChoice":` + sent + `}`))
		if e := holdfast.AsError(err); err == nil || e.Code != "invalid_input" ||
			!strings.Contains(e.Hint, `"required"`) || e.Details["field"] != "forwardedProps.toolChoice" {
			t.Errorf("%s: %+v", sent, err)
		}
	}
}

// TestChoiceAmong: a tool that must be called exists; what must be called must only once.
func TestChoiceAmong(t *testing.T) {
	t.Parallel()
	tools := []holdfast.ToolSpec{{Name: "a"}, {Name: "b"}}
	for _, c := range []Choice{{}, {Mode: ChoiceNone}, {Mode: ChoiceRequired}, {Mode: ChoiceRequired, Tool: "b"}} {
		if got, err := c.Among(tools); got != c || err != nil {
			t.Errorf("%+v: got %+v, %v", c, got, err)
		}
	}
	for _, c := range []Choice{{Mode: ChoiceRequired, Tool: "c"}, {Mode: ChoiceRequired, Tool: "A"}} {
		if got, err := c.Among(tools); got != (Choice{}) || err == nil {
			t.Errorf("%+v: got %+v, %v", c, got, err)
		}
	}
	if got, err := (Choice{Mode: ChoiceRequired}).Among(nil); got != (Choice{}) || err == nil {
		t.Errorf("without tools: got %+v, %v", got, err)
	}
	forced, none := Choice{Mode: ChoiceRequired, Tool: "a"}, Choice{Mode: ChoiceNone}
	if forced.At(0) != forced || forced.At(1) != (Choice{}) || none.At(7) != none {
		t.Error("a choice counts in other iterations than it should")
	}
	if !forced.Allows("a") || forced.Allows("b") || none.Allows("a") || !(Choice{}).Allows("a") ||
		!(Choice{Mode: ChoiceRequired}).Allows("a") {
		t.Error("a choice allows other calls than it should")
	}
}
