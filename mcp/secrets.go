package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	known "github.com/holdfast-agents/holdfast/internal/secrets"
	"github.com/holdfast-agents/holdfast/secret"
)

// A server's credentials must not come back through its texts: its errors, its standard error,
// its results and questions. So the values are looked for in all of that.

// secrets are values that are not told.
type secrets struct {
	// all are kept out of the log and of errors; credentials, those of them whose names say
	// that they are some, also out of what models and clients get. Longer ones come first.
	all         []string
	credentials []string
	// seen are those that only the requests had, because a RoundTripper of the program adds
	// them; nil if there are none.
	seen *atomic.Pointer[secrets]
}

// maxSeen bounds the credentials of requests that are remembered.
const maxSeen = 100

// watcher is a transport that notes the credentials of the requests.
type watcher struct {
	http.RoundTripper
	*secrets
}

// RoundTrip implements [http.RoundTripper].
func (w watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	w.note(r.Header)
	return w.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections closes those of the transport.
func (w watcher) CloseIdleConnections() {
	if t, ok := w.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// note notes the credentials of a request.
func (s *secrets) note(h http.Header) {
	for name, values := range h {
		if strings.HasPrefix(name, "Mcp-") || !known.IsName(name) {
			continue
		}
		for _, value := range values {
			for seen := s.seen.Load(); !slices.Contains(seen.all, value); seen = s.seen.Load() {
				more := &secrets{}
				if len(seen.all) < maxSeen {
					more.all, more.credentials = slices.Clone(seen.all), slices.Clone(seen.credentials)
				}
				if more.add(name, value); !slices.Contains(more.all, value) || s.seen.CompareAndSwap(seen, more) {
					break
				}
			}
		}
	}
}

// secrets returns the secrets of the options.
func (o *Options) secrets() *secrets {
	s := &secrets{seen: &atomic.Pointer[secrets]{}}
	s.seen.Store(&secrets{})
	for _, values := range []map[string]string{o.Env, o.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			s.add(name, values[name])
		}
	}
	for _, raw := range []string{o.URL, o.Proxy} {
		u, err := url.Parse(raw)
		if err != nil {
			continue
		}
		for name, values := range u.Query() {
			for _, value := range values {
				s.add(name, value)
			}
		}
		if u.User != nil {
			password, _ := u.User.Password()
			s.add("password", cmp.Or(password, u.User.Username()))
			s.add("authorization", base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		}
	}
	return s
}

// with returns the secrets together with those of a call's own headers.
func (s *secrets) with(h http.Header) *secrets {
	if len(h) == 0 {
		return s
	}
	more := &secrets{all: slices.Clone(s.all), credentials: slices.Clone(s.credentials), seen: s.seen}
	for name, values := range h {
		if strings.HasPrefix(name, paramPrefix) {
			continue // an argument of the model's
		}
		for _, value := range values {
			more.add(name, value)
		}
	}
	return more
}

// add adds a value. Short ones are no secrets and would take too much with them.
func (s *secrets) add(name, value string) {
	const shortest = 6
	if strings.HasSuffix(strings.ToLower(name), "idempotency-key") {
		return // which a server may well repeat
	}
	_, token, ok := strings.Cut(value, " ") // of "Bearer token"
	if !ok || len(token) < shortest {
		token = value
	}
	for _, v := range []string{value, token} {
		if len(v) < shortest {
			continue
		}
		s.all = append(s.all, known.Forms(v)...)
		if known.IsName(name) {
			s.credentials = append(s.credentials, known.Forms(v)...)
		}
	}
	longer := func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }
	for _, list := range []*[]string{&s.all, &s.credentials} {
		slices.SortFunc(*list, longer)
		*list = slices.Compact(*list)
	}
}

// redact takes the secrets out of a text for the log or of an error.
func (s *secrets) redact(text string) string {
	if s.seen != nil {
		text = s.seen.Load().redact(text)
	}
	for _, value := range s.all {
		text = strings.ReplaceAll(text, value, secret.Shown)
	}
	return text
}

// clean takes the secrets out of an error's text.
func (s *secrets) clean(err error) error {
	if err == nil {
		return nil
	}
	if text := s.redact(err.Error()); text != err.Error() {
		return &cleaned{err, text}
	}
	return err
}

// cleaned is an error with another text.
type cleaned struct {
	err  error
	text string
}

// Error implements [error].
func (e *cleaned) Error() string { return e.text }

// Unwrap returns the error.
func (e *cleaned) Unwrap() error { return e.err }

// hide takes the credentials out of a text for models and clients.
func (s *secrets) hide(text string) string {
	if s.seen != nil {
		text = s.seen.Load().hide(text)
	}
	for _, value := range s.credentials {
		text = strings.ReplaceAll(text, value, secret.Shown)
	}
	return text
}

// strip takes the credentials out of what the server says.
func (s *secrets) strip(raw json.RawMessage) json.RawMessage {
	if s.seen != nil {
		raw = s.seen.Load().strip(raw)
	}
	for _, value := range s.credentials {
		raw = bytes.ReplaceAll(raw, []byte(value), []byte(secret.Shown))
	}
	return raw
}

// discreet is a handler of a log that is not told any secrets.
type discreet struct {
	slog.Handler
	*secrets
}

// Handle implements [slog.Handler].
func (d discreet) Handle(ctx context.Context, r slog.Record) error {
	told := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Resolve(); v.Kind() {
		case slog.KindString:
			a.Value = slog.StringValue(d.redact(v.String()))
		case slog.KindAny:
			if err, ok := v.Any().(error); ok {
				a.Value = slog.StringValue(d.redact(err.Error()))
			}
		}
		told.AddAttrs(a)
		return true
	})
	return d.Handler.Handle(ctx, told)
}

// WithAttrs implements [slog.Handler].
func (d discreet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return discreet{d.Handler.WithAttrs(attrs), d.secrets}
}

// WithGroup implements [slog.Handler].
func (d discreet) WithGroup(name string) slog.Handler {
	return discreet{d.Handler.WithGroup(name), d.secrets}
}
