package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
)

// Condition is a condition on an argument of a tool call. All members that are set must
// hold. In a configuration file a plain string is a Glob.
type Condition struct {
	// Glob is matched against the whole text of the value: the content of a string, and
	// the JSON of anything else. A * matches any text, including none.
	Glob string `json:"glob,omitempty"`
	// Equals is the value itself. Numbers are compared by value.
	Equals any `json:"equals,omitempty"`
	// OneOf lists the values that are allowed.
	OneOf []any `json:"oneOf,omitempty"`
	// Above is what a number has to be greater than.
	Above *float64 `json:"above,omitempty"`
	// Below is what a number has to be less than.
	Below *float64 `json:"below,omitempty"`
	// Matches is an RE2 expression that is searched for in the text of the value. To
	// match all of the text, begin it with ^ and end it with $.
	Matches string `json:"matches,omitempty"`
}

// UnmarshalJSON reads a glob, or an object with the members of a condition.
func (c *Condition) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &c.Glob)
	}
	type members Condition
	var m members
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return fmt.Errorf("a condition is a text with * or has equals, oneOf, above, below or matches: %w", err)
	}
	*c = Condition(m)
	return nil
}

// argCheck reports whether a value that readJSON has read satisfies a condition.
type argCheck func(value any) bool

func (c Condition) compile() (argCheck, error) {
	if _, err := json.Marshal(c); err != nil { // the name of a rule contains its conditions
		return nil, fmt.Errorf("the condition cannot be written as JSON: %w", err)
	}
	var all []argCheck
	if c.Glob != "" {
		all = append(all, func(v any) bool { return shared.Matches(c.Glob, textOf(v)) })
	}
	if c.Equals != nil {
		all = append(all, equalTo(c.Equals))
	}
	if len(c.OneOf) > 0 {
		all = append(all, equalTo(c.OneOf...))
	}
	if c.Above != nil {
		all = append(all, func(v any) bool { n, ok := numberOf(v); return ok && n > *c.Above })
	}
	if c.Below != nil {
		all = append(all, func(v any) bool { n, ok := numberOf(v); return ok && n < *c.Below })
	}
	if c.Matches != "" {
		re, err := regexp.Compile(c.Matches)
		if err != nil {
			return nil, fmt.Errorf("matches is not an expression in RE2's syntax: %w", err)
		}
		all = append(all, func(v any) bool { return re.MatchString(textOf(v)) })
	}
	if len(all) == 0 {
		return nil, errors.New(`the condition says nothing: write a text like "*@example.com", or equals, oneOf, ` +
			`above, below or matches`)
	}
	return func(v any) bool {
		return !slices.ContainsFunc(all, func(holds argCheck) bool { return !holds(v) })
	}, nil
}

// equalTo returns a check for one of the wanted values, which can be encoded as JSON.
func equalTo(wanted ...any) argCheck {
	var plain []any
	for _, w := range wanted {
		text, _ := json.Marshal(w)
		// A value that two readers may understand differently equals nothing.
		if v, err := readJSON(text); err == nil {
			plain = append(plain, v)
		}
	}
	return func(v any) bool {
		return slices.ContainsFunc(plain, func(w any) bool { return sameValue(v, w) })
	}
}

// exactUpTo is the limit below which different whole numbers are also different as
// float64. Larger numbers, such as ids, are compared by their text.
const exactUpTo = 1 << 53

func sameValue(a, b any) bool {
	x, aNumber := numberOf(a)
	y, bNumber := numberOf(b)
	if aNumber && bNumber && math.Abs(x) < exactUpTo {
		return x == y
	}
	return bytes.Equal(strictjson.Canonical(a), strictjson.Canonical(b))
}

func numberOf(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	// The only possible error is a number that is too large, and then f is infinite.
	f, _ := strconv.ParseFloat(n.String(), 64)
	return f, true
}

// textOf returns the text that globs and expressions are matched against.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(strictjson.Canonical(v))
}
