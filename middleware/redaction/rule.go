package redaction

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// placeholder begins the text that replaces a secret; the name and "]" follow.
const placeholder = "[redacted:"

// secretRule finds one kind of secret.
type secretRule struct {
	name string
	// hints has texts of which every match contains at least one; without hints every
	// text is searched. minDigits is how many digits every match has.
	hints     []string
	minDigits int
	re        *regexp.Regexp
	// group is the index of the group that is hidden; 0 is the whole match.
	group int
	// narrow finds the secrets inside a match; nil means that all of it is secret.
	narrow func(match string) [][2]int
	// tail matches the end of a text that may be the beginning of a match.
	tail *regexp.Regexp
}

// secretSpan is a secret in a text, with the match that contains it. Without a name it is
// a match with nothing to hide.
type secretSpan struct {
	from, to             int
	matchFrom, matchEnds int
	name                 string
}

var patternNames = regexp.MustCompile(`^[a-z0-9_-]+$`)

func (p Pattern) rule() (secretRule, error) {
	if !patternNames.MatchString(p.Name) {
		return secretRule{}, fmt.Errorf("the name is %q; write lower case letters, digits, _ and -", p.Name)
	}
	re, err := regexp.Compile(p.Regexp)
	if err != nil {
		return secretRule{}, fmt.Errorf("regexp of %s is not RE2: %w", p.Name, err)
	}
	if re.MatchString("") {
		return secretRule{}, fmt.Errorf("regexp of %s matches the empty text; write one that "+
			"matches at least one character", p.Name)
	}
	tail, err := regexp.Compile(tailOf(p.Regexp))
	if err != nil {
		return secretRule{}, fmt.Errorf("regexp of %s is too large to search for in a stream; write a shorter one: %w",
			p.Name, err)
	}
	rule := secretRule{name: p.Name, re: re, group: max(re.SubexpIndex("secret"), 0), tail: tail}
	if literal, _ := re.LiteralPrefix(); literal != "" {
		rule.hints = []string{literal}
	}
	return rule, nil
}

// matches appends the matches of the rule.
func (rule *secretRule) matches(text string, after int, spans []secretSpan) []secretSpan {
	if len(rule.hints) > 0 && !slices.ContainsFunc(rule.hints, func(h string) bool {
		return strings.Contains(text, h)
	}) {
		return spans
	}
	for _, m := range rule.re.FindAllStringSubmatchIndex(text, -1) {
		if m[0] < after {
			continue
		}
		s := secretSpan{
			from:      m[2*rule.group],
			to:        m[2*rule.group+1],
			matchFrom: m[0],
			matchEnds: m[1],
			name:      rule.name,
		}
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

// isPlaceholder reports whether a match is a text that already replaces a secret.
func isPlaceholder(text string) bool {
	return strings.HasPrefix(text, placeholder) && strings.IndexByte(text, ']') == len(text)-1
}
