package credential

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/internal/secrets"
)

// Transport is a transport for a tool's HTTP client: each request to one server gets the
// credential of the user of the call in its context, at the moment it is sent. Requests to
// any other address, as after a redirect, go without one; a header that is already set is
// left alone.
type Transport struct {
	// Source has the credentials. It is required.
	Source Source
	// Server is the URL of the server that gets them: scheme, host and port must be those of
	// a request. Without https it must be this machine, because others could read along.
	Server string
	// Name is what the source and the user know the server by; default the host of Server.
	Name string
	// Scopes are passed to the source.
	Scopes []string
	// Header is the header's name; default Authorization.
	Header string
	// Prefix is what stands before the credential; default "Bearer " for Authorization and
	// nothing for others.
	Prefix string
	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
}

// Validate returns an error for what cannot be, naming the field.
func (t *Transport) Validate() error {
	if t.Source == nil {
		return errors.New("the field Source is missing")
	}
	u, err := url.Parse(t.Server)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the field Server is no URL like https://api.example.com")
	case u.Scheme == "http" && !netguard.IsLoopback(u.Hostname()):
		return fmt.Errorf("the field Server: %s would get the credential unencrypted: use https", u.Host)
	}
	return nil
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if err := t.Validate(); err != nil {
		return nil, t.refuse(r, err)
	}
	server, _ := url.Parse(t.Server) // Validate has done so
	header := cmp.Or(t.Header, "Authorization")
	if !sameOrigin(r.URL, server) || r.Header.Get(header) != "" {
		return base.RoundTrip(r)
	}
	call := holdfast.CallFrom(r.Context())
	name := cmp.Or(t.Name, server.Host)
	value, err := t.Source.Credential(r.Context(),
		Request{Principal: call.Principal, Server: name, Tool: call.Name, Scopes: t.Scopes})
	if err == nil && value.IsZero() {
		err = errors.New("the source has no credential")
	}
	if err != nil {
		return nil, t.refuse(r, named(err, name))
	}
	prefix := t.Prefix
	if prefix == "" && header == "Authorization" {
		prefix = "Bearer "
	}
	text := prefix + value.Reveal()
	if strings.ContainsAny(text, "\r\n\x00") { // the error of net/http would show it
		return nil, t.refuse(r, errors.New("the credential has line breaks"))
	}
	secrets.Add(r.Context(), value.Reveal()) // the server may repeat it
	r = r.Clone(r.Context())                 // a RoundTripper must not change its request
	r.Header.Set(header, text)
	return base.RoundTrip(r)
}

// refuse closes the request's body, as a RoundTripper must, and returns the error.
func (t *Transport) refuse(r *http.Request, err error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return netguard.Unsent{Err: err}
}

// named gives a login that is required the server's name.
func named(err error, server string) error {
	var login *LoginRequired
	if errors.As(err, &login) && login.Server == "" {
		with := *login
		with.Server = server
		return &with
	}
	return err
}

// sameOrigin reports whether two URLs have the same scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
}
