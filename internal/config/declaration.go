package config

// The sources of tools that the file declares: its MCP servers, its tools and its OpenAPI
// documents. This package knows their keys and no more: a declaration is handed over as JSON,
// in the shape of the options of what is made of it, and an error that names one of these
// options is reported at the option's place.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of declarations.
const (
	KindMCP     = "mcpServers"
	KindHTTP    = "http"
	KindOutside = "outside"
	KindFiles   = "files"
	KindFetch   = "fetch"
	KindOpenAPI = "openapi"
)

// Declaration is an entry of mcpServers, tools or openapi, an agent, or a model of an agent.
type Declaration struct {
	Kind string
	// Name is the MCP server's or the tool's; empty for kinds that make tools with names of
	// their own.
	Name string
	// Document is the OpenAPI document.
	Document []byte
	// Credential is what is asked for at each call; nil for nothing.
	Credential *Credential

	file   string
	start  place
	at     map[string]place // of the values, by their path, like operations[0].name
	values map[string]any   // as in JSON, with a phrase for each text that may have variables
}

// Credential says where the credential for a service is. Either Env or File is set.
type Credential struct {
	// Env is the name of an environment variable.
	Env string
	// File is a path, absolute or relative to the working directory.
	File string
	// Header and Prefix say how the credential is sent; empty for the default.
	Header, Prefix string
	// Scopes are what it must allow.
	Scopes []string
}

// phrase is a text that may have ${NAME}s in it.
type phrase struct {
	text, what string
	at         place
	as         phraseKind
	wrong      func(filled string) string // what is wrong with it, if anything can be
}

// phraseKind says what becomes of the variables of a phrase.
type phraseKind int

const (
	plainText   phraseKind = iota // they are replaced
	addressText                   // the same; the text is a URL
	pathText                      // the same; the path is relative to the file
	template                      // the user of the text replaces them
)

// unknownAddress stands for a URL with variables when there is no environment.
const unknownAddress = "https://variable.invalid"

// Decode writes the declaration into options that have JSON names, with the values of the
// environment. The error is an [*Error] with each variable that is not set, and never has a
// value in it. Without getenv the file is only checked: something stands for each variable,
// or nothing if it is a path.
func (d *Declaration) Decode(into any, getenv func(string) string) error {
	fill := &filler{mistakes{file: d.file}, getenv}
	values := fill.filled(d.values)
	if err := fill.err(); err != nil {
		return err
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return d.Errorf("", "this cannot be written as JSON: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return d.Errorf("", "%v", err) // a key that is known here and not there
	}
	return nil
}

// filled returns a value with the phrases in it filled in.
func (f *filler) filled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		filled := make(map[string]any, len(v))
		for key, value := range v {
			filled[key] = f.filled(value)
		}
		return filled
	case []any:
		filled := make([]any, len(v))
		for i, value := range v {
			filled[i] = f.filled(value)
		}
		return filled
	case phrase:
		return f.phrase(v)
	}
	return v
}

// phrase returns a text with its variables filled in.
func (f *filler) phrase(t phrase) string {
	has, text := variables.MatchString(t.text), t.text
	switch {
	case f.getenv != nil && t.as == template:
		f.fill(text, t.what, t.at) // only to find what is not set
		return text
	case f.getenv != nil:
		text = f.fill(text, t.what, t.at)
		if t.wrong != nil && text != "" {
			if mistake := t.wrong(text); mistake != "" {
				f.mistake(t.at, "%s", mistake)
			}
		}
	case has && t.as == addressText:
		return unknownAddress
	case has && t.as == pathText:
		return ""
	case has && t.as == plainText:
		return variables.ReplaceAllString(text, "x")
	}
	if t.as == pathText {
		return beside(f.file, text)
	}
	return text
}

// Errorf makes a mistake that only the caller can find. It is reported at the value of the
// path or, if that is missing, where the declaration starts.
func (d *Declaration) Errorf(path, format string, args ...any) error {
	at, ok := d.at[path]
	if !ok {
		at = d.start
	}
	return &Error{File: d.file, Mistakes: []Mistake{mistakeAt(at, format, args...)}}
}

// Located reports an error about options at the option that it names at its beginning, in a
// form like "url: …", "operations[1] (get): name: …" or "the field Result: …". within is the
// path of the options within the declaration. A joined error is several mistakes.
func (d *Declaration) Located(err error, within string) error {
	located := &Error{File: d.file}
	d.locate(located, err, within)
	return located
}

func (d *Declaration) locate(into *Error, err error, within string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		for _, err := range joined.Unwrap() {
			d.locate(into, err, within)
		}
		return
	}
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "the field "); ok {
		text = lowerFirst(rest)
	}
	into.Mistakes = append(into.Mistakes, mistakeAt(d.placeIn(text, within), "%s", text))
}

// optionName matches the name of an option at the beginning of an error.
var optionName = regexp.MustCompile(`^([A-Za-z][^\s:]*)(?: \([^)]*\))?:? `)

// placeIn returns the place of the option that a text names at its beginning, as exactly as
// it is known.
func (d *Declaration) placeIn(text, within string) place {
	at, ok := d.at[within]
	if !ok {
		at = d.start
	}
	for path := within; ; {
		m := optionName.FindStringSubmatch(text)
		if m == nil {
			return at
		}
		path, text = join(path, m[1]), text[len(m[0]):]
		exact, known := d.at[path]
		if !known { // a schema's error may be about a part of it
			return at
		}
		at = exact
	}
}

// join returns the path of a member.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// item returns the path of an item of a list.
func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func lowerFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(first)) + s[size:]
}
