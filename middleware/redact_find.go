package middleware

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// placeholder begins what stands in a secret's place; the name and "]" follow.
const placeholder = "[redacted:"

// redactor finds secrets.
type redactor struct {
	rules []redactRule
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

// redactRule finds one kind of secret.
type redactRule struct {
	name string
	// hints are texts of which at least one is in every match; without them every text
	// is searched. minDigits is how many digits are in every match.
	hints     []string
	minDigits int
	re        *regexp.Regexp
	// group is the group of re that is hidden; 0 is all of it.
	group int
	// narrow finds the secrets inside a match; nil: all of it is one.
	narrow func(match string) [][2]int
	// tail matches the end of a text that may be the beginning of a match.
	tail *regexp.Regexp
}

// secretSpan is a secret in a text, inside of what its rule has matched. Without a
// name it is a match in which there is nothing to hide.
type secretSpan struct {
	from, to             int
	matchFrom, matchEnds int
	name                 string
}

func newRedactor(o RedactionOptions) (*redactor, error) {
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

var patternNames = regexp.MustCompile(`^[a-z0-9_-]+$`)

func (p RedactionPattern) rule() (redactRule, error) {
	if !patternNames.MatchString(p.Name) {
		return redactRule{}, fmt.Errorf("the name is %q; write lower case letters, digits, _ and -", p.Name)
	}
	re, err := regexp.Compile(p.Regexp)
	if err != nil {
		return redactRule{}, fmt.Errorf("regexp of %s is not RE2: %w", p.Name, err)
	}
	if re.MatchString("") {
		return redactRule{}, fmt.Errorf("regexp of %s matches the empty text; write what the secret has at least", p.Name)
	}
	tail, err := regexp.Compile(tailOf(p.Regexp))
	if err != nil {
		return redactRule{}, fmt.Errorf("regexp of %s is too large to look for it in a stream; write a shorter one: %w", p.Name, err)
	}
	rule := redactRule{name: p.Name, re: re, group: max(re.SubexpIndex("secret"), 0), tail: tail}
	if literal, _ := re.LiteralPrefix(); literal != "" {
		rule.hints = []string{literal}
	}
	return rule, nil
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

// matches appends what the rule matches.
func (rule *redactRule) matches(text string, after int, spans []secretSpan) []secretSpan {
	if len(rule.hints) > 0 && !slices.ContainsFunc(rule.hints, func(h string) bool { return strings.Contains(text, h) }) {
		return spans
	}
	for _, m := range rule.re.FindAllStringSubmatchIndex(text, -1) {
		if m[0] < after {
			continue
		}
		s := secretSpan{from: m[2*rule.group], to: m[2*rule.group+1], matchFrom: m[0], matchEnds: m[1], name: rule.name}
		if rule.narrow == nil {
			if s.from == s.to || isPlaceholder(text[max(s.from, 0):max(s.to, 0)]) {
				s.name = ""
			}
			spans = append(spans, s)
			continue
		}
		for _, part := range rule.narrow(text[s.from:s.to]) {
			inside := s
			inside.from, inside.to = s.from+part[0], s.from+part[1]
			spans = append(spans, inside)
		}
		s.name = ""
		spans = append(spans, s)
	}
	return spans
}

// isPlaceholder reports whether a match is what stands there for a secret already.
func isPlaceholder(text string) bool {
	return strings.HasPrefix(text, placeholder) && strings.IndexByte(text, ']') == len(text)-1
}
