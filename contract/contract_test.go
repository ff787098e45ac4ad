package contract_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/contract"
)

type args struct {
	Amount int `json:"amount"`
}

// TestNew: a contract describes its arguments, checks them, and says that the call is
// finished from outside.
func TestNew(t *testing.T) {
	tool := contract.New[args]("approve", "asks", holdfast.Outside{ExpiresAfter: time.Hour},
		holdfast.WithTimeout(time.Minute))
	spec := tool.Spec()
	if spec.Name != "approve" || spec.Effect != holdfast.EffectOnce || spec.Timeout != time.Minute ||
		spec.Outside.ExpiresAfter != time.Hour || !strings.Contains(string(spec.Parameters), `"amount"`) {
		t.Errorf("%+v", spec)
	}
	if e := contract.New[args]("a", "b", holdfast.Outside{}, holdfast.WithEffect(holdfast.EffectIdempotent)).Spec().
		Effect; e != holdfast.EffectIdempotent {
		t.Errorf("the effect is %s", e)
	}
	var ask *holdfast.Interrupt
	if _, err := tool.Call(t.Context(), holdfast.ToolCall{Arguments: json.RawMessage(`{"amount":1}`)}); !errors.As(err,
		&ask) || ask.Reason != "holdfast:outside_call" {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{`{"amount":"x"}`, `{`, ``, `{"amount":1,"more":2}`} {
		_, err := tool.Call(t.Context(), holdfast.ToolCall{Arguments: json.RawMessage(bad)})
		if !errors.Is(err, holdfast.ErrArguments) || !strings.Contains(err.Error(), "nothing was started") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestOf: what cannot be is an error that names the field; New panics with it.
func TestOf(t *testing.T) {
	for want, spec := range map[string]holdfast.ToolSpec{
		"a tool needs a name":          {Outside: &holdfast.Outside{}},
		"the field Outside is missing": {Name: "a"},
		"the field Parameters: ": {Name: "a", Outside: &holdfast.Outside{},
			Parameters: json.RawMessage(`{"type":7}`)},
		"the field Result: ":        {Name: "a", Outside: &holdfast.Outside{Result: json.RawMessage(`{`)}},
		"the field ExpiresAfter is": {Name: "a", Outside: &holdfast.Outside{ExpiresAfter: -1}},
		"the field FinishedBy is":   {Name: "a", Outside: &holdfast.Outside{FinishedBy: access.RoleServerOperator}},
	} {
		if _, err := contract.Of(spec); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	tool, err := contract.Of(holdfast.ToolSpec{Name: "a", Outside: &holdfast.Outside{}})
	if err != nil {
		t.Fatal(err)
	}
	var ask *holdfast.Interrupt
	if _, err := tool.Call(t.Context(), holdfast.ToolCall{Arguments: json.RawMessage(`[1]`)}); !errors.As(err, &ask) {
		t.Errorf("without a schema: %v", err)
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "contract.New(\"\")") {
			t.Errorf("it panics with %v", p)
		}
	}()
	contract.New[args]("", "", holdfast.Outside{})
}
