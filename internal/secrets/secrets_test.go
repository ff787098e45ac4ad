package secrets_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/secrets"
)

// TestClean: a secret is left out in every form in which services repeat it, a longer one
// that begins with another as a whole, and short texts stay.
func TestClean(t *testing.T) {
	ctx, outer := secrets.Collect(t.Context())
	ctx, inner := secrets.Collect(ctx)
	for _, text := range []string{"short", "abcdefgh", "abcdefghijkl", `q"uo/te+<d>`} {
		secrets.Add(ctx, text)
	}
	secrets.Add(t.Context(), "nobody collects this")
	escaped, err := json.Marshal(`q"uo/te+<d>`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join([]string{
		"short",
		"abcdefgh",
		"abcdefghijkl",
		`q"uo/te+<d>`,
		string(escaped),
		strings.ReplaceAll(string(escaped), "/", `\/`),
		`q\"uo/te+<d>`,
		url.QueryEscape(`q"uo/te+<d>`),
		url.PathEscape(`q"uo/te+<d>`),
		"nobody collects this",
	}, " ")
	const want = `short [secret] [secret] [secret] "[secret]" "[secret]" [secret] [secret] ` +
		`[secret] nobody collects this`
	for _, l := range []*secrets.List{inner, outer} {
		if got := l.Clean(text); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := (*secrets.List)(nil).Clean(text); got != text {
		t.Error(got)
	}
}
