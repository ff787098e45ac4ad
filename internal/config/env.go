package config

// Values of the environment in the file: ${NAME} in baseURL, in proxy and in the values of headers.
// The file is checked without an environment, as `holdfast validate` does, so variables
// are filled in later, and what is wrong with them is reported at the same places.

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

var variables = regexp.MustCompile(`\$\{([^}]*)\}`)

var variableNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// useVariable is what to do about a secret in the file.
const useVariable = "write ${NAME} with the NAME of the environment variable that holds it, and replace that key, " +
	"because it is no longer secret"

// variablesIn checks the ${NAME}s of a value.
func (p *parser) variablesIn(text, what string, at place) bool {
	for _, found := range variables.FindAllStringSubmatch(text, -1) {
		if name := found[1]; !variableNames.MatchString(name) || looksLikeKey(name) {
			p.mistake(at, "%s has a ${…} without the NAME of an environment variable in it, like "+
				"${OPENAI_BASE_URL}: letters, digits and _", what)
			return false
		}
	}
	if strings.Contains(variables.ReplaceAllString(text, ""), "${") {
		p.mistake(at, "%s has a ${ without its }", what)
		return false
	}
	return true
}

// checkedURL reads a URL with variables, which wrong finds mistakes in.
func (r declaring) checkedURL(n *yaml.Node, what string, secret bool, wrong func(string) string) any {
	text, ok := r.p.text(n, what)
	at := position(resolve(n))
	if !ok || !r.p.variablesIn(text, what, at) {
		return nil
	}
	if secret && hasPassword(text) {
		r.p.mistake(at, "%s has a password or a token in it; %s", what, useVariable)
		return nil
	}
	if mistake := wrong(text); mistake != "" && !variables.MatchString(text) {
		r.p.mistake(at, "%s", mistake)
		return nil
	}
	return phrase{text: text, what: what, at: at, wrong: wrong}
}

func (r declaring) baseURL(n *yaml.Node, what string) any {
	read, ok := r.checkedURL(n, what, false, wrongURL).(phrase)
	if !ok {
		return nil
	}
	read.text = strings.TrimSuffix(read.text, "/")
	return read
}

func (r declaring) modelProxy(n *yaml.Node, what string) any {
	return r.checkedURL(n, what, true, wrongProxy)
}

// headerNames matches tokens, the names that RFC 9110, section 5.1, allows.
var headerNames = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// headers returns the headers, and the place of each value.
func (p *parser) headers(n *yaml.Node) (headers map[string]string, at map[string]place) {
	headers, at = map[string]string{}, map[string]place{}
	seen := map[string]bool{}
	p.entries(n, "headers", func(name string, where place, value *yaml.Node) {
		what := member("headers", name)
		text, ok := p.text(value, what)
		lower, valueAt := strings.ToLower(name), position(resolve(value))
		switch {
		case !headerNames.MatchString(name):
			p.mistake(where, "the header %s has a name that HTTP does not allow; use letters, digits and -", show(name))
		case seen[lower]:
			p.mistake(where, "the header %s occurs twice; upper and lower case are the same", show(name))
		case !ok || !p.variablesIn(text, what, valueAt):
		case strings.ContainsFunc(text, unicode.IsControl):
			p.mistake(valueAt, "%s contains a line ending or another control character; remove it", what)
		case slices.ContainsFunc(strings.Fields(variables.ReplaceAllString(text, " ")), looksLikeKey):
			p.mistake(valueAt, "%s looks like a key; write ${NAME} with the NAME of the environment variable that "+
				"holds it, and replace that key, because it is no longer secret", what)
		default:
			headers[name], at[name] = text, valueAt
		}
		seen[lower] = true
	})
	return headers, at
}

// filler puts values of the environment in.
type filler struct {
	mistakes
	getenv func(string) string
}

// fill returns a text with the values of its variables; "" if one is not set.
func (f *filler) fill(text, what string, at place) string {
	complete := true
	text = variables.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		value := f.getenv(name)
		if value == "" {
			f.mistake(at, "%s needs the environment variable %s, which is not set", what, name)
			complete = false
		}
		return value
	})
	if !complete {
		return ""
	}
	return text
}

// beside returns a path that is relative to the file that names it.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
