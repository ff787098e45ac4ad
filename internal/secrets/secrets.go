// Package secrets removes a call's credentials from its result: a service may repeat what it
// was sent, and models and people read that.
package secrets

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-agents/holdfast/secret"
)

// minLength is the length from which a text counts as a secret; leaving out shorter ones
// would garble results.
const minLength = 8

// List is a list of secrets. Its zero value is empty, and so is a nil List. It may be used
// concurrently.
type List struct {
	// outer gets what this one gets; nil if there is none.
	outer *List
	mu    sync.Mutex
	forms []string // the longest first
}

type key struct{}

// Collect returns a context in which [Add] adds to the list, and to that of ctx too.
func Collect(ctx context.Context) (context.Context, *List) {
	outer, _ := ctx.Value(key{}).(*List)
	l := &List{outer: outer}
	return context.WithValue(ctx, key{}, l), l
}

// Add notes a secret that is about to be sent on behalf of the call in the context.
func Add(ctx context.Context, text string) {
	if l, ok := ctx.Value(key{}).(*List); ok {
		l.Add(text)
	}
}

// Add adds a secret. Short texts are no secrets.
func (l *List) Add(text string) {
	if len(text) < minLength {
		return
	}
	for ; l != nil; l = l.outer {
		l.add(text)
	}
}

func (l *List) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, form := range Forms(text) {
		if !slices.Contains(l.forms, form) {
			l.forms = append(l.forms, form)
		}
	}
	// One secret may be the beginning of another.
	slices.SortStableFunc(l.forms, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// name is what names say of credentials.
var name = regexp.MustCompile(`(?i)key|token|secret|passw|passphrase|credential|auth|cookie|session|private|signature`)

// IsName reports whether the name of a header, variable or parameter says that its value is a
// credential.
func IsName(text string) bool { return name.MatchString(text) }

// Forms returns how a text reads by itself, in URLs and in JSON. Some encoders escape what
// matters to HTML, and slashes.
func Forms(text string) []string {
	plain := func(html bool) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		_ = e.Encode(text) // a string can always be encoded
		s := strings.TrimSpace(b.String())
		return s[1 : len(s)-1]
	}
	forms := []string{
		text,
		url.QueryEscape(text),
		strings.ReplaceAll(url.QueryEscape(text), "+", "%20"),
		url.PathEscape(text),
		plain(true),
		plain(false),
	}
	for _, form := range forms[4:] {
		forms = append(forms, strings.ReplaceAll(form, "/", `\/`))
	}
	return forms
}

// Clean returns a text with [secret.Shown] in place of secrets.
func (l *List) Clean(s string) string {
	if l == nil || s == "" {
		return s
	}
	l.mu.Lock()
	forms := slices.Clone(l.forms)
	l.mu.Unlock()
	for _, form := range forms {
		s = strings.ReplaceAll(s, form, secret.Shown)
	}
	return s
}
