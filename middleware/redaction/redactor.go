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

// redactor finds secrets. Most texts have none, so it looks for hints first: short texts
// of which every match contains at least one.
type redactor struct {
	rules []secretRule
	// hints has the hints of all rules by their first byte. first tells which bytes those
	// are, and second which bytes follow them, so that most positions are ruled out by
	// two look-ups.
	hints         [256][]string
	first, second [256]bool
	// digits is the smallest number of digits that a match of a rule without hints has; 0
	// if there is no such rule.
	digits int
	// blind reports a rule without hints, so that every text is searched; short reports a
	// hint of one byte.
	blind, short bool
	// arguments reports that the arguments of tool calls are searched too.
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
		r.digits = max(r.digits, rule.minDigits) // only one rule has it
		r.blind = r.blind || len(rule.hints) == 0 && rule.minDigits == 0
	}
	return r, nil
}

// find returns the secrets in a text in order. Overlapping ones are joined.
func (r *redactor) find(text string) []secretSpan {
	if !r.suspicious(text) {
		return nil
	}
	return united(r.matches(text, 0))
}

// matches returns what the rules match in a text at or after a position. The text before
// it is only there for rules that look at their context.
func (r *redactor) matches(text string, after int) []secretSpan {
	var spans []secretSpan
	for i := range r.rules {
		spans = r.rules[i].matches(text, after, spans)
	}
	return spans
}

// united returns the secrets among matches in order, and joins those that overlap.
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

// suspicious takes a quick look at a text: if it is false, there is no secret in it. For
// a log line without secrets that is all the work.
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
