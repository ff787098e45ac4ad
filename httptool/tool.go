// Package httptool makes tools out of HTTP services: a tool is declared by a URL template
// and a schema of its arguments ([New]), or picked from an OpenAPI document
// ([FromOpenAPI]).
//
// Arguments written by a model can change neither where a request goes nor how its URL is made
// up, and private addresses are refused unless they are listed. The tool's effect decides what
// becomes of a call whose answer does not come: see [Options.Effect].
package httptool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Options declare a tool. In its templates, {name} stands for the argument of that name,
// {call.key} for the call's idempotency key, and ${NAME} for a variable of the environment.
type Options struct {
	// Name is what the model calls the tool: letters, digits, _ and -, at most 64.
	Name string `json:"name"`
	// Description tells the model what the tool does and when to use it.
	Description string `json:"description"`
	// Method is the HTTP method; default POST if there is a Body, or else GET.
	Method string `json:"method,omitempty"`
	// URL is the template of the URL, such as "https://api.example/orders/{id}?q={query}".
	// Values are escaped; scheme and host have none, except that the URL may begin with a
	// ${NAME}, which is taken as it is. A member of the query whose argument is not given
	// is left out; a list repeats it.
	URL string `json:"url"`
	// Headers are templates too. A header whose argument is not given is left out.
	Headers map[string]string `json:"headers,omitempty"`
	// Body is JSON in which a string that is only "{name}" stands for the argument as it is,
	// whatever its type. The default for POST, PUT and PATCH is an object of all arguments
	// that nothing else uses.
	Body json.RawMessage `json:"body,omitempty"`
	// Parameters is the JSON Schema of the arguments, an object. The default has the names in
	// the templates as strings; those that only the query has are optional.
	Parameters json.RawMessage `json:"parameters,omitempty"`

	// Effect says what calling the service twice would do; default pure for GET and HEAD,
	// query with a LookUp, and once for all else. Idempotent and once calls carry the call's
	// key as Idempotency-Key. If it is once or query, no request is ever sent twice, and a
	// call whose request was sent and not answered is in doubt
	// ([holdfast.ErrOutcomeUnknown]); so is one that is answered with a status from 500 that
	// is not in NotDone.
	Effect holdfast.Effect `json:"effect,omitempty"`
	// InDoubt says what to do with a call in doubt; default tell.
	InDoubt holdfast.Doubt `json:"inDoubt,omitempty"`
	// NotDone are the statuses from 500 with which this service says that it did nothing;
	// default 501 and 503.
	NotDone []int `json:"notDone,omitempty"`
	// LookUp is the template of a URL, on the same scheme and host, where a GET finds out
	// what became of a call, usually by its {call.key}. A status from 200 to 299 means that
	// it took effect, and the answer is the call's result; 404 means that it did not and
	// will not; all else, that the service does not know.
	LookUp string `json:"lookUp,omitempty"`

	// Result says what of an answer is the call's result; default all of it.
	Result Result `json:"result,omitzero"`
	// FollowRedirects follows up to 5 redirects of GET and HEAD to the same scheme and host.
	// The default is to follow none.
	FollowRedirects bool `json:"followRedirects,omitempty"`
	// Timeout bounds a call; default 30 seconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Allow lists private hosts, addresses and blocks of addresses that may be reached, such
	// as "orders.internal", "localhost:8080" or "10.0.0.0/8".
	Allow []string `json:"allow,omitempty"`
	// Proxy is the URL of a proxy, or "environment" for the one that HTTP_PROXY, HTTPS_PROXY
	// and NO_PROXY name; default none.
	Proxy string `json:"proxy,omitempty"`

	// RoundTripper wraps what sends the requests, for example to add credentials. Its argument
	// refuses private addresses; a RoundTripper that does not use it must do so itself. An
	// error with a method NotSent() bool that reports true, such as those of package
	// credential, says that nothing was sent.
	RoundTripper func(http.RoundTripper) http.RoundTripper `json:"-"`
	// Resolver resolves names; default net.DefaultResolver.
	Resolver Resolver `json:"-"`
	// Getenv reads the environment; default os.Getenv.
	Getenv func(string) string `json:"-"`
	// Now is the clock for dates in headers; default time.Now.
	Now func() time.Time `json:"-"`

	why string // the effect is what it is
}

// Resolver resolves names, as a [net.Resolver] does.
type Resolver interface {
	// LookupNetIP returns the addresses of a host; network is "ip", "ip4" or "ip6".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Result says what of an answer is the result of a call. JSON is passed on as it is
// written, images as parts; other content that is not text is left out with a note.
type Result struct {
	// Select are JSON pointers into the answer. The value of a single one is the result; of
	// several, an object with a member for each.
	Select []string `json:"select,omitempty"`
	// Template is a text in which {/a/b} stands for the value that the JSON pointer finds.
	Template string `json:"template,omitempty"`
	// MaxBytes is how much of an answer is read; default 256 KiB.
	MaxBytes int64 `json:"maxBytes,omitempty"`
}

// Tool is a tool that calls an HTTP service. It may be used concurrently.
type Tool struct {
	spec      holdfast.ToolSpec
	why       string
	arguments *schema.Schema
	request   *request
	lookUp    *request // nil if there is none
	shape     *shape
	notDone   []int
	timeout   time.Duration
	client    *client
}

const (
	defaultTimeout  = 30 * time.Second
	defaultMaxBytes = 256 << 10
	// grace is how much later than the tool itself the server gives a call up: only the tool
	// knows whether something was sent.
	grace = 5 * time.Second
)

// New makes a tool. An error names the field of the options that is wrong.
func New(o Options) (*Tool, error) {
	o.setDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	r, err := o.parse()
	if err != nil {
		return nil, err
	}
	c, err := newClient(&o)
	if err != nil {
		return nil, err
	}
	return o.tool(r, c)
}

// Validate reports what is wrong with the options, naming the field, and sends nothing.
func (o Options) Validate() error {
	_, err := New(o)
	return err
}

func (o *Options) setDefaults() {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Method == "" && len(o.Body) > 0 {
		o.Method = http.MethodPost
	}
	o.Method = strings.ToUpper(cmp.Or(o.Method, http.MethodGet))
	o.why = "the configuration says so"
	if o.Effect == "" {
		o.Effect, o.why = effectOf(o.Method), "its method is "+o.Method
		if o.LookUp != "" {
			o.Effect, o.why = holdfast.EffectQuery, "it has a look-up"
		}
	}
	if o.NotDone == nil {
		o.NotDone = []int{http.StatusNotImplemented, http.StatusServiceUnavailable}
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Result.MaxBytes = cmp.Or(o.Result.MaxBytes, defaultMaxBytes)
}

// effectOf returns the effect that is assumed of a method.
func effectOf(method string) holdfast.Effect {
	if method == http.MethodGet || method == http.MethodHead {
		return holdfast.EffectPure
	}
	return holdfast.EffectOnce
}

// isName reports whether a name of a tool is one that all providers accept.
func isName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, nameCharacters) == ""
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// check looks at the fields that need no reading.
func (o *Options) check() error {
	switch {
	case !isName(o.Name):
		return fmt.Errorf("name: %q must be 1 to 64 letters, digits, _ and -", o.Name)
	case !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, o.Method):
		return fmt.Errorf("method: %q must be GET, HEAD, POST, PUT, PATCH or DELETE", o.Method)
	case (o.Method == http.MethodGet || o.Method == http.MethodHead) && len(o.Body) > 0:
		return fmt.Errorf("body: a %s request has none", o.Method)
	case !slices.Contains([]holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce,
		holdfast.EffectQuery}, o.Effect):
		return fmt.Errorf("effect: %q must be pure, idempotent, once or query", o.Effect)
	case o.Effect == holdfast.EffectQuery && o.LookUp == "":
		return errors.New("lookUp: a tool whose effect is query needs the URL where it finds out what became of a call")
	case o.Effect != holdfast.EffectQuery && o.LookUp != "":
		return fmt.Errorf("lookUp: it is only used if the effect is query, not %s", o.Effect)
	case !slices.Contains([]holdfast.Doubt{"", holdfast.DoubtTell, holdfast.DoubtAsk}, o.InDoubt):
		return fmt.Errorf("inDoubt: %q must be tell or ask", o.InDoubt)
	case slices.ContainsFunc(o.NotDone, func(status int) bool { return status < 500 || status > 599 }):
		return errors.New("notDone: it lists statuses from 500 to 599; with those below, nothing was done anyway")
	case o.Timeout < 0:
		return errors.New("timeout: it cannot be negative")
	case o.Result.MaxBytes < 0:
		return errors.New("result.maxBytes: it cannot be negative")
	}
	return nil
}

// parse reads the templates.
func (o *Options) parse() (*request, error) {
	r := &request{method: o.Method}
	if err := r.setURL(o.URL, o.Getenv); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if err := r.setHeaders(o.Headers, o.Getenv); err != nil {
		return nil, err
	}
	if len(o.Body) > 0 {
		n, err := parseBody(o.Body)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		r.body = n
	}
	return r, nil
}

// tool puts a tool together.
func (o *Options) tool(r *request, c *client) (*Tool, error) {
	if len(o.Parameters) == 0 {
		o.Parameters = r.parameters()
	}
	s, err := r.bind(o.Parameters)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	t := &Tool{
		why:       o.why,
		arguments: s,
		request:   r,
		notDone:   o.NotDone,
		timeout:   o.Timeout,
		client:    c,
		spec: holdfast.ToolSpec{
			Name:        o.Name,
			Description: o.Description,
			Parameters:  s.JSON(),
			Effect:      o.Effect,
			InDoubt:     o.InDoubt,
			Timeout:     o.Timeout + grace,
		},
	}
	if t.shape, err = newShape(o.Result); err != nil {
		return nil, err
	}
	if o.LookUp != "" {
		t.lookUp = &request{method: http.MethodGet, headers: r.headers}
		if err := t.lookUp.setURL(o.LookUp, o.Getenv); err != nil {
			return nil, fmt.Errorf("lookUp: %w", err)
		}
		if *t.lookUp.base != *r.base {
			return nil, errors.New("lookUp: it must go to the scheme and host of url, because the headers go along")
		}
		for _, name := range t.lookUp.names() {
			if name != callKey && !slices.Contains(r.declared, name) {
				return nil, fmt.Errorf("lookUp: {%s} is not a parameter", name)
			}
		}
		t.spec.Query = t.query
	}
	for _, text := range r.secrets {
		c.secrets.Add(text)
	}
	if t.lookUp != nil {
		for _, text := range t.lookUp.secrets {
			c.secrets.Add(text)
		}
	}
	return t, nil
}

// Spec implements [holdfast.Tool].
func (t *Tool) Spec() holdfast.ToolSpec { return t.spec }

// Why says why the tool's effect is what it is.
func (t *Tool) Why() string { return t.why }

// Close closes the connections that no call uses.
func (t *Tool) Close() { t.client.closeIdle() }

// Call implements [holdfast.Tool].
func (t *Tool) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	a, err := t.read(ctx, call)
	if err != nil {
		return holdfast.ToolResult{}, err
	}
	answer, err := t.send(ctx, call, t.request, a)
	if err != nil {
		return holdfast.ToolResult{}, err
	}
	return t.resultOf(answer)
}

// How long a service that does not say what became of a call is asked again, at most, and the
// pauses in between: a service that died in the middle of a call is often back soon.
const (
	lookUpFor       = 10 * time.Second
	firstLookPause  = 200 * time.Millisecond
	longestLookWait = 2 * time.Second
)

// query finds out what became of a call; see [Options.LookUp].
func (t *Tool) query(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
	a, err := t.read(ctx, call)
	if err != nil {
		return holdfast.ToolResult{}, holdfast.FateUnknown, err
	}
	until := time.NewTimer(min(lookUpFor, t.timeout))
	defer until.Stop()
	for pause := firstLookPause; ; pause = min(2*pause, longestLookWait) {
		result, fate, later, err := t.look(ctx, call, a)
		if !later {
			return result, fate, err
		}
		select {
		case <-time.After(pause):
		case <-until.C:
			return result, fate, err
		case <-ctx.Done():
			return result, fate, err
		}
	}
}

// look asks the service once. later means that it may be able to answer later.
func (t *Tool) look(
	ctx context.Context, call holdfast.ToolCall, a *arguments,
) (_ holdfast.ToolResult, _ holdfast.Fate, later bool, _ error) {
	answer, err := t.send(ctx, call, t.lookUp, a)
	switch {
	case err != nil:
		var said *holdfast.Error
		later = errors.As(err, &said) && (said.Code == CodeUnreachable || said.Code == CodeNoAnswer)
		return holdfast.ToolResult{}, holdfast.FateUnknown, later, err
	case answer.status == http.StatusNotFound:
		return holdfast.ToolResult{}, holdfast.FateNotDone, false, nil
	case !answer.ok() || answer.broken != nil:
		later = answer.broken != nil || answer.status >= 500 || answer.status == http.StatusTooManyRequests
		return holdfast.ToolResult{}, holdfast.FateUnknown, later,
			fmt.Errorf("%s answered %s", t.lookUp.host(), statusText(answer.status))
	}
	result, err := t.resultOf(answer)
	return result, holdfast.FateDone, false, err
}

// read checks a call's arguments.
func (t *Tool) read(ctx context.Context, call holdfast.ToolCall) (*arguments, error) {
	raw := call.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := t.arguments.Validate(ctx, raw); err != nil {
		return nil, &argumentsError{
			fmt.Errorf("the arguments of %s are not valid, nothing was sent: %w", t.spec.Name, err),
		}
	}
	a, err := readArguments(raw)
	if err != nil {
		return nil, &argumentsError{
			fmt.Errorf("the arguments of %s cannot be read, nothing was sent: %w", t.spec.Name, err),
		}
	}
	a.key = call.Key
	return a, nil
}

// argumentsError is a [holdfast.ErrArguments] with a text for the model.
type argumentsError struct{ error }

// Unwrap returns both.
func (e *argumentsError) Unwrap() []error { return []error{holdfast.ErrArguments, e.error} }
