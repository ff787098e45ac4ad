package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/holdfast-agents/holdfast/apikey"
)

func bearer(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/threads", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// TestKeysAndTokens: API keys and tokens can be used beside each other.
func TestKeysAndTokens(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: private.Public(), KeyID: "k"}}})
	}))
	defer provider.Close()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
		Key: jose.JSONWebKey{Key: private, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any{
		"iss":   "https://id.example.com/",
		"aud":   "holdfast",
		"sub":   "u1",
		"org":   "acme",
		"realm": map[string]any{"roles": []string{"holdfast:read", "operator"}},
		"exp":   time.Now().Add(time.Hour).Unix(),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	key, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions(
		[]string{
			"--jwks=" + provider.URL,
			"--jwt-issuer=https://id.example.com/",
			"--jwt-audience=holdfast",
			"--jwt-claims=tenant=org, roles=realm.roles",
		},
		env(map[string]string{"HOLDFAST_API_KEYS": entry}),
	)
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCallers(o.settings.Tokens, o.getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for shown, want := range map[string]string{key: "acme/alice", token: "acme/u1", "hf_unknown": "", token + "x": ""} {
		who, err := c.authenticate()(bearer(shown))
		if got := strings.Trim(who.Tenant+"/"+who.User, "/"); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %+v, %v", shown, who, err)
		}
		if want == "acme/u1" && (len(who.Rights.Roles) != 1 || who.Rights.Roles[0] != "read") {
			t.Errorf("%+v", who.Rights)
		}
	}
	c.keys = nil
	if _, err := c.authenticate()(bearer(token)); err != nil {
		t.Errorf("tokens alone: %v", err)
	}
}

// TestFormerOperator: beside tokens a key's role of earlier builds could be meant for either
// operator, and the server says so when it starts.
func TestFormerOperator(t *testing.T) {
	_, entry, err := apikey.New(rand.Reader, "acme", "ops")
	if err != nil {
		t.Fatal(err)
	}
	entry = strings.Replace(entry, "acme/ops", "acme/ops;roles=operator", 1)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--jwks=https://id.example.com/keys", "--jwt-issuer=i", "--jwt-audience=a"},
			"API key 1 (acme/ops): callers with tokens may be of other tenants, and there are two kinds of " +
				"operator: write tenant_operator"},
	} {
		o, err := parseOptions(tt.args, env(map[string]string{"HOLDFAST_API_KEYS": entry}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = readCallers(o.settings.Tokens, o.getenv, slog.New(slog.DiscardHandler))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
}

func TestCallerMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"--jwks is missing":       {"--jwt-issuer=https://id.example.com/"},
		"the issuer is missing":   {"--jwks=https://id.example.com/keys", "--jwt-audience=a"},
		"the audience is missing": {"--jwks=https://id.example.com/keys", "--jwt-issuer=i"},
		"must be https": {"--jwks=http://id.example.com/keys", "--jwt-issuer=i",
			"--jwt-audience=a"},
		"at this URL, the provider's jwks_uri": {"--jwt-claims=user=email"},
		"the tenant has control cha": {"--jwks=https://id.example.com/keys", "--jwt-issuer=i", "--jwt-audience=a",
			"--jwt-tenant=a\nb"},
	} {
		o, err := parseOptions(args, env(nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readCallers(o.settings.Tokens, o.getenv, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
