package httptool

// Tools from an OpenAPI document: operations are picked by name, and each becomes a tool as
// [New] makes it, with the same rules for what arguments can do.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/idempotency"
)

// OpenAPIOptions say which operations of a document become tools, and how they are called.
type OpenAPIOptions struct {
	// Operations are the operations that become tools, in this order.
	Operations []Operation `json:"operations"`
	// Prefix comes before the name of each tool.
	Prefix string `json:"prefix,omitempty"`
	// Server is the URL that comes before the paths, and may begin with a ${NAME}; default is
	// the first server in the document. Set it if somebody else writes the document: the
	// headers go wherever the server is.
	Server string `json:"server,omitempty"`
	// Variables are the values of variables in the URL of the document's server; the default
	// is what the document says.
	Variables map[string]string `json:"variables,omitempty"`
	// Headers are sent with each request, for credentials above all. They have no arguments
	// but {call.key}, the call's idempotency key.
	Headers map[string]string `json:"headers,omitempty"`

	// FollowRedirects is that of [Options].
	FollowRedirects bool `json:"followRedirects,omitempty"`
	// Timeout bounds each call; default 30 seconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Allow lists the private hosts that may be reached, as in [Options].
	Allow []string `json:"allow,omitempty"`
	// Proxy is that of [Options]; default none.
	Proxy string `json:"proxy,omitempty"`

	// RoundTripper wraps what sends the requests, as in [Options].
	RoundTripper func(http.RoundTripper) http.RoundTripper `json:"-"`
	// Resolver resolves names; default net.DefaultResolver.
	Resolver Resolver `json:"-"`
	// Getenv reads the environment; default os.Getenv.
	Getenv func(string) string `json:"-"`
	// Now is the clock for dates in headers; default time.Now.
	Now func() time.Time `json:"-"`
}

// Operation picks an operation of a document.
type Operation struct {
	// Operation is its operationId, or method and path, like "GET /orders/{id}".
	Operation string `json:"operation"`
	// Name is the tool's; default is the operationId, or else method and path.
	Name string `json:"name,omitempty"`
	// Description is the tool's; default is the document's.
	Description string `json:"description,omitempty"`
	// Effect is that of [Options]: without it, GET and HEAD are pure and all else is once.
	Effect holdfast.Effect `json:"effect,omitempty"`
	// InDoubt says what to do with a call in doubt; default tell.
	InDoubt holdfast.Doubt `json:"inDoubt,omitempty"`
	// NotDone are the statuses from 500 that mean that nothing was done; default 501 and 503.
	NotDone []int `json:"notDone,omitempty"`
	// LookUp is the URL where a call is looked up, as in [Options]; default none.
	LookUp string `json:"lookUp,omitempty"`
	// Result says what of an answer is the result; default all of it.
	Result Result `json:"result,omitzero"`
}

// FromOpenAPI makes tools of operations in a document of OpenAPI 3.0 or 3.1, in JSON or
// YAML. Parameters become arguments of their names, the body of a request becomes the
// argument body. References must stay in the document. An error names the place, in the
// options or in the document.
func FromOpenAPI(document []byte, o OpenAPIOptions) ([]*Tool, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	d, err := readDocument(document)
	if err != nil {
		return nil, err
	}
	if len(o.Operations) == 0 {
		return nil, fmt.Errorf("operations: list those that become tools; the document has %s", some(d.operations()))
	}
	im := &importer{OpenAPIOptions: o, doc: d, clients: map[bool]*client{}, named: map[string]string{}}
	tools := make([]*Tool, len(o.Operations))
	for i, op := range o.Operations {
		if tools[i], err = im.tool(op); err != nil {
			return nil, fmt.Errorf("operations[%d] (%s): %w", i, op.Operation, err)
		}
	}
	return tools, nil
}

// importer makes tools of one document.
type importer struct {
	OpenAPIOptions
	doc *document
	// clients send the requests of all tools: one uses each connection once.
	clients map[bool]*client
	// named are the operations by the names of their tools.
	named map[string]string
	// host is where all of them go.
	host string
}

// methods are the members of a path that are operations.
var methods = []string{"get", "put", "post", "delete", "head", "patch"}

// operation is an operation in a document.
type operation struct {
	method, path string
	parent, op   place
}

func (o *operation) String() string { return strings.ToUpper(o.method) + " " + o.path }

// operations returns the operations of the document, in the order of their paths.
func (d *document) operations() (all []operation) {
	paths := d.at().get("paths")
	for _, path := range slices.Sorted(maps.Keys(paths.object())) {
		parent, err := paths.get(path).resolve()
		if err != nil {
			continue // its user is told
		}
		for _, method := range methods {
			if op := parent.get(method); op.object() != nil {
				all = append(all, operation{method, path, parent, op})
			}
		}
	}
	return all
}

// some lists operations for an error.
func some(all []operation) string {
	var names []string
	for _, o := range all {
		names = append(names, cmp.Or(o.op.text("operationId"), o.String()))
	}
	if len(names) > 20 {
		names = append(names[:20], fmt.Sprintf("%d more", len(names)-20))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// findOperation returns the operation of a name.
func (d *document) findOperation(name string) (*operation, error) {
	all := d.operations()
	for i, o := range all {
		method, path, _ := strings.Cut(name, " ")
		if name != "" && o.op.text("operationId") == name || strings.EqualFold(method, o.method) && path == o.path {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("the document has no such operation; it has %s", some(all))
}

// tool makes the tool of an operation.
func (im *importer) tool(pick Operation) (*Tool, error) {
	op, err := im.doc.findOperation(pick.Operation)
	if err != nil {
		return nil, err
	}
	o := Options{
		Name:            im.Prefix + toolName(pick, op),
		Description:     cmp.Or(pick.Description, describeOperation(op)),
		Method:          op.method,
		Headers:         im.Headers,
		Effect:          pick.Effect,
		InDoubt:         pick.InDoubt,
		NotDone:         pick.NotDone,
		LookUp:          pick.LookUp,
		Result:          pick.Result,
		FollowRedirects: im.FollowRedirects,
		Timeout:         im.Timeout,
		Allow:           im.Allow,
		Proxy:           im.Proxy,
		RoundTripper:    im.RoundTripper,
		Resolver:        im.Resolver,
		Getenv:          im.Getenv,
		Now:             im.Now,
	}
	if other, taken := im.named[o.Name]; taken {
		return nil, fmt.Errorf("name: %s is already the tool of %s: give one of them another name", o.Name, other)
	}
	im.named[o.Name] = op.String()
	o.setDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	r, err := im.request(op, &o)
	if err != nil {
		return nil, err
	}
	c, err := im.client(&o)
	if err != nil {
		return nil, err
	}
	return o.tool(r, c)
}

// client returns the client for a tool.
func (im *importer) client(o *Options) (*client, error) {
	once := unrepeatable(o.Effect) && effectOf(o.Method) == holdfast.EffectPure
	if c := im.clients[once]; c != nil {
		return c, nil
	}
	c, err := newClient(o)
	if err == nil {
		im.clients[once] = c
	}
	return c, err
}

// maxDescription bounds what a document says of an operation, and maxParameters the schema of
// its arguments, in bytes.
const (
	maxDescription = 1024
	maxParameters  = 256 << 10
)

func describeOperation(op *operation) string {
	summary, text := strings.TrimSpace(op.op.text("summary")), strings.TrimSpace(op.op.text("description"))
	if summary != "" && text != "" && !strings.HasPrefix(text, summary) {
		text = summary + "\n" + text
	}
	return cutText(cmp.Or(text, summary, op.String()), maxDescription)
}

// toolName returns the name of an operation's tool.
func toolName(pick Operation, op *operation) string {
	if pick.Name != "" {
		return pick.Name
	}
	return strings.Trim(clean(cmp.Or(op.op.text("operationId"), op.String()), nameCharacters), "_")
}

// clean returns a name in which everything but the allowed characters is one _.
func clean(name, allowed string) string {
	var b strings.Builder
	for _, c := range name {
		if strings.ContainsRune(allowed, c) {
			b.WriteRune(c)
		} else if !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
	}
	return b.String()
}

// request reads what an operation is asked with, and sets the options' parameters.
func (im *importer) request(op *operation, o *Options) (*request, error) {
	in := &inputs{request: &request{method: o.Method}, properties: map[string]any{}}
	if err := in.addParameters(op); err != nil {
		return nil, err
	}
	if err := in.addBody(op); err != nil {
		return nil, err
	}
	if err := im.setURL(in, op); err != nil {
		return nil, err
	}
	own := in.request.headers
	in.request.headers = nil
	for name, value := range im.Headers {
		if t, err := parseTemplate(value, im.Getenv); err == nil &&
			slices.ContainsFunc(t.names(), func(name string) bool { return name != callKey }) {
			return nil, fmt.Errorf("headers: %s: these headers have no arguments but {call.key}", name)
		}
	}
	if err := in.request.setHeaders(im.Headers, im.Getenv); err != nil {
		return nil, err
	}
	in.request.headers = append(own, in.request.headers...) // the options' come last and win
	schema := map[string]any{"type": "object", "properties": in.properties, "additionalProperties": false}
	if len(in.required) > 0 {
		schema["required"] = in.required
	}
	var err error
	if o.Parameters, err = json.Marshal(schema); err == nil && len(o.Parameters) > maxParameters {
		err = op.op.errorf("the schema of its arguments has %d bytes, and goes into every prompt; at most %d are read",
			len(o.Parameters), maxParameters)
	}
	return in.request, err
}

// setURL sets the URL of an operation: that of the server, and the path.
func (im *importer) setURL(in *inputs, op *operation) error {
	server := im.Server
	if server == "" {
		var err error
		if server, err = im.server(op); err != nil {
			return err
		}
	}
	literal := strings.NewReplacer(in.without...).Replace(op.path)
	if strings.ContainsAny(literal, "{}$?#") || strings.ContainsAny(server, "?#") {
		return op.op.errorf("its path has a name in braces that is no parameter, or it or the URL of " +
			"its server has a $, ? or #")
	}
	if !strings.HasPrefix(literal, "/") { // or it would belong to the name of the host
		return op.op.errorf("its path must begin with a slash")
	}
	path := strings.NewReplacer(in.path...).Replace(op.path)
	if err := in.request.setURL(strings.TrimRight(server, "/")+path, im.Getenv); err != nil {
		return op.op.errorf("the URL: %w", err)
	}
	host := in.request.base.String()
	if im.host != "" && im.host != host {
		return fmt.Errorf("%s goes to %s, the operations before it to %s: set server, so that "+
			"headers go to one place only", op, host, im.host)
	}
	im.host = host
	return nil
}

// server returns the URL of the server that the document names for an operation.
func (im *importer) server(op *operation) (string, error) {
	servers := op.op.get("servers")
	for _, p := range []place{op.parent, im.doc.at()} {
		if len(servers.items()) == 0 {
			servers = p.get("servers")
		}
	}
	if len(servers.items()) == 0 {
		return "", errors.New("server: the document names none: set it")
	}
	s := servers.items()[0]
	u := s.text("url")
	for name := range s.get("variables").object() {
		v := s.get("variables").get(name)
		value, given := im.Variables[name]
		if !given {
			value = v.text("default")
		}
		if allowed := v.get("enum").
			items(); len(allowed) > 0 && !slices.ContainsFunc(allowed, func(p place) bool { return p.value == value }) {
			return "", v.errorf("%q is not one of its values", value)
		}
		u = strings.ReplaceAll(u, "{"+name+"}", value)
	}
	if strings.ContainsAny(u, "{}$") {
		return "", s.errorf("url: %q has a variable without a value: set it in variables", u)
	}
	if !strings.Contains(u, "://") {
		return "", s.errorf("url: %q is relative to where the document came from: set server", u)
	}
	return u, nil
}

// inputs are the arguments of an operation while it is read.
type inputs struct {
	request *request
	// path has pairs: what stands for a parameter in the path, and in the template; without
	// has nothing for the latter.
	path, without []string
	properties    map[string]any
	required      []string
}

// argumentCharacters are what names of arguments may have with every provider.
const argumentCharacters = nameCharacters + "."

// add adds an argument and returns its name.
func (in *inputs) add(p place, name, kind string, s map[string]any, required bool) string {
	short := clean(name, argumentCharacters)
	if short == "" || !names.MatchString(short) {
		short = "_" + short
	}
	short = short[:min(len(short), 64)]
	for n := 2; in.properties[short] != nil || short == callKey; n++ {
		short = fmt.Sprintf("%.50s_%s", clean(name, argumentCharacters), kind)
		if n > 2 {
			short = fmt.Sprintf("%s%d", short, n)
		}
	}
	if text := p.text("description"); text != "" && s["description"] == nil {
		s["description"] = text
	}
	in.properties[short] = s
	if required {
		in.required = append(in.required, short)
	}
	return short
}

// addParameters adds the parameters of an operation and those of its path, which it may
// replace.
func (in *inputs) addParameters(op *operation) error {
	type key struct{ name, in string }
	seen := map[key]bool{}
	for _, p := range append(op.op.get("parameters").items(), op.parent.get("parameters").items()...) {
		p, err := p.resolve()
		if err != nil {
			return err
		}
		k := key{p.text("name"), p.text("in")}
		if k.name == "" {
			return p.errorf("it has no name")
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		if err := in.addParameter(op, p, k.name, k.in); err != nil {
			return err
		}
	}
	return nil
}

func (in *inputs) addParameter(op *operation, p place, name, kind string) error {
	s, isJSON, err := parameterSchema(p)
	if err != nil {
		return err
	}
	how, err := styleOf(p, kind, kindOf(s), isJSON)
	if err != nil {
		return err
	}
	switch kind {
	case "path":
		if !strings.Contains(op.path, "{"+name+"}") {
			return p.errorf("the path has no {%s}", name)
		}
		in.path = append(in.path, "{"+name+"}", "{"+in.add(p, name, kind, s, true)+"}")
		in.without = append(in.without, "{"+name+"}", "")
	case "query":
		short := in.add(p, name, kind, s, p.yes("required"))
		in.request.query = append(in.request.query,
			queryMember{name: template{{text: escape(name)}}, value: template{{name: short}}, style: how})
	case "header":
		// These belong to the content and the credentials, not to the model (OpenAPI 3.1, 4.8.12).
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains([]string{"Accept", "Content-Type", "Authorization", "Cookie", idempotency.Header, otherKey},
			canonical) {
			return nil
		}
		value := template{{name: "x"}}
		if err := checkHeader(name, value); err != nil {
			return p.errorf("%w", err)
		}
		value[0].name = in.add(p, name, kind, s, p.yes("required"))
		in.request.headers = append(in.request.headers, header{name: canonical, value: value, style: how})
	case "cookie":
		if p.yes("required") {
			return p.errorf("a cookie cannot be an argument; send it with headers")
		}
	default:
		return p.errorf("in: %q must be path, query, header or cookie", kind)
	}
	return nil
}

// parameterSchema returns the schema of a parameter, and whether it is sent as JSON.
func parameterSchema(p place) (map[string]any, bool, error) {
	content := p.get("content")
	if len(content.object()) == 0 {
		s, err := schemaOf(p.get("schema"))
		return s, false, err
	}
	name := jsonType(content)
	if name == "" {
		return nil, false, content.errorf("it must be application/json")
	}
	s, err := schemaOf(content.get(name).get("schema"))
	return s, true, err
}

// styleOf returns how the value of a parameter is written.
func styleOf(p place, in, kind string, isJSON bool) (style, error) {
	if isJSON {
		if in == "path" {
			return "", p.errorf("JSON cannot be part of a path here")
		}
		return styleJSON, nil
	}
	given := cmp.Or(p.text("style"), map[string]string{"path": "simple", "query": "form", "header": "simple",
		"cookie": "form"}[in])
	explode := given == "form"
	if b, ok := p.get("explode").value.(bool); ok {
		explode = b
	}
	composed := kind == "array" || kind == "object"
	switch {
	case given == "deepObject" && in == "query":
		return styleDeep, nil
	case in == "path" && (composed || given != "simple"), kind == "object" && in != "cookie":
		return "", p.errorf("a parameter of this type cannot be written in the style %s here", given)
	case in == "header":
		return styleComma, nil
	case given == "form" && explode || !composed:
		return "", nil
	case given == "form":
		return styleComma, nil
	case given == "spaceDelimited":
		return styleSpace, nil
	case given == "pipeDelimited":
		return stylePipe, nil
	}
	return "", p.errorf("style: %q is not known", given)
}

// jsonType returns the media type of a content that is JSON; empty if there is none.
func jsonType(content place) string {
	for _, name := range slices.Sorted(maps.Keys(content.object())) {
		kind, _, _ := strings.Cut(strings.ToLower(name), ";")
		if kind = strings.TrimSpace(kind); kind == "application/json" || strings.HasSuffix(kind, "+json") ||
			kind == "*/*" {
			return name
		}
	}
	return ""
}

// addBody adds the body of an operation, as one argument.
func (in *inputs) addBody(op *operation) error {
	body, err := op.op.get("requestBody").resolve()
	if err != nil || body.object() == nil {
		return err
	}
	content := body.get("content")
	name := jsonType(content)
	if name == "" {
		if !body.yes("required") {
			return nil
		}
		return content.errorf("its body must be JSON, not %s",
			strings.Join(slices.Sorted(maps.Keys(content.object())), ", "))
	}
	if in.request.method == http.MethodGet || in.request.method == http.MethodHead {
		return body.errorf("a %s request has no body", in.request.method)
	}
	s, err := schemaOf(content.get(name).get("schema"))
	if err != nil {
		return err
	}
	in.request.body = &node{name: in.add(body, "body", "request", s, body.yes("required"))}
	if _, err := inHeader(piece{}, name); err != nil {
		return content.errorf("%q is no media type", name)
	}
	if !strings.Contains(name, "*") {
		in.request.contentType = name
	}
	return nil
}
