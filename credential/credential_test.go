package credential_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/secret"
)

// TestSources: the environment and a file are asked at each call, and say what is missing, but
// not where on the disk: the model and its client read it.
func TestSources(t *testing.T) {
	env := credential.Env("HOLDFAST_TEST_CREDENTIAL")
	path := filepath.Join(t.TempDir(), "token")
	file := credential.File(path)
	for _, s := range []credential.Source{env, file} {
		_, err := s.Credential(t.Context(), credential.Request{})
		if err == nil || strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), "HOLDFAST_TEST_CREDENTIAL") &&
				!strings.Contains(err.Error(), "no such file") {
			t.Errorf("%v", err)
		}
	}
	for _, value := range []string{"one", "two"} {
		t.Setenv("HOLDFAST_TEST_CREDENTIAL", value)
		if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, s := range []credential.Source{env, file} {
			if got, err := s.Credential(t.Context(), credential.Request{}); err != nil || got.Reveal() != value {
				t.Errorf("%q, %v", got.Reveal(), err)
			}
		}
	}
	for content, want := range map[string]string{" \n": "is empty", strings.Repeat("x", 65<<10): "has more than"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := file.Credential(t.Context(), credential.Request{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), path) {
			t.Errorf("%.10q: %v", content, err)
		}
	}
}

// sent is a transport that keeps the requests that it gets.
type sent []*http.Request

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	*s = append(*s, r)
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Header: http.Header{}}, nil
}

// TestTransport: only the server gets the credential of the user of the call.
func TestTransport(t *testing.T) {
	var asked []credential.Request
	source := credential.SourceFunc(func(_ context.Context, r credential.Request) (secret.Text, error) {
		asked = append(asked, r)
		return secret.New("for-" + r.Principal.User), nil
	})
	ctx := holdfast.ContextWithCall(t.Context(),
		holdfast.ToolCall{Name: "search", Principal: holdfast.Principal{Tenant: "acme", User: "alice"}}, nil)
	for name, c := range map[string]struct {
		transport credential.Transport
		url       string
		set       string
		header    string
		want      string
	}{
		"the server":          {url: "https://api.example/x?y", header: "Authorization", want: "Bearer for-alice"},
		"written differently": {url: "HTTPS://API.example:443/", header: "Authorization", want: "Bearer for-alice"},
		"a header of its own": {transport: credential.Transport{Header: "X-Api-Key"}, url: "https://api.example/",
			header: "X-Api-Key", want: "for-alice"},
		"a prefix of its own": {transport: credential.Transport{Prefix: "token "}, url: "https://api.example/",
			header: "Authorization", want: "token for-alice"},
		"another host":          {url: "https://evil.example/", header: "Authorization"},
		"a host below":          {url: "https://x.api.example/", header: "Authorization"},
		"a host that begins so": {url: "https://api.example.evil.example/", header: "Authorization"},
		"another port":          {url: "https://api.example:8443/", header: "Authorization"},
		"unencrypted":           {url: "http://api.example/", header: "Authorization"},
		"user names in the URL": {url: "https://api.example@evil.example/", header: "Authorization"},
		"a header that is there": {url: "https://api.example/", set: "Basic x", header: "Authorization",
			want: "Basic x"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			var got sent
			tr := c.transport
			tr.Source, tr.Server, tr.Scopes, tr.Base = source, "https://api.example", []string{"read"}, &got
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.set != "" {
				r.Header.Set("Authorization", c.set)
			}
			if _, err := tr.RoundTrip(r); err != nil {
				t.Fatal(err)
			}
			if value := got[0].Header.Get(c.header); value != c.want {
				t.Errorf("sent %q, want %q", value, c.want)
			}
			if c.set == "" && r.Header.Get(c.header) != "" {
				t.Error("the caller's request was changed")
			}
			if ours := c.want != "" && c.set == ""; ours != (len(asked) == 1) ||
				ours && fmt.Sprint(asked[0]) != "{{acme alice <nil>} api.example search [read]}" {
				t.Errorf("asked %v", asked)
			}
		})
	}
}

// TestTransportRefuses: what cannot be is refused before anything is sent, and no error has
// a credential.
func TestTransportRefuses(t *testing.T) {
	value := func(v string, err error) credential.Source {
		return credential.SourceFunc(func(context.Context, credential.Request) (secret.Text, error) {
			return secret.New(v), err
		})
	}
	for want, tr := range map[string]credential.Transport{
		"the field Source":  {Server: "https://x.example"},
		"the field Server ": {Source: value("v", nil), Server: "x.example"},
		"use https":         {Source: value("v", nil), Server: "http://x.example"},
		"has no credential": {Source: value("", nil), Server: "https://x.example"},
		"has line breaks":   {Source: value("hidden\r\nX: y", nil), Server: "https://x.example"},
		"vault is sealed":   {Source: value("hidden", errors.New("the vault is sealed")), Server: "https://x.example"},
	} {
		var got sent
		tr.Base = &got
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://x.example/", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = (&http.Client{Transport: &tr}).Do(r); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hidden") || len(got) > 0 {
			t.Errorf("%v, want %s; sent %d", err, want, len(got))
		}
	}
	if err := (&credential.Transport{Source: value("v", nil), Server: "http://127.0.0.1:8080"}).Validate(); err != nil {
		t.Errorf("this machine: %v", err)
	}
}

// TestLoginRequired: however it is wrapped, the error is a question, and its text has no
// address.
func TestLoginRequired(t *testing.T) {
	err := fmt.Errorf("search: %w", &credential.LoginRequired{URL: "https://login.example/?state=hidden",
		Server: "files"})
	var ask *holdfast.Interrupt
	if !errors.As(err, &ask) || ask.Reason != credential.ReasonLogin ||
		string(ask.Metadata) != `{"server":"files","url":"https://login.example/?state=hidden"}` ||
		ask.Message != "Please log in to files, then go on here." {
		t.Errorf("%+v", ask)
	}
	if text := err.Error(); strings.Contains(text, "hidden") || !strings.Contains(text, "a login to files is needed") {
		t.Error(text)
	}
	if !errors.As(error(&credential.LoginRequired{Message: "Hello"}), &ask) || ask.Message != "Hello" {
		t.Errorf("%+v", ask)
	}
}
