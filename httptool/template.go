package httptool

// Templates: texts with {name} for an argument and ${NAME} for a variable of the environment.
// An argument is escaped for its place, so that it can end neither a segment of a path nor a
// member of a query nor a header.

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// callKey is the name in templates that stands for the call's idempotency key.
const callKey = "call.key"

// piece is a piece of a template: a text as it is, or the name of an argument.
type piece struct {
	text, name string
	secret     bool // the text is from the environment
}

// template is a text with names in it.
type template []piece

var (
	// names are what stands between { and }; variables what stands between ${ and }.
	names     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	variables = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// parseTemplate reads a template.
func parseTemplate(text string, getenv func(string) string) (t template, err error) {
	for text != "" {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			return append(t, piece{text: text}), nil
		}
		end := strings.IndexByte(text[i:], '}')
		if text[i] == '}' || end < 0 {
			return nil, fmt.Errorf("it has a %c without its counterpart", text[i])
		}
		name, env := text[i+1:i+end], i > 0 && text[i-1] == '$'
		before := text[:i]
		text = text[i+end+1:]
		if env {
			before = before[:i-1]
		}
		if before != "" {
			t = append(t, piece{text: before})
		}
		p := piece{name: name}
		if env {
			p, err = variable(name, getenv)
		} else if !names.MatchString(name) {
			err = fmt.Errorf("it has {%s}: between { and } must be the name of a parameter", name)
		}
		if err != nil {
			return nil, err
		}
		t = append(t, p)
	}
	return t, nil
}

// variable returns what a variable of the environment has. Its name is strict, because it
// is shown and somebody may have put the secret itself there.
func variable(name string, getenv func(string) string) (piece, error) {
	if !variables.MatchString(name) {
		return piece{}, fmt.Errorf("it has a ${…} without the NAME of an environment variable in it")
	}
	value := getenv(name)
	if value == "" {
		return piece{}, fmt.Errorf("the environment variable %s is not set", name)
	}
	return piece{text: value, secret: true}, nil
}

// names returns the names of the arguments in a template.
func (t template) names() (all []string) {
	for _, p := range t {
		if p.name != "" && !slices.Contains(all, p.name) {
			all = append(all, p.name)
		}
	}
	return all
}

// secrets returns the texts from the environment.
func (t template) secrets() (all []string) {
	for _, p := range t {
		if p.secret {
			all = append(all, p.text)
		}
	}
	return all
}

// split cuts a template at each separator in its literal text; a variable's text is no
// such text.
func (t template) split(separator string) []template {
	parts := []template{nil}
	for _, p := range t {
		if p.name != "" || p.secret {
			parts[len(parts)-1] = append(parts[len(parts)-1], p)
			continue
		}
		for i, text := range strings.Split(p.text, separator) {
			if i > 0 {
				parts = append(parts, nil)
			}
			if text != "" {
				parts[len(parts)-1] = append(parts[len(parts)-1], piece{text: text})
			}
		}
	}
	return parts
}

// expand puts the values of the arguments in; false if one of them is not given.
func (t template) expand(a *arguments, put func(piece, string) (string, error)) (string, bool, error) {
	var b strings.Builder
	for _, p := range t {
		value := p.text
		if p.name != "" {
			v, given, err := a.text(p.name)
			if err != nil || !given {
				return "", false, err
			}
			value = v
		}
		if p.name != "" || p.secret {
			v, err := put(p, value)
			if err != nil {
				return "", false, err
			}
			value = v
		}
		b.WriteString(value)
	}
	return b.String(), true, nil
}

// escape writes a value so that it is only a value, in a path as in a query: everything but
// the unreserved characters of RFC 3986 is escaped (RFC 6570, section 3.2.2).
func escape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// unescape replaces what is escaped, and leaves a % that escapes nothing, as careless
// servers do.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c, err := url.PathUnescape(s[i:min(i+3, len(s))]); err == nil && s[i] == '%' {
			b.WriteString(c)
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// inPath escapes a value for a path. Servers and proxies disagree about slashes and dots
// that are escaped, some of them more than once, so a value with any of that is refused.
func inPath(p piece, value string) (string, error) {
	for v := value; ; {
		if v == "" || strings.ContainsAny(v, `/\`) || strings.ContainsFunc(v, unicode.IsControl) {
			return "", fmt.Errorf("%s must not be empty and must not have slashes, backslashes or control characters",
				p.name)
		}
		next := unescape(v)
		if next == v {
			return escape(value), nil
		}
		v = next
	}
}

// isDots reports whether a segment of a path means this directory or the one above it, to a
// reader that unescapes it or cuts off its parameters.
func isDots(segment string) bool {
	for {
		bare, _, _ := strings.Cut(segment, ";")
		if bare == "." || bare == ".." {
			return true
		}
		next := unescape(segment)
		if next == segment {
			return false
		}
		segment = next
	}
}

// inHeader returns a value for a header.
func inHeader(p piece, value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || r > unicode.MaxLatin1 }) {
		return "", fmt.Errorf("%s must not have line endings, control characters or characters beyond Latin-1", p.name)
	}
	return value, nil
}
