package schema

// Validation: checks JSON against a schema and explains every violation in words that a
// model can act on.

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxProblems bounds a message; a long list with the same mistake in every element can
// be understood from fewer.
const maxProblems = 50

// Validate checks JSON text. Its error lists every violation in plain words, with the
// JSON pointer of the wrong value:
//
//	"city" is missing; /days: 12 is more than the maximum 10
func (s *Schema) Validate(raw json.RawMessage) error {
	if texts := s.Violations(raw); len(texts) > 0 {
		return errors.New(strings.Join(texts, "; "))
	}
	return nil
}

// Violations is [Schema.Validate] with a text for each violation; none if there is none.
func (s *Schema) Violations(raw json.RawMessage) []string {
	value, problems := decode(raw)
	if len(problems) > 0 {
		return problemTexts(problems)
	}
	err := s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []string{err.Error()}
	}
	return problemTexts(explain(invalid, value))
}

func problemsError(problems []problem) error {
	return errors.New(strings.Join(problemTexts(problems), "; "))
}

func problemTexts(problems []problem) []string {
	slices.SortStableFunc(problems, func(a, b problem) int { return strings.Compare(a.path, b.path) })
	var texts []string
	for _, p := range problems {
		text := p.text
		if p.path != "" {
			text = p.path + ": " + text
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		if len(texts) > maxProblems {
			texts[maxProblems] = "and more"
			break
		}
	}
	return texts
}

// explain turns the validator's tree of errors into a list.
func explain(e *jsonschema.ValidationError, root any) []problem {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			return []problem{{pointer(e.InstanceLocation), alternatives(e, root)}}
		}
	}
	if len(e.Causes) > 0 {
		var all []problem
		for _, c := range e.Causes {
			all = append(all, explain(c, root)...)
		}
		return all
	}
	var all []problem
	for _, text := range describe(e, at(root, e.InstanceLocation)) {
		all = append(all, problem{pointer(e.InstanceLocation), text})
	}
	// Members come from maps, so sort them: the same mistake always has the same message.
	slices.SortFunc(all, func(a, b problem) int { return strings.Compare(a.text, b.text) })
	return all
}

// alternatives explains why none of several schemas fits.
func alternatives(e *jsonschema.ValidationError, root any) string {
	var reasons []string
	for _, c := range e.Causes {
		reason := problemsError(explain(c, root)).Error()
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return "none of the allowed forms fits (" + strings.Join(reasons, " | ") + ")"
}

// describe explains in words what is wrong with one value.
func describe(e *jsonschema.ValidationError, value any) []string {
	shown := brief(value)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return eachMember(k.Missing, "%s is missing")
	case *kind.AdditionalProperties:
		return eachMember(k.Properties, "%s is not a known member")
	case *kind.DependentRequired:
		return eachMember(k.Missing, "%s is missing; "+quote(k.Prop)+" needs it")
	case *kind.Type:
		return []string{fmt.Sprintf("%s is %s, but it must be %s", shown, article(k.Got), articles(k.Want))}
	case *kind.Enum:
		return []string{fmt.Sprintf("%s is not one of %s", shown, briefList(k.Want))}
	case *kind.Const:
		return []string{fmt.Sprintf("%s must be %s", shown, brief(k.Want))}
	case *kind.Minimum:
		return []string{fmt.Sprintf("%s is less than the minimum %s", shown, number(k.Want))}
	case *kind.Maximum:
		return []string{fmt.Sprintf("%s is more than the maximum %s", shown, number(k.Want))}
	case *kind.ExclusiveMinimum:
		return []string{fmt.Sprintf("%s must be more than %s", shown, number(k.Want))}
	case *kind.ExclusiveMaximum:
		return []string{fmt.Sprintf("%s must be less than %s", shown, number(k.Want))}
	case *kind.MultipleOf:
		return []string{fmt.Sprintf("%s is not a multiple of %s", shown, number(k.Want))}
	case *kind.Pattern:
		return []string{fmt.Sprintf("%s does not match the pattern %s", shown, k.Want)}
	case *kind.OneOf:
		return []string{"more than one of the allowed forms fits; exactly one must"}
	case *kind.FalseSchema:
		return []string{"no value is allowed here"}
	}
	if text := describeSize(e.ErrorKind); text != "" {
		return []string{text}
	}
	return []string{e.BasicOutput().Error.String()}
}

func describeSize(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("it has %d characters, the minimum is %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("it has %d characters, the maximum is %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("it has %d items, the minimum is %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("it has %d items, the maximum is %d", k.Got, k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("it has %d members, the minimum is %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("it has %d members, the maximum is %d", k.Got, k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("the items %d and %d are equal, but each must be unique", k.Duplicates[0], k.Duplicates[1])
	}
	return ""
}

func eachMember(names []string, format string) []string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = fmt.Sprintf(format, quote(n))
	}
	return texts
}

// at returns the value at a path.
func at(v any, path []string) any {
	for _, p := range path {
		switch c := v.(type) {
		case map[string]any:
			v = c[p]
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		}
	}
	return v
}

func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escape(p))
	}
	return b.String()
}

// brief returns a value as JSON, shortened if it is long.
func brief(v any) string {
	const limit = 60
	switch v := v.(type) {
	case string:
		return quote(v)
	case map[string]any, []any:
		b, err := json.Marshal(v)
		if err != nil {
			return "it"
		}
		return shorten(string(b), limit)
	case nil:
		return "null"
	}
	return shorten(fmt.Sprint(v), limit)
}

func briefList(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = brief(v)
	}
	return strings.Join(texts, ", ")
}

func quote(s string) string { return strconv.Quote(shorten(s, 80)) }

func shorten(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func articles(types []string) string {
	texts := make([]string, 0, len(types))
	for _, t := range types {
		texts = append(texts, article(t))
	}
	// null is the exception, so it comes last.
	slices.SortStableFunc(texts, func(a, b string) int {
		return rank(a) - rank(b)
	})
	return strings.Join(texts, " or ")
}

func rank(t string) int {
	if t == "null" {
		return 1
	}
	return 0
}

func article(t string) string {
	switch t {
	case "null":
		return t
	case "array", "integer", "object":
		return "an " + t
	}
	return "a " + t
}
