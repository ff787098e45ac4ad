package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/mcp/internal/stdio"
)

// The options of a server, which a program sets or a file has: how to reach it, what its
// calls may do twice, which of its tools are used, and the bounds.

// The defaults of [Options].
const (
	DefaultTimeout         = time.Minute
	DefaultMaxDuration     = time.Hour
	DefaultConnectTimeout  = 30 * time.Second
	DefaultMaxMessageBytes = 16 << 20
	DefaultMaxResultBytes  = 4 << 20
	DefaultMaxTools        = 2000
	DefaultElicitationWait = 2 * time.Minute
)

// Options say which server to use, and how. Name and either Command or URL must be set.
type Options struct {
	// Name is the server's name here, of letters, digits and hyphens; its tools are called
	// name_tool.
	Name string `json:"name"`

	// Command starts a server that speaks over its standard input and output: the program
	// and its arguments.
	Command []string `json:"command,omitempty"`
	// Dir is where the command runs; empty means where this process runs.
	Dir string `json:"dir,omitempty"`
	// Env are environment variables of the command. Of this process's own it gets no more
	// than PATH, HOME, USER, LANG and TMPDIR. Their values are kept out of the log.
	Env map[string]string `json:"env,omitempty"`

	// URL is the endpoint of a server that speaks streamable HTTP.
	URL string `json:"url,omitempty"`
	// Headers are headers of every request, such as Authorization. Their values are kept
	// out of the log.
	Headers map[string]string `json:"headers,omitempty"`
	// Allow lists private hosts, addresses and blocks of addresses in which URL may be, such
	// as "localhost", "10.1.2.3" or "10.0.0.0/8", hosts and addresses also with a port. None
	// may be by default.
	Allow []string `json:"allow,omitempty"`
	// Proxy is the URL of a proxy for the requests, or "environment" for the one that
	// HTTP_PROXY, HTTPS_PROXY and NO_PROXY name; default none.
	Proxy string `json:"proxy,omitempty"`

	// Effect is the effect of every tool that Effects does not name; empty means that each
	// tool's annotations decide.
	Effect holdfast.Effect `json:"effect,omitempty"`
	// Effects are the effects of tools, by the server's names for them.
	Effects map[string]holdfast.Effect `json:"effects,omitempty"`
	// InDoubt says what to do with a call that may or may not have taken effect. Empty
	// means [holdfast.DoubtTell].
	InDoubt holdfast.Doubt `json:"inDoubt,omitempty"`
	// Tools are patterns of the server's names for its tools, with * for any characters. If
	// there are any, only the tools that they name are used.
	Tools []string `json:"tools,omitempty"`
	// ExceptTools are such patterns of tools that are not used, whatever Tools says.
	ExceptTools []string `json:"exceptTools,omitempty"`

	// Apps shows people the interfaces of the server's tools, as activities. nil means that they are
	// not shown, and that the server is not told that they could be.
	Apps *Apps `json:"apps,omitempty"`

	// Elicitation offers questions to people to servers of the revisions before 2026-07-28
	// too. In these the call has to stay open meanwhile, in this process, and nothing says
	// which call asks: so the server gets one call at a time, and an answer must come within
	// ElicitationWait.
	Elicitation bool `json:"elicitation,omitempty"`
	// ElicitationWait is how long such a server waits for an answer before it is told that
	// there is none; default [DefaultElicitationWait].
	ElicitationWait time.Duration `json:"elicitationWait,omitempty"`

	// Timeout is how long a call may go without an answer and without progress, whose number must
	// rise; default [DefaultTimeout].
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxDuration bounds a call in all; default [DefaultMaxDuration].
	MaxDuration time.Duration `json:"maxDuration,omitempty"`
	// ConnectTimeout bounds an attempt to connect and to list the tools; default
	// [DefaultConnectTimeout].
	ConnectTimeout time.Duration `json:"connectTimeout,omitempty"`
	// MaxMessageBytes bounds a message of the server; default [DefaultMaxMessageBytes].
	MaxMessageBytes int `json:"maxMessageBytes,omitempty"`
	// MaxResultBytes bounds the result of a call; default [DefaultMaxResultBytes].
	MaxResultBytes int `json:"maxResultBytes,omitempty"`
	// MaxTools bounds the tools that are used of the server; default [DefaultMaxTools].
	MaxTools int `json:"maxTools,omitempty"`

	// RoundTripper wraps what sends the requests, for example to add credentials. Its argument
	// refuses private addresses; a RoundTripper that does not use it must do so itself.
	RoundTripper func(http.RoundTripper) http.RoundTripper `json:"-"`
	// CallHeaders returns further headers for the requests of one call, such as the
	// caller's own credentials; the context carries the call. It is asked before each of
	// them. Its error is the call's, so it may be a [*holdfast.Interrupt]; but of a task it is
	// asked again until it has an answer.
	CallHeaders func(ctx context.Context) (http.Header, error) `json:"-"`
	// Traceparent returns the W3C trace context of a call, which is passed on to the
	// server; empty if there is none. The default is that of the run.
	Traceparent func(ctx context.Context) string `json:"-"`
	// Log is where the connection is reported; default [slog.Default].
	Log *slog.Logger `json:"-"`
}

// serverName is what a server's name may be. It has no underscore, so that no two servers
// can have tools of the same name.
var serverName = regexp.MustCompile(`^[a-zA-Z0-9-]{1,32}$`)

// Validate reports all mistakes in the options, each with the name of its field.
func (o *Options) Validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{field}, args...)...))
	}
	if !serverName.MatchString(o.Name) {
		wrong("name", "%q is no name of at most 32 letters, digits and hyphens", o.Name)
	}
	switch {
	case len(o.Command) == 0 && o.URL == "":
		wrong("command", "set command, to start a server, or url, to reach one")
	case len(o.Command) > 0 && o.URL != "":
		wrong("url", "set either command or url, not both")
	case len(o.Command) > 0 && o.Command[0] == "":
		wrong("command", "the program's name is empty")
	}
	if len(o.Command) == 0 && (len(o.Env) > 0 || o.Dir != "") {
		wrong("env", "env and dir are for a server that is started with command")
	}
	if o.URL == "" && (len(o.Headers) > 0 || len(o.Allow) > 0 || o.Proxy != "") {
		wrong("headers", "headers, allow and proxy are for a server that is reached with url")
	}
	if _, err := o.guard(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.checkURL(), o.checkEffects(), o.Apps.validate())
	for field, patterns := range map[string][]string{"tools": o.Tools, "exceptTools": o.ExceptTools} {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				wrong(field, "%q is no pattern of a tool's name", p)
			}
		}
	}
	for field, n := range map[string]int64{
		"timeout":         int64(o.Timeout),
		"maxDuration":     int64(o.MaxDuration),
		"connectTimeout":  int64(o.ConnectTimeout),
		"elicitationWait": int64(o.ElicitationWait),
		"maxMessageBytes": int64(o.MaxMessageBytes),
		"maxResultBytes":  int64(o.MaxResultBytes),
		"maxTools":        int64(o.MaxTools),
	} {
		if n < 0 {
			wrong(field, "it must not be negative")
		}
	}
	return errors.Join(errs...)
}

// guard returns what decides where connections may go.
func (o *Options) guard() (*netguard.Guard, error) {
	return netguard.New(netguard.Options{Allow: o.Allow, Proxy: o.Proxy})
}

// checkURL checks what makes up a request.
func (o *Options) checkURL() error {
	if o.URL == "" {
		return nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("url: it is not the URL of a server, such as https://example.com/mcp")
	}
	for name, value := range o.Headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("headers: %q is no header, or its value is none", name)
		}
		if slices.Contains(ourHeaders, http.CanonicalHeaderKey(name)) ||
			strings.HasPrefix(http.CanonicalHeaderKey(name), "Mcp-") {
			return fmt.Errorf("headers: %s is set by the protocol", name)
		}
	}
	return nil
}

var (
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	ourHeaders = []string{
		"Accept",
		"Connection",
		"Content-Length",
		"Content-Type",
		"Host",
		"Last-Event-Id",
		"Transfer-Encoding",
	}
)

// checkEffects checks the effects and the policy.
func (o *Options) checkEffects() error {
	var errs []error
	check := func(field string, e holdfast.Effect) {
		switch e {
		case "", holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce:
		case holdfast.EffectQuery:
			errs = append(errs, fmt.Errorf("%s: a tool of an MCP server cannot be asked what "+
				"became of a call; use once", field))
		default:
			errs = append(errs, fmt.Errorf("%s: %q is not pure, idempotent or once", field, e))
		}
	}
	check("effect", o.Effect)
	for _, tool := range slices.Sorted(maps.Keys(o.Effects)) {
		check("effects."+tool, o.Effects[tool])
	}
	switch o.InDoubt {
	case "", holdfast.DoubtTell, holdfast.DoubtAsk:
	default:
		errs = append(errs, fmt.Errorf("inDoubt: %q is not tell or ask", o.InDoubt))
	}
	return errors.Join(errs...)
}

// withDefaults returns the options with what they leave out.
func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.Timeout, DefaultTimeout)
	set(&o.MaxDuration, max(DefaultMaxDuration, o.Timeout))
	set(&o.ConnectTimeout, DefaultConnectTimeout)
	set(&o.ElicitationWait, DefaultElicitationWait)
	for n, value := range map[*int]int{&o.MaxMessageBytes: DefaultMaxMessageBytes,
		&o.MaxResultBytes: DefaultMaxResultBytes, &o.MaxTools: DefaultMaxTools} {
		if *n == 0 {
			*n = value
		}
	}
	if o.Traceparent == nil {
		o.Traceparent = func(ctx context.Context) string { return holdfast.IterationFrom(ctx).Traceparent }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// inherited are the variables of this process that a command gets too: programs do not
// start without them.
var inherited = []string{"PATH", "HOME", "USER", "LANG", "TMPDIR", "SystemRoot"}

// spec returns how to start the command.
func (o *Options) spec(redact func(string) string) stdio.Spec {
	const grace = 2 * time.Second
	s := stdio.Spec{
		Command: o.Command,
		Dir:     o.Dir,
		Grace:   grace,
		Stuck:   o.Timeout,
		Log:     o.Log,
		Redact:  redact,
	}
	for _, name := range inherited {
		value, ok := os.LookupEnv(name)
		if _, listed := o.Env[name]; ok && !listed {
			s.Env = append(s.Env, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		s.Env = append(s.Env, name+"="+o.Env[name])
	}
	return s
}

// uses reports whether a tool of the server is used.
func (o *Options) uses(tool string) bool {
	matches := func(p string) bool { ok, _ := path.Match(p, tool); return ok }
	return (len(o.Tools) == 0 || slices.ContainsFunc(o.Tools, matches)) && !slices.ContainsFunc(o.ExceptTools, matches)
}
