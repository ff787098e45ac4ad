package httptool

// A request's template: from the texts of the options to what is sent for the arguments of
// a call.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-agents/holdfast/internal/schema"
	"github.com/holdfast-agents/holdfast/internal/secrets"
)

// request is the template of a request.
type request struct {
	method string
	// base is scheme and host, which no argument can change.
	base    *url.URL
	path    []template // its segments, after the first slash
	query   []queryMember
	headers []header
	body    *node
	// contentType is the type of the body; empty means application/json.
	contentType string
	// rest: the body is an object of the arguments that nothing else uses.
	rest bool
	// declared are the arguments' names, as the schema has them.
	declared []string
	// strange: the request goes to whatever host a model has named.
	strange bool
	// secrets are texts that nobody may read.
	secrets []string
}

// queryMember is a member of the query.
type queryMember struct {
	name  template
	value template
	bare  bool // it has no =
	// style is how a list or an object is written; empty repeats the member for each item
	// of a list.
	style style
}

// style is how lists and objects are written where there is only text.
type style string

const (
	styleComma style = ","    // items behind each other
	styleSpace style = " "    // the same
	stylePipe  style = "|"    // the same
	styleDeep  style = "deep" // name[member]=value for each member of an object
	styleJSON  style = "json" // JSON
)

type header struct {
	name  string
	value template
	style style
}

// setURL reads the template of a URL.
func (r *request) setURL(text string, getenv func(string) string) error {
	t, err := parseTemplate(text, getenv)
	if err != nil {
		return err
	}
	if t, err = r.setBase(t); err != nil {
		return err
	}
	r.secrets = append(r.secrets, t.secrets()...)
	for _, p := range t {
		if p.name == "" && !p.secret {
			if err := checkLiteral(p.text); err != nil {
				return err
			}
		}
	}
	parts := t.split("?")
	r.path = parts[0].split("/")[1:]
	for _, segment := range r.path {
		if len(segment) == 1 && isDots(segment[0].text) {
			return errors.New("its path must not have . or .. as a segment")
		}
	}
	if len(parts) > 2 {
		return errors.New("it must have only one ?")
	}
	if len(parts) == 2 {
		return r.setQuery(parts[1])
	}
	return nil
}

// setBase reads scheme and host, and returns the rest of the template, which begins with a
// slash.
func (r *request) setBase(t template) (template, error) {
	var head string
	for len(t) > 0 && t[0].name == "" && (head == "" || !t[0].secret) {
		head += t[0].text
		t = t[1:]
	}
	scheme, rest, _ := strings.Cut(head, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 && len(t) > 0 {
		return nil, errors.New("scheme and host cannot have arguments: it must begin like https://api.example/")
	}
	if end < 0 {
		end = len(rest)
	}
	// The URL is not shown: there may be a password in it.
	u, err := url.Parse(scheme + "://" + rest[:end])
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it must be absolute, like https://api.example/orders/{id}")
	case u.User != nil:
		return nil, errors.New("it must have no user name and password: set a header")
	case strings.ContainsFunc(u.Host, func(c rune) bool { return c > unicode.MaxASCII }):
		return nil, errors.New("its host must be in ASCII: write the xn-- form of an international name")
	}
	r.base = u
	rest = rest[end:]
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	return append(template{{text: rest}}, t...), nil
}

// checkLiteral refuses what cannot stand in a URL as it is.
func checkLiteral(text string) error {
	if strings.ContainsFunc(text, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune("#\"<>\\^`|", c)
	}) {
		return errors.New(`it must have no fragment, spaces, quotes, <, >, \, ^, | and characters beyond ASCII: ` +
			`write them as %20 and the like`)
	}
	if _, err := url.PathUnescape(text); err != nil {
		return errors.New("it has a % without two hexadecimal digits after it: write %25")
	}
	return nil
}

func (r *request) setQuery(t template) error {
	for _, m := range t.split("&") {
		if len(m) == 0 {
			continue
		}
		parts := m.split("=")
		q := queryMember{name: parts[0], bare: len(parts) == 1}
		for i, part := range parts[1:] {
			if i > 0 {
				part = append(template{{text: "="}}, part...)
			}
			q.value = append(q.value, part...)
		}
		if len(q.name.names()) > 0 || len(q.name.secrets()) > 0 {
			return errors.New("the name of a member of its query cannot be an argument")
		}
		r.query = append(r.query, q)
	}
	return nil
}

// setHeaders reads the templates of headers.
func (r *request) setHeaders(headers map[string]string, getenv func(string) string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		t, err := parseTemplate(headers[name], getenv)
		if err == nil {
			err = checkHeader(name, t)
		}
		if err != nil {
			return fmt.Errorf("headers: %s: %w", name, err)
		}
		r.headers = append(r.headers, header{name: textproto.CanonicalMIMEHeaderKey(name), value: t})
		if len(t.names()) == 0 {
			whole, _, err := t.expand(&arguments{}, inHeader)
			if err != nil {
				return fmt.Errorf("headers: %s: its value has a line ending or a character that headers cannot have",
					name)
			}
			if secrets.IsName(name) { // it may be written down, without a variable
				r.secrets = append(r.secrets, strings.Fields(whole)...)
			}
		}
		r.secrets = append(r.secrets, t.secrets()...)
	}
	return nil
}

// overrides are headers that some servers and proxies prefer to the method or the path.
var overrides = []string{
	"X-Http-Method-Override",
	"X-Http-Method",
	"X-Method-Override",
	"X-Original-Url",
	"X-Rewrite-Url",
	"X-Forwarded-Host",
}

func checkHeader(name string, t template) error {
	switch canonical := textproto.CanonicalMIMEHeaderKey(name); {
	case name == "" || strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, c)
	}):
		return errors.New("this is no name that HTTP allows")
	case slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te",
		"Trailer", "Expect"}, canonical):
		return errors.New("it cannot be set: it belongs to the connection")
	case slices.Contains([]string{"Authorization", "Cookie", "Proxy-Authorization"}, canonical) && len(t.names()) > 0:
		return errors.New("it cannot have arguments: a model must not choose whose credentials are used")
	case slices.Contains(overrides, canonical) && len(t.names()) > 0:
		return errors.New("it cannot have arguments: a model must not choose the method or the path")
	}
	for _, p := range t {
		if _, err := inHeader(p, p.text); err != nil {
			return errors.New("its value has a line ending or a character that headers cannot have")
		}
	}
	return nil
}

// names returns the names of the arguments that the templates use.
func (r *request) names() (all []string) {
	for _, s := range r.path {
		all = append(all, s.names()...)
	}
	for _, m := range r.query {
		all = append(all, m.value.names()...)
	}
	for _, h := range r.headers {
		all = append(all, h.value.names()...)
	}
	return append(all, r.body.names()...)
}

// parameters returns the schema for templates that come without one: texts, which are
// optional if only the query has them.
func (r *request) parameters() json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for _, name := range r.names() {
		if name != callKey {
			properties[name] = map[string]any{"type": "string"}
		}
	}
	without := *r
	without.query = nil
	needed := without.names()
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(needed, name) {
			required = append(required, name)
		}
	}
	b, _ := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false})
	return b // of texts and lists there is always JSON
}

// bind checks that the schema and the templates have the same arguments.
func (r *request) bind(parameters json.RawMessage) (*schema.Schema, error) {
	var p struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(parameters, &p); err != nil || p.Type != "object" {
		return nil, errors.New(`it must be a JSON Schema with "type": "object"`)
	}
	s, err := schema.Compile(parameters)
	if err != nil {
		return nil, err
	}
	used := r.names()
	for _, name := range used {
		if _, ok := p.Properties[name]; !ok && name != callKey {
			return nil, fmt.Errorf("{%s} is used but is not among its properties", name)
		}
	}
	for _, segment := range r.path {
		for _, name := range segment.names() {
			if name != callKey && !slices.Contains(p.Required, name) {
				return nil, fmt.Errorf("{%s} is part of the path, so it must be required", name)
			}
		}
	}
	r.declared = slices.Sorted(maps.Keys(p.Properties))
	for _, name := range r.declared {
		if slices.Contains(used, name) {
			continue
		}
		if r.body != nil || !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, r.method) {
			return nil, fmt.Errorf("%s is used neither in the URL nor in a header or the body", name)
		}
		r.rest = true
	}
	return s, nil
}

// host returns where a request goes, as everybody may read it.
func (r *request) host() string { return r.base.Host }

// build makes the request of a call.
func (r *request) build(ctx context.Context, a *arguments) (*http.Request, error) {
	target, err := r.url(a)
	if err != nil {
		return nil, err
	}
	body, err := r.content(a)
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	h, err := http.NewRequestWithContext(ctx, r.method, target, reader)
	if err != nil {
		return nil, errors.New("the URL cannot be made of these arguments")
	}
	h.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	h.Header.Set("User-Agent", "holdfast")
	if body != nil {
		h.Header.Set("Content-Type", cmp.Or(r.contentType, "application/json"))
	}
	for _, t := range r.headers {
		value, given, err := t.expand(a)
		if err != nil {
			return nil, err
		}
		if given {
			h.Header.Set(t.name, value)
		}
	}
	return h, nil
}

// expand returns the header's value; false if an argument is not given.
func (t *header) expand(a *arguments) (string, bool, error) {
	if t.style == "" {
		return t.value.expand(a, inHeader)
	}
	list, err := a.styled(t.value[0].name, t.style)
	if err != nil || len(list) == 0 {
		return "", false, err
	}
	value, err := inHeader(t.value[0], strings.Join(list, ","))
	return value, true, err
}

// url returns the URL of a call.
func (r *request) url(a *arguments) (string, error) {
	var b strings.Builder
	b.WriteString(r.base.Scheme + "://" + r.base.Host)
	for _, t := range r.path {
		segment, _, err := t.expand(a, func(p piece, v string) (string, error) {
			if p.secret || p.name == callKey {
				return escape(v), nil
			}
			return inPath(p, v)
		})
		if err != nil {
			return "", err
		}
		if isDots(segment) {
			return "", fmt.Errorf("%s must not be . or .., which would lead to another place",
				strings.Join(t.names(), " and "))
		}
		b.WriteString("/" + segment)
	}
	separator := byte('?')
	for _, m := range r.query {
		members, err := m.expand(a)
		if err != nil {
			return "", err
		}
		for _, text := range members {
			b.WriteByte(separator)
			b.WriteString(text)
			separator = '&'
		}
	}
	return b.String(), nil
}

// expand returns the members of the query that a template stands for.
func (m *queryMember) expand(a *arguments) ([]string, error) {
	name, _, err := m.name.expand(a, nil)
	if err != nil || m.bare {
		return []string{name}, err
	}
	if len(m.value) != 1 || m.value[0].name == "" {
		value, given, err := m.value.expand(a, func(_ piece, v string) (string, error) { return escape(v), nil })
		if err != nil || !given {
			return nil, err
		}
		return []string{name + "=" + value}, nil
	}
	if m.style == styleDeep {
		return a.deep(name, m.value[0].name)
	}
	values, err := a.styled(m.value[0].name, m.style)
	if err != nil || len(values) == 0 {
		return nil, err
	}
	for i := range values {
		values[i] = escape(values[i])
	}
	switch m.style {
	case styleComma, stylePipe, styleSpace:
		return []string{
			name + "=" + strings.Join(values,
				map[style]string{styleComma: ",", stylePipe: "%7C", styleSpace: "%20"}[m.style]),
		}, nil
	}
	for i := range values {
		values[i] = name + "=" + values[i]
	}
	return values, nil
}

// content returns the body of a call; nil if it has none.
func (r *request) content(a *arguments) ([]byte, error) {
	var b bytes.Buffer
	if r.rest {
		used := r.names()
		n := &node{kind: '{'}
		for _, m := range a.members {
			if !slices.Contains(used, m.name) {
				n.members = append(n.members, member{m.name, &node{literal: m.value}})
			}
		}
		_, err := n.write(&b, a)
		return b.Bytes(), err
	}
	if r.body == nil {
		return nil, nil
	}
	if given, err := r.body.write(&b, a); err != nil || !given {
		return nil, err
	}
	return b.Bytes(), nil
}
