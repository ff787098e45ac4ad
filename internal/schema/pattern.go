package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The regular expressions of schemas. Go's regexp package matches in time that is linear in
// the text, but the factor is the size of the expression's program, and a short expression
// has a large one: "(\pL{1000}){1000}". So a program has a bound, which is known before it is
// compiled, and matching counts.

const (
	// maxPattern bounds the text of a regular expression, in bytes.
	maxPattern = 4_096
	// maxProgram bounds its program, in instructions.
	maxProgram = 20_000
	// patternSteps is what reading one takes besides its program.
	patternSteps = 20
)

// pattern is a regular expression that knows how large it is.
type pattern struct {
	compiled *regexp.Regexp
	program  int // about how many instructions it has
}

// MatchString and String are what the library asks of a regular expression.
func (p *pattern) MatchString(text string) bool { return p.compiled.MatchString(text) }
func (p *pattern) String() string               { return p.compiled.String() }

// patterns are the regular expressions of a schema, by their text. They are all found before
// the library reads it, so later they are only looked up, by many at once.
type patterns struct {
	known map[string]*pattern
	size  int // of all of them, in steps
}

func newPatterns() *patterns { return &patterns{known: map[string]*pattern{}} }

// engine compiles a regular expression for the library.
func (p *patterns) engine(text string) (jsonschema.Regexp, error) {
	if known := p.known[text]; known != nil {
		return known, nil
	}
	return compilePattern(text)
}

func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, &BoundError{Bound: fmt.Sprintf("a pattern of at most %s bytes", thousands(maxPattern))}
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := programSize(parsed)
	if size > maxProgram {
		const text = "a pattern whose program has at most %s instructions, repetitions counted"
		return nil, &BoundError{Bound: fmt.Sprintf(text, thousands(maxProgram))}
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{compiled, size}, nil
}

// programSize returns about how many instructions the program of a regular expression has;
// more than maxProgram for one that is too large.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)/4
	for _, sub := range re.Sub {
		size = min(size+programSize(sub), maxProgram+1)
	}
	times := 1
	if re.Op == syntax.OpRepeat {
		times = max(re.Min+1, re.Max) // an open end is one loop more
	}
	return min(size*times, maxProgram+1)
}

// strip removes from a schema the regular expressions that Go cannot compile, so that the
// rest of the schema still holds. Those that are too large are an error.
func (p *patterns) strip(schema any) error {
	switch s := schema.(type) {
	case []any:
		for _, v := range s {
			if err := p.strip(v); err != nil {
				return err
			}
		}
	case map[string]any:
		return p.stripObject(s)
	}
	return nil
}

func (p *patterns) stripObject(s map[string]any) error {
	if text, is := s["pattern"].(string); is {
		usable, err := p.usable(text)
		if err != nil {
			return err
		}
		if !usable {
			delete(s, "pattern")
		}
	}
	if err := p.stripMembers(s); err != nil {
		return err
	}
	for k, v := range s {
		switch k {
		case "enum", "const", "default", "examples":
			// These hold values, not schemas.
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
			named, _ := v.(map[string]any)
			for _, sub := range named {
				if err := p.strip(sub); err != nil {
					return err
				}
			}
		default:
			if err := p.strip(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// stripMembers strips the members of patternProperties.
func (p *patterns) stripMembers(s map[string]any) error {
	members, _ := s["patternProperties"].(map[string]any)
	for text := range members {
		usable, err := p.usable(text)
		if err != nil {
			return err
		}
		if !usable {
			delete(members, text)
			// Members that matched the pattern would now count as unknown.
			delete(s, "additionalProperties")
			delete(s, "unevaluatedProperties")
		}
	}
	return nil
}

// usable reports whether Go can compile a regular expression, and keeps it then. The error
// is a [*BoundError] if it is too large, or one more than the schema may have.
func (p *patterns) usable(text string) (bool, error) {
	if p.known[text] != nil {
		return true, nil
	}
	// Reading "\pL" is as much work as reading a hundred letters.
	if p.size += patternSteps + 4*len(text); p.size > MaxReading {
		return false, errReading()
	}
	compiled, err := compilePattern(text)
	var bound *BoundError
	if errors.As(err, &bound) {
		return false, err
	}
	if err != nil {
		return false, nil
	}
	p.known[text] = compiled
	if p.size += compiled.program; p.size > MaxReading {
		return false, errReading()
	}
	return true, nil
}
