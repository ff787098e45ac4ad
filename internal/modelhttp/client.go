// Package modelhttp has the common parts of the model providers' clients: it finds the key,
// sends a request, reads a stream of events within limits, and interprets failures. A
// provider's package adds the form of its requests and a [Parser] of its answers.
//
// It is a client of our own because a durable server must know when an answer is complete:
// only after the provider's terminal event, and any other end is a truncation. The loop
// decides whether to try again, because it knows what was already shown; the errors here
// say whether that can help.
package modelhttp

// The options of a client and their checks. Errors never show a key, nor a URL that may
// have one in it.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-agents/holdfast/model"
)

// Provider is what a provider's package knows of its API.
type Provider struct {
	// Name is the provider's, such as "openai".
	Name string
	// API names the one that is asked, of a provider that has several.
	API string
	// BaseURLEnv is the environment variable with the base URL, and DefaultBaseURL what it is
	// if that is not set either.
	BaseURLEnv, DefaultBaseURL string
	// URLExample shows in an error what a base URL looks like.
	URLExample string
	// DefaultKeyEnv is the environment variable with the key, if the user names none.
	DefaultKeyEnv string
	// KeyHeader and KeyPrefix say how the key is sent: after the prefix, in the header.
	KeyHeader, KeyPrefix string
	// OwnHeaders are headers that the provider needs; the user's may replace them.
	OwnHeaders map[string]string
	// OwnParams are the members of a request that the user cannot set.
	OwnParams []string
}

// settings are both that make a client.
type settings struct {
	Provider
	model.Options
}

// Client asks one model of a provider. It may be used concurrently.
type Client struct {
	// Provider and Model are the names of both.
	Provider, Model string
	// BaseURL has no slash at its end.
	BaseURL string
	// Params are the user's members of each request, as they are in JSON.
	Params map[string]any

	header  http.Header
	http    *http.Client
	timeout time.Duration
	now     func() time.Time
	circuit string
	// secrets never appear in an error's text.
	secrets []string
	tools   *writtenTools
}

// defaultTimeout is how long a provider may be silent. Some queue requests first.
const defaultTimeout = 5 * time.Minute

// New checks the options. It does not send anything.
func New(p Provider, user model.Options) (*Client, error) {
	o := settings{p, user}
	if o.Model == "" {
		return nil, errors.New("the model has no name: give the name that the provider knows it by")
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.BaseURLEnv != "" {
		o.BaseURL = cmp.Or(o.BaseURL, o.Getenv(o.BaseURLEnv))
	}
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	o.Key, o.BaseURL = key, cmp.Or(o.BaseURL, o.DefaultBaseURL)
	if err := o.checkURL(); err != nil {
		return nil, err
	}
	params, err := o.params()
	if err != nil {
		return nil, err
	}
	if o.Timeout < 0 {
		return nil, errors.New("the model's timeout cannot be negative")
	}
	c := &Client{
		Provider: o.Name,
		Model:    o.Model,
		BaseURL:  strings.TrimRight(o.BaseURL, "/"),
		Params:   params,
		timeout:  cmp.Or(o.Timeout, defaultTimeout),
		now:      o.Now,
		tools:    &writtenTools{},
	}
	if c.now == nil {
		c.now = time.Now
	}
	if err := c.setHeaders(o); err != nil {
		return nil, err
	}
	c.circuit = circuitKey(c.BaseURL, o.API, o.Proxy, c.header)
	return c, c.setHTTP(o)
}

// Header returns a copy of the headers of each request.
func (c *Client) Header() http.Header { return c.header.Clone() }

// variableNames matches names of environment variables. It is strict, because the name is
// shown in errors, and somebody may have put the key there.
var variableNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// key returns the key; empty if none is needed.
func (o *settings) key() (string, error) {
	switch {
	case o.Key != "" && o.KeyEnv != "":
		return "", errors.New("the model has both a key and the name of a variable with one: set Key or KeyEnv")
	case o.Key != "":
		return o.Key, nil
	case o.KeyEnv != "" && !variableNames.MatchString(o.KeyEnv):
		return "", fmt.Errorf("KeyEnv must be the name of an environment variable, like %s; a "+
			"key itself belongs in Key", o.DefaultKeyEnv)
	case o.KeyEnv != "":
		if key := o.Getenv(o.KeyEnv); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("the model %s needs a key: set %s", o.Model, o.KeyEnv)
	}
	key := o.Getenv(o.DefaultKeyEnv)
	if key == "" && o.BaseURL == "" && !o.authorizes() {
		hint := ""
		if o.BaseURLEnv != "" {
			hint = ", or name a server that needs none with " + o.BaseURLEnv
		}
		return "", fmt.Errorf("the model %s needs a key: set %s%s", o.Model, o.DefaultKeyEnv, hint)
	}
	return key, nil
}

// authorizes reports whether a header replaces the key.
func (o *settings) authorizes() bool {
	for name := range o.Headers {
		if strings.EqualFold(name, "Authorization") || strings.EqualFold(name, o.KeyHeader) {
			return true
		}
	}
	return false
}

// checkURL never shows the URL: if it cannot be parsed, a password may be anywhere in it.
func (o *settings) checkURL() error {
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the model's base URL must be absolute, like %s", o.URLExample)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the model's base URL must have only scheme, host and path; set the key separately")
	}
	return nil
}

// params checks the parameters, and returns them as they are in JSON: objects as maps, and
// numbers as they were written.
func (o *settings) params() (map[string]any, error) {
	for name := range o.Params {
		if slices.Contains(o.OwnParams, name) {
			return nil, fmt.Errorf("the parameter %q cannot be set: the server sets it itself", name)
		}
	}
	b, err := json.Marshal(o.Params)
	var params map[string]any
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		err = d.Decode(&params)
	}
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be written as JSON: %w", err)
	}
	return params, nil
}

// minSecret is the length, in bytes, from which a header's value counts as a secret;
// removing shorter ones from the log would garble it.
const minSecret = 8

// setHeaders sets the headers of each request, and remembers the secrets in them.
func (c *Client) setHeaders(o settings) error {
	c.header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream, application/json"}}
	for name, value := range o.OwnHeaders {
		c.header.Set(name, value)
	}
	if o.Key != "" {
		if strings.ContainsFunc(o.Key, unicode.IsControl) {
			return errors.New("the model's key contains a line ending or another control character; often it is the " +
				"last line ending of the key's file")
		}
		c.header.Set(o.KeyHeader, o.KeyPrefix+o.Key)
		c.secrets = append(c.secrets, o.Key)
	}
	for name, value := range o.Headers {
		switch {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }):
			return fmt.Errorf("the header %q has a name that HTTP does not allow", name)
		case strings.ContainsFunc(value, unicode.IsControl):
			return fmt.Errorf("the value of the header %q contains a line ending or another control character", name)
		case strings.EqualFold(name, "Content-Type") || strings.EqualFold(name, "Accept"):
			return fmt.Errorf("the header %q cannot be set: the server sets it itself", name)
		}
		c.header.Set(name, value)
		// Of "Bearer abc", a provider may repeat only the second part.
		for _, part := range append([]string{value}, strings.Fields(value)...) {
			if len(part) >= minSecret {
				c.secrets = append(c.secrets, part)
			}
		}
	}
	return nil
}
