package redaction

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Validate says what is wrong with the options, and what to write instead.
func (o Options) Validate() error {
	_, err := newRedactor(o)
	return err
}

// redactor finds secrets.
type redactor struct {
	rules []secretRule
	// hints are those of all rules, by their first byte; first says which bytes those
	// are, and second what follows one of them: most texts are done with by that.
	hints         [256][]string
	first, second [256]bool
	// digits is the least number of digits that a rule needs; 0: none looks at digits.
	digits int
	// blind: there is a rule without hints, so every text is searched. short: there is a
	// hint of one byte.
	blind, short bool
	// arguments: those of tool calls are searched, too.
	arguments bool
}

func newRedactor(o Options) (*redactor, error) {
	r := &redactor{arguments: o.Arguments}
	if o.Builtin == nil || *o.Builtin {
		r.rules = slices.Clone(builtinRules())
	}
	for i, p := range o.Patterns {
		rule, err := p.rule()
		if err != nil {
			return nil, fmt.Errorf("patterns[%d]: %w", i, err)
		}
		r.rules = append(r.rules, rule)
	}
	if len(r.rules) == 0 {
		return nil, errors.New("nothing is redacted; add a pattern, or leave builtin on")
	}
	for _, rule := range r.rules {
		for _, hint := range rule.hints {
			r.hints[hint[0]] = append(r.hints[hint[0]], hint)
			r.first[hint[0]] = true
			if len(hint) > 1 {
				r.second[hint[1]] = true
			}
			r.short = r.short || len(hint) == 1
		}
		r.digits = max(r.digits, rule.minDigits) // one rule has it
		r.blind = r.blind || len(rule.hints) == 0 && rule.minDigits == 0
	}
	return r, nil
}

// find returns the secrets of a text in their order. Those that overlap are one.
func (r *redactor) find(text string) []secretSpan {
	if !r.suspicious(text) {
		return nil
	}
	return united(r.matches(text, 0))
}

// matches are what the rules match in a text, at or after a place. The text before it
// is there for what looks at its neighbours.
func (r *redactor) matches(text string, after int) []secretSpan {
	var spans []secretSpan
	for i := range r.rules {
		spans = r.rules[i].matches(text, after, spans)
	}
	return spans
}

// united are the secrets among matches, in their order, with those that overlap as one.
func united(spans []secretSpan) []secretSpan {
	slices.SortStableFunc(spans, func(a, b secretSpan) int { return a.from - b.from })
	var out []secretSpan
	for _, s := range spans {
		switch n := len(out); {
		case s.name == "":
		case n > 0 && s.from < out[n-1].to:
			out[n-1].to = max(out[n-1].to, s.to)
		default:
			out = append(out, s)
		}
	}
	return out
}

// suspicious is a quick look at a text: false means that there is no secret in it.
// It is what a log line without secrets costs.
func (r *redactor) suspicious(text string) bool {
	if r.blind {
		return true
	}
	digits := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if isDigit(c) {
			digits++
		}
		if r.first[c] && (r.short || i+1 < len(text) && r.second[text[i+1]]) && r.hinted(text[i:]) {
			return true
		}
	}
	return r.digits > 0 && digits >= r.digits
}

func (r *redactor) hinted(text string) bool {
	return slices.ContainsFunc(r.hints[text[0]], func(hint string) bool { return strings.HasPrefix(text, hint) })
}
