package thread

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// TestToken: a token names its call whatever the ids are, and only the very same one
// matches.
func TestToken(t *testing.T) {
	for _, ids := range [][3]string{{"acme", "t", "call_1"}, {"", "", ""},
		{"a/b.c", "ü\x00|", strings.Repeat("x", 256)}} {
		token := NewToken(store.ThreadKey{Tenant: ids[0], Thread: ids[1]}, ids[2], "secret")
		key, call, err := ParseToken(token)
		if err != nil || key.Tenant != ids[0] || key.Thread != ids[1] || call != ids[2] {
			t.Errorf("%q: %v %q %v", ids, key, call, err)
		}
		other := NewToken(key, call, "Secret")
		hashes := []string{TokenHash("old"), TokenHash(token)}
		if !TokenMatches(hashes, token) || TokenMatches(hashes, other) || TokenMatches(hashes, "") ||
			TokenMatches(nil, token) {
			t.Errorf("%q matches wrongly", token)
		}
		if strings.Contains(strings.Join(hashes, " "), "secret") {
			t.Error("the hash has the secret")
		}
	}
	for _, bad := range []string{"", "hfc_", "hfc_.", "hfc_AAAA.", "AAAA.secret", "hfc_AAAA.secret.", "hfc_A.secret",
		"hfc_AAAAAA.secret", "hfc_AAA=.s", strings.Repeat("hfc_", 1000) + ".s"} {
		if key, call, err := ParseToken(bad); err == nil && bad != "hfc_AAAA.secret." {
			t.Errorf("%q is taken for a token of %v %q", bad, key, call)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(NewToken(store.ThreadKey{Tenant: "acme", Thread: "t"}, "c", "s"))
	f.Add("hfc_AAAA.s")
	f.Fuzz(func(t *testing.T, token string) {
		key, call, err := ParseToken(token)
		if err != nil {
			return
		}
		_, secret, _ := strings.Cut(token, ".")
		if again, c, err := ParseToken(NewToken(key, call, secret)); err != nil || again != key || c != call {
			t.Fatalf("%q: %v %q, then %v %q %v", token, key, call, again, c, err)
		}
	})
}
