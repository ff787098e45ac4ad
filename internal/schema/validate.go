package schema

// Validation: checks JSON against a schema (check.go) and explains every violation in words
// that a model can act on.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxProblems bounds a message; a long list with the same mistake in every element can
// be understood from fewer.
const maxProblems = 50

// Validate checks JSON text. Its error lists every violation in plain words, with the
// JSON pointer of the wrong value:
//
//	"city" is missing; /days: 12 is more than the maximum 10
//
// If the check takes too long the error is a [*BoundError], or that of the context.
func (s *Schema) Validate(ctx context.Context, raw json.RawMessage) error {
	texts, err := s.Violations(ctx, raw)
	if err == nil && len(texts) > 0 {
		err = errors.New(strings.Join(texts, "; "))
	}
	return err
}

// Violations is [Schema.Validate] with a text for each violation; none if there is none. An
// error means that it is not known whether there are any.
func (s *Schema) Violations(ctx context.Context, raw json.RawMessage) ([]string, error) {
	if parts(raw) > MaxChecking {
		return nil, errChecking()
	}
	value, problems := decode(raw)
	if len(problems) > 0 {
		return problemTexts(problems), nil
	}
	problems, err := newCheck(ctx, s).run(s, value)
	if err != nil {
		return nil, err
	}
	return problemTexts(problems), nil
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

// noneFits says why none of several schemas fits.
func noneFits(reasons []string) string {
	return "none of the allowed forms fits (" + strings.Join(reasons, " | ") + ")"
}

// describe explains in words what is wrong with one value, which is shown like that.
func describe(k jsonschema.ErrorKind, shown string) []string {
	switch k := k.(type) {
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
	case *kind.Format:
		return []string{fmt.Sprintf("%s is not valid %s: %s", shown, k.Want, shorten(k.Err.Error(), 200))}
	}
	if text := describeSize(k); text != "" {
		return []string{text}
	}
	return []string{shorten(k.LocalizedString(message.NewPrinter(language.English)), 500)}
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

// maxBrief is how many characters of a value are shown.
const maxBrief = 60

// brief returns a value as JSON, shortened if it is long.
func brief(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case map[string]any, []any:
		b, err := json.Marshal(beginning(v, new(maxBrief)))
		if err != nil {
			return "it"
		}
		return shorten(string(b), maxBrief)
	case nil:
		return "null"
	}
	return shorten(fmt.Sprint(v), maxBrief)
}

// beginning returns of a value as many parts as can be shown, so that a large value is not
// written as a whole for each thing that is wrong with it.
func beginning(v any, left *int) any {
	*left--
	switch v := v.(type) {
	case string:
		return shorten(v, maxBrief)
	case []any:
		short := []any{}
		for _, item := range v {
			if *left < 0 {
				break
			}
			short = append(short, beginning(item, left))
		}
		return short
	case map[string]any:
		short := map[string]any{}
		for _, name := range smallest(v) {
			if *left < 0 {
				break
			}
			short[name] = beginning(v[name], left)
		}
		return short
	}
	return v
}

// smallest returns the first names of an object's members.
func smallest(object map[string]any) []string {
	if len(object) <= maxBrief {
		return slices.Sorted(maps.Keys(object))
	}
	var names []string
	for name := range object {
		at, _ := slices.BinarySearch(names, name)
		if at < maxBrief {
			names = slices.Insert(names, at, name)
			names = names[:min(len(names), maxBrief)]
		}
	}
	return names
}

// maxListed is how many values of a list are shown.
const maxListed = 100

func briefList(values []any) string {
	texts := make([]string, 0, min(len(values), maxListed)+1)
	for _, v := range values[:min(len(values), maxListed)] {
		texts = append(texts, brief(v))
	}
	if more := len(values) - maxListed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %s more", thousands(more)))
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
