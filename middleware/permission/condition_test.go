package permission

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestCondition reads every condition as a configuration file has it.
func TestCondition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		condition string
		yes, no   []string
	}{
		{`"EUR"`, []string{`"EUR"`}, []string{`"USD"`, `"EURO"`, `null`}},
		{`"*@example.com"`, []string{`"a@example.com"`}, []string{`"a@example.org"`}},
		{`"1*"`, []string{`12`, `"1"`, `1.5`}, []string{`21`}},
		{`{"glob":"t*"}`, []string{`true`, `"two"`}, []string{`false`}},
		{`"*<b>*"`, []string{`["<b>"]`}, []string{`["b"]`}},
		{`{"equals":100}`, []string{`100`, `1e2`, `100.0`}, []string{`101`, `"100"`, `null`, `[100]`}},
		{`{"equals":9007199254740993}`, []string{`9007199254740993`}, []string{`9007199254740992`, `9007199254740994`}},
		{`{"equals":false}`, []string{`false`}, []string{`true`, `null`, `0`}},
		{`{"equals":{"b":1,"a":[2]}}`, []string{`{"a":[2],"b":1}`}, []string{`{"a":[2]}`}},
		{`{"equals":{"a":1,"A":2}}`, nil, []string{`null`, `{"a":1}`}},
		{`{"oneOf":["DE","FR",3]}`, []string{`"FR"`, `3`}, []string{`"IT"`, `4`}},
		{`{"above":100}`, []string{`100.01`, `1e400`}, []string{`100`, `-5`, `"500"`, `true`}},
		{`{"below":0}`, []string{`-1`, `-1e400`}, []string{`0`, `"-1"`}},
		{`{"above":1,"below":3}`, []string{`2`}, []string{`1`, `3`}},
		{`{"matches":"^[a-z]+$"}`, []string{`"abc"`}, []string{`"abc\n"`, `"a1"`}},
		{`{"matches":"drop"}`, []string{`"let us drop it"`, `{"q":"drop"}`}, []string{`"Drop"`}},
	} {
		var c Condition
		if err := json.Unmarshal([]byte(tt.condition), &c); err != nil {
			t.Fatalf("%s: %v", tt.condition, err)
		}
		holds, err := c.compile()
		if err != nil {
			t.Fatalf("%s: %v", tt.condition, err)
		}
		for want, values := range map[bool][]string{true: tt.yes, false: tt.no} {
			for _, v := range values {
				value, err := readJSON([]byte(v))
				if err != nil {
					t.Fatalf("%s: %v", v, err)
				}
				if got := holds(value); got != want {
					t.Errorf("%s of %s: got %v", tt.condition, v, got)
				}
			}
		}
	}
}

func TestConditionMistakes(t *testing.T) {
	t.Parallel()
	var c Condition
	for _, text := range []string{`{"abov":1}`, `{"above":"1"}`, `[1]`, `7`} {
		if err := json.Unmarshal([]byte(text), &c); err == nil ||
			!strings.Contains(err.Error(), "equals, oneOf, above") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	infinite := math.Inf(1)
	for want, c := range map[string]Condition{
		"says nothing":              {},
		"RE2":                       {Matches: "("},
		"cannot be written as JSON": {Above: &infinite},
	} {
		if _, err := c.compile(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
