// Package declared makes tools of what an agents file declares: HTTP services, OpenAPI
// documents, calls that are finished from outside, files, and MCP servers.
package declared

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/httptool"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/tools"
	"github.com/holdfast-agents/holdfast/mcp"
	"github.com/holdfast-agents/holdfast/secret"
	"github.com/holdfast-agents/holdfast/webhook"
)

// Check looks at a declaration without the environment, and returns the names of its tools.
// into gets the tools, which cannot be called.
func Check(d *config.Declaration, into map[string]holdfast.Tool) (names []string, err error) {
	if d.Kind == config.KindMCP {
		_, err := serverOptions(d, nil)
		return nil, err
	}
	made, end, err := toolsOf(d, nil)
	if err != nil {
		return nil, err
	}
	end()
	for _, tool := range made {
		name := tool.Spec().Name
		names, into[name] = append(names, name), tool
	}
	return names, nil
}

// toolsOf makes the tools of a declaration that is no MCP server. An error has its place in the
// file. Without getenv the tools are only looked at.
func toolsOf(d *config.Declaration, getenv func(string) string) (made []holdfast.Tool, end func(), err error) {
	switch d.Kind {
	case config.KindHTTP:
		return httpTool(d, getenv)
	case config.KindOpenAPI:
		return openAPITools(d, getenv)
	case config.KindOutside:
		return outsideTool(d, getenv)
	case config.KindFetch:
		return fetchTool(d, getenv)
	default:
		return fileTools(d, getenv)
	}
}

// httpTool makes a tool that calls an HTTP service.
func httpTool(d *config.Declaration, getenv func(string) string) ([]holdfast.Tool, func(), error) {
	var o httptool.Options
	if err := d.Decode(&o, getenv); err != nil {
		return nil, nil, err
	}
	var err error
	o.Getenv = orStandIn(getenv, o.URL, o.LookUp)
	if o.RoundTripper, err = credentialed(d, o.Name, originOf(o.URL, o.Getenv), getenv); err != nil {
		return nil, nil, err
	}
	t, err := httptool.New(o)
	if err != nil {
		return nil, nil, d.Located(err, "")
	}
	return []holdfast.Tool{t}, t.Close, nil
}

// openAPITools makes tools of operations of an OpenAPI document.
func openAPITools(d *config.Declaration, getenv func(string) string) ([]holdfast.Tool, func(), error) {
	var o httptool.OpenAPIOptions
	if err := d.Decode(&o, getenv); err != nil {
		return nil, nil, err
	}
	var err error
	urls := []string{o.Server}
	for _, op := range o.Operations {
		urls = append(urls, op.LookUp)
	}
	o.Getenv = orStandIn(getenv, urls...)
	if o.RoundTripper, err = credentialed(d, "", originOf(o.Server, o.Getenv), getenv); err != nil {
		return nil, nil, err
	}
	made, err := httptool.FromOpenAPI(d.Document, o)
	if err != nil {
		return nil, nil, d.Located(err, "")
	}
	all := make([]holdfast.Tool, len(made))
	for i, t := range made {
		all[i] = t
	}
	return all, func() {
		for _, t := range made {
			t.Close()
		}
	}, nil
}

// outsideTool makes a tool whose calls are finished from outside.
func outsideTool(d *config.Declaration, getenv func(string) string) ([]holdfast.Tool, func(), error) {
	var o struct {
		holdfast.ToolSpec
		holdfast.Outside
		Webhook *struct {
			webhook.Options
			Secret  string
			Timeout time.Duration
		}
	}
	if err := d.Decode(&o, getenv); err != nil {
		return nil, nil, err
	}
	spec := o.ToolSpec
	spec.Outside = &o.Outside
	if o.Effect == holdfast.EffectQuery {
		return nil, nil, d.Errorf("effect",
			"effect: a call that is finished from outside cannot be looked up; use once or idempotent")
	}
	if w := o.Webhook; w != nil {
		var err error
		w.Options.Secret, w.Options.Timeout = secret.New(w.Secret), w.Timeout
		if spec.Outside.Deliver, err = webhook.New(w.Options); err != nil {
			return nil, nil, d.Located(err, "webhook")
		}
	}
	t, err := contract.Of(spec)
	if err != nil {
		return nil, nil, d.Located(err, "")
	}
	return []holdfast.Tool{t}, func() {}, nil
}

// fetchTool makes http_get with options.
func fetchTool(d *config.Declaration, getenv func(string) string) ([]holdfast.Tool, func(), error) {
	var o httptool.FetchOptions
	if err := d.Decode(&o, getenv); err != nil {
		return nil, nil, err
	}
	t, err := httptool.Fetch(o)
	if err != nil {
		return nil, nil, d.Located(err, "")
	}
	return []holdfast.Tool{t}, t.Close, nil
}

// fileTools makes the tools that read the files of a directory.
func fileTools(d *config.Declaration, getenv func(string) string) ([]holdfast.Tool, func(), error) {
	var o tools.FilesOptions
	if err := d.Decode(&o, getenv); err != nil {
		return nil, nil, err
	}
	if o.Directory == "" && getenv == nil {
		o.Directory = "." // a variable says which, so it cannot be looked at here
	}
	f, err := tools.Files(o)
	if err != nil {
		return nil, nil, d.Located(err, "")
	}
	return f.Tools, func() {
		_ = f.Close() // nothing was written
	}, nil
}

// serverOptions returns the options of an MCP server, without a log.
func serverOptions(d *config.Declaration, getenv func(string) string) (o mcp.Options, err error) {
	if err := d.Decode(&o, getenv); err != nil {
		return o, err
	}
	if o.RoundTripper, err = credentialed(d, o.Name, o.URL, getenv); err != nil {
		return o, err
	}
	if err := o.Validate(); err != nil {
		return o, d.Located(err, "")
	}
	return o, nil
}

// orStandIn returns an environment for templates; when a file is only checked, one in which
// each variable is a URL that the others of the tool can belong together with.
func orStandIn(getenv func(string) string, urls ...string) func(string) string {
	if getenv != nil {
		return getenv
	}
	standIn := "https://variable.invalid"
	for _, u := range urls {
		if u != "" && !strings.HasPrefix(u, "${") {
			standIn = originOf(u, func(string) string { return "" })
		}
	}
	return func(string) string { return standIn }
}

var variables = regexp.MustCompile(`\$\{([^}]*)\}`)

// originOf returns scheme, host and port of a URL's template.
func originOf(text string, getenv func(string) string) string {
	text = variables.ReplaceAllStringFunc(text, func(v string) string { return getenv(v[2 : len(v)-1]) })
	scheme, rest, _ := strings.Cut(text, "://")
	if end := strings.IndexAny(rest, "/?#{"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest
}

// credentialed returns what adds the credential of a declaration to the requests to a
// server; nil if it has none.
func credentialed(
	d *config.Declaration, name, server string, getenv func(string) string,
) (func(http.RoundTripper) http.RoundTripper, error) {
	c := d.Credential
	if c == nil {
		return nil, nil
	}
	source := credential.File(c.File)
	if c.Env != "" {
		source = envCredential(c.Env, orStandIn(getenv))
	}
	// A variable cannot be set later. A file can be put there, so what lacks it is only a tool
	// that cannot be used for now: see missing.
	if getenv != nil && c.Env != "" {
		if _, err := source.Credential(context.Background(), credential.Request{}); err != nil {
			return nil, d.Errorf("credential.env", "credential: %v", err)
		}
	}
	t := credential.Transport{
		Source: source,
		Server: server,
		Name:   name,
		Scopes: c.Scopes,
		Header: c.Header,
		Prefix: c.Prefix,
	}
	if err := t.Validate(); err != nil {
		return nil, d.Errorf("credential", "credential: %s", strings.TrimPrefix(err.Error(), "the field Server: "))
	}
	return func(base http.RoundTripper) http.RoundTripper {
		with := t
		with.Base = base
		return &with
	}, nil
}

// missing returns why the file with the credential of a declaration cannot be used now, with
// its place; nil if it can, or if there is no such file in the declaration.
func missing(d *config.Declaration) error {
	if d.Credential == nil || d.Credential.File == "" {
		return nil
	}
	if _, err := credential.File(d.Credential.File).Credential(context.Background(), credential.Request{}); err != nil {
		return d.Errorf("credential.file", "credential: %v", err)
	}
	return nil
}

// envCredential is credential.Env with an environment of the program's.
func envCredential(name string, getenv func(string) string) credential.Source {
	return credential.SourceFunc(func(context.Context, credential.Request) (secret.Text, error) {
		if value := strings.TrimSpace(getenv(name)); value != "" {
			return secret.New(value), nil
		}
		return secret.Text{}, fmt.Errorf("the environment variable %s is not set", name)
	})
}
