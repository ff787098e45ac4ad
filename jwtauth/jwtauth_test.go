package jwtauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/jwtauth"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// provider is an identity provider on this machine, with a clock for it and the verifier.
type provider struct {
	*jwtauth.Verifier
	url string

	mu    sync.Mutex
	now   time.Time
	set   []jose.JSONWebKey
	raw   string // if set, the answer instead of set
	code  int    // if set, the status of the answer
	asked int
}

func newProvider(t *testing.T, change func(*jwtauth.Options)) *provider {
	t.Helper()
	p := &provider{now: start}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked++
		if p.code != 0 {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(p.code)
		}
		if p.raw != "" {
			_, _ = io.WriteString(w, p.raw)
			return
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: p.set})
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	p.url = s.URL
	o := jwtauth.Options{JWKS: s.URL, Issuer: "https://id.example.com/", Audience: "holdfast", Now: p.clock}
	if change != nil {
		change(&o)
	}
	var err error
	if p.Verifier, err = jwtauth.New(o); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *provider) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *provider) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// key is a key of the provider.
type key struct {
	id  string
	alg jose.SignatureAlgorithm
	crypto.Signer
}

func (k key) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.Public(), KeyID: k.id, Algorithm: string(k.alg), Use: "sig"}
}

func (k key) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	return signed(t, jose.SigningKey{Algorithm: k.alg, Key: jose.JSONWebKey{Key: k.Signer, KeyID: k.id}}, claims)
}

func signed(t *testing.T, with jose.SigningKey, claims map[string]any) string {
	t.Helper()
	return typed(t, with, "at+jwt", claims)
}

// typed signs a token whose header has a typ; without one if it is empty.
func typed(t *testing.T, with jose.SigningKey, typ jose.ContentType, claims map[string]any) string {
	t.Helper()
	var options jose.SignerOptions
	if typ != "" {
		options.WithType(typ)
	}
	signer, err := jose.NewSigner(with, &options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func ecKey(t *testing.T, id string) key {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key{id, jose.ES256, k}
}

func rsaKey(t *testing.T, id string, bits int) key {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key{id, jose.RS256, k}
}

// claims are those of a good token, with changes; nil removes a claim.
func claims(changes map[string]any) map[string]any {
	c := map[string]any{
		"iss": "https://id.example.com/", "aud": "holdfast", "sub": "alice", "tenant": "acme",
		"iat": start.Unix(), "exp": start.Add(time.Hour).Unix(),
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/threads", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	return r
}

// TestAlgorithms: tokens that are signed with a published key are good, whatever its kind.
func TestAlgorithms(t *testing.T) {
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := []key{ecKey(t, "ec"), rsaKey(t, "rsa", 2048), {"ed", jose.EdDSA, edKey}}
	keys = append(keys, key{"pss", jose.PS256, keys[1].Signer})
	p := newProvider(t, nil)
	for _, k := range keys {
		p.set = append(p.set, k.public())
	}
	for _, k := range keys {
		who, err := p.Authenticate(request("bearer " + k.sign(t, claims(nil))))
		if err != nil || who.Tenant != "acme" || who.User != "alice" || !who.Rights.Has(access.RoleUser) ||
			who.Rights.Agents != nil {
			t.Errorf("%s: %+v, %v", k.id, who, err)
			continue
		}
		if want := start.Add(time.Hour + 30*time.Second); !who.Rights.Expires.Equal(want) {
			t.Errorf("it expires at %s, not %s", who.Rights.Expires, want)
		}
	}
	nameless := keys[0]
	nameless.id = ""
	if _, err := p.Authenticate(request("Bearer " + nameless.sign(t, claims(nil)))); err != nil {
		t.Errorf("without a key id: %v", err)
	}
	if p.asked != 1 {
		t.Errorf("the keys were fetched %d times", p.asked)
	}
}

// TestForgeries: nothing that the provider has not signed for this server lets anybody in,
// and no answer contains the token.
func TestForgeries(t *testing.T) {
	good, other, weak := rsaKey(t, "good", 2048), rsaKey(t, "good", 2048), rsaKey(t, "weak", 1024)
	enc := ecKey(t, "enc")
	p := newProvider(t, nil)
	encryption := enc.public()
	encryption.Use = "enc"
	p.set = []jose.JSONWebKey{
		good.public(),
		weak.public(),
		encryption,
		{Key: []byte("a shared secret of the provider."), KeyID: "shared", Algorithm: "HS256"},
	}
	der, err := x509.MarshalPKIXPublicKey(good.Public())
	if err != nil {
		t.Fatal(err)
	}
	published := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	token := good.sign(t, claims(nil))
	parts := strings.Split(token, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	mallory, err := json.Marshal(claims(map[string]any{"sub": "mallory"}))
	if err != nil {
		t.Fatal(err)
	}
	otherAlgorithm := good
	otherAlgorithm.alg = jose.RS512
	for name, forged := range map[string]string{
		"another key of that id": other.sign(t, claims(nil)),
		"too small a key":        weak.sign(t, claims(nil)),
		"a key for encryption":   enc.sign(t, claims(nil)),
		"another algorithm":      otherAlgorithm.sign(t, claims(nil)),
		"HMAC with the public key": signed(t,
			jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: published, KeyID: "good"}}, claims(nil)),
		"HMAC with a shared key": signed(t,
			jose.SigningKey{Algorithm: jose.HS256,
				Key: jose.JSONWebKey{Key: []byte("a shared secret of the provider."), KeyID: "shared"}},
			claims(nil)),
		"no signature":              parts[0] + "." + parts[1] + ".",
		"alg none":                  b64([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"changed claims":            parts[0] + "." + b64(mallory) + "." + parts[2],
		"another issuer":            good.sign(t, claims(map[string]any{"iss": "https://evil.example/"})),
		"the issuer without slash":  good.sign(t, claims(map[string]any{"iss": "https://id.example.com"})),
		"no issuer":                 good.sign(t, claims(map[string]any{"iss": nil})),
		"another audience":          good.sign(t, claims(map[string]any{"aud": []string{"shop", "holdfast-admin"}})),
		"no audience":               good.sign(t, claims(map[string]any{"aud": nil})),
		"expired":                   good.sign(t, claims(map[string]any{"exp": start.Add(-time.Minute).Unix()})),
		"without end":               good.sign(t, claims(map[string]any{"exp": nil})),
		"an end that is no time":    good.sign(t, claims(map[string]any{"exp": "tomorrow"})),
		"not yet":                   good.sign(t, claims(map[string]any{"nbf": start.Add(time.Hour).Unix()})),
		"no tenant":                 good.sign(t, claims(map[string]any{"tenant": nil})),
		"an empty tenant":           good.sign(t, claims(map[string]any{"tenant": ""})),
		"a tenant that is no text":  good.sign(t, claims(map[string]any{"tenant": 7})),
		"no user":                   good.sign(t, claims(map[string]any{"sub": nil})),
		"a user with a line ending": good.sign(t, claims(map[string]any{"sub": "alice\nroot"})),
		"a very long user":          good.sign(t, claims(map[string]any{"sub": strings.Repeat("a", 129)})),
		"roles that are no list":    good.sign(t, claims(map[string]any{"roles": map[string]bool{"operator": true}})),
		"an API key":                "hf_abcdefghijklmnopqrstuvwxyz234567",
		"nothing":                   "",
		"very long":                 parts[0] + "." + strings.Repeat("A", 1<<15) + "." + parts[2],
		"another part":              token + ".AAAA",
	} {
		t.Run(name, func(t *testing.T) {
			who, err := p.Authenticate(request("Bearer " + forged))
			if err == nil || !reflect.DeepEqual(who, holdfast.Principal{}) {
				t.Fatalf("let in as %+v, %v", who, err)
			}
			e := holdfast.AsError(err)
			if e.Code != codes.Unauthenticated || e.Hint == "" ||
				forged != "" && strings.Contains(err.Error()+e.Message+e.Hint, forged) {
				t.Errorf("%+v", e)
			}
			if expired := strings.Contains(e.Message, "expired"); expired != (name == "expired") {
				t.Error(e.Message)
			}
		})
	}
	for name, r := range map[string]*http.Request{"two": request("Bearer "+token, "Bearer "+token), "none": request(),
		"another scheme": request("Basic " + token)} {
		if who, err := p.Authenticate(r); err == nil {
			t.Errorf("%s: let in as %+v", name, who)
		}
	}
	if who, err := p.Authenticate(request("Bearer " + token)); err != nil || who.User != "alice" {
		t.Errorf("the good token: %+v, %v", who, err)
	}
}

// TestClaims: where the provider keeps tenant, user, roles and agents is configured.
func TestClaims(t *testing.T) {
	named := func(o *jwtauth.Options) {
		o.TenantClaim, o.UserClaim, o.RolesClaim, o.AgentsClaim = "https://example.com/org", "email",
			"realm_access.roles", "scope"
	}
	user := []access.Role{access.RoleUser}
	for name, tt := range map[string]struct {
		change func(*jwtauth.Options)
		claims map[string]any
		want   string // tenant/user
		roles  []access.Role
		agents []string
	}{
		"by default": {nil, map[string]any{"roles": []string{"holdfast:read", "holdfast:approver"},
			"agents": []string{"support"}},
			"acme/alice", []access.Role{"read", "approver"}, []string{"support"}},
		"a text": {nil, map[string]any{"roles": "holdfast:read  holdfast:server_operator", "agents": "a b"},
			"acme/alice", []access.Role{"read", "server_operator"}, []string{"a", "b"}},
		"other roles too": {nil, map[string]any{"roles": []string{"offline_access", "holdfast:Admin", "holdfast:read",
			"holdfast:read"}}, "acme/alice", []access.Role{"read"}, nil},
		"words of other applications": {nil, map[string]any{"roles": []string{"operator", "holdfast:user", "service",
			"holdfast-operator"}}, "acme/alice", user, nil},
		"a claim of its own": {func(o *jwtauth.Options) { o.OwnRoles = true },
			map[string]any{"roles": []string{"server_operator", "holdfast:read", "admin"}}, "acme/alice",
			[]access.Role{"server_operator", "read"}, nil},
		"the operator of earlier builds": {nil, map[string]any{"roles": []string{"holdfast:operator",
			"holdfast:tenant_operator"}}, "acme/alice", []access.Role{"tenant_operator"}, nil},
		"the same without a prefix": {func(o *jwtauth.Options) { o.OwnRoles, o.Tenant = true, "acme" },
			map[string]any{"roles": "operator"}, "acme/alice", []access.Role{"tenant_operator"}, nil},
		"only other roles": {nil, map[string]any{"roles": []string{"holdfast:admin"}}, "acme/alice", []access.Role{},
			nil},
		"no role":  {nil, map[string]any{"roles": []string{}}, "acme/alice", []access.Role{}, nil},
		"no agent": {nil, map[string]any{"agents": []string{}}, "acme/alice", user, []string{}},
		"null": {nil, map[string]any{"roles": json.RawMessage("null"), "agents": json.RawMessage("null")},
			"acme/alice", user, nil},
		"one tenant": {func(o *jwtauth.Options) { o.Tenant = "globex" }, map[string]any{"tenant": "acme"},
			"globex/alice", user, nil},
		"other names": {named, map[string]any{"https://example.com/org": "initech", "email": "a@b.c",
			"realm_access": map[string]any{"roles": []string{"holdfast:tenant_operator"}}, "scope": "x"},
			"initech/a@b.c", []access.Role{"tenant_operator"}, []string{"x"}},
		"a path to nothing": {named, map[string]any{"https://example.com/org": "initech", "email": "a@b.c",
			"realm_access": "roles"},
			"initech/a@b.c", user, nil},
		"several audiences": {nil, map[string]any{"aud": []string{"shop", "holdfast"}}, "acme/alice", user, nil},
		"just expired, leave": {nil, map[string]any{"exp": start.Add(-29 * time.Second).Unix()}, "acme/alice", user,
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, k := newProvider(t, tt.change), ecKey(t, "k")
			p.set = []jose.JSONWebKey{k.public()}
			who, err := p.Authenticate(request("Bearer " + k.sign(t, claims(tt.claims))))
			if err != nil || who.Tenant+"/"+who.User != tt.want || !reflect.DeepEqual(who.Rights.Roles, tt.roles) ||
				!reflect.DeepEqual(who.Rights.Agents, tt.agents) {
				t.Errorf("%+v %+v, %v", who, who.Rights, err)
			}
		})
	}
}

// TestRotation: a new key is found at its first token, a withdrawn one is not trusted for
// long, and invented key ids do not make the server fetch again and again.
func TestRotation(t *testing.T) {
	p, first, second := newProvider(t, nil), ecKey(t, "1"), ecKey(t, "2")
	step := func(after time.Duration, k key, ok bool, asked int) {
		t.Helper()
		p.change(func() { p.now = p.now.Add(after) })
		_, err := p.Authenticate(request("Bearer " + k.sign(t, claims(nil))))
		if (err == nil) != ok || p.asked != asked {
			t.Errorf("%s: key %s: %v, asked %d times", p.now.Sub(start), k.id, err, p.asked)
		}
	}
	p.set = []jose.JSONWebKey{first.public()}
	step(0, first, true, 1)
	step(time.Minute, first, true, 1)
	for i := range 20 {
		step(0, ecKey(t, fmt.Sprint("invented", i)), false, 2)
	}
	p.change(func() { p.set = []jose.JSONWebKey{first.public(), second.public()} })
	step(4*time.Second, second, false, 2)
	step(time.Second, second, true, 3)
	p.change(func() { p.set = []jose.JSONWebKey{second.public()} })
	step(9*time.Minute, first, true, 3)
	step(time.Minute, first, false, 4)
	step(0, second, true, 4)
}

// TestForeignTokensFetchNothing: tokens that are not meant for this server do not use up the
// attempts to fetch a key that the provider has just begun to sign with.
func TestForeignTokensFetchNothing(t *testing.T) {
	p, first, second := newProvider(t, nil), ecKey(t, "1"), ecKey(t, "2")
	p.set = []jose.JSONWebKey{first.public()}
	if _, err := p.Authenticate(request("Bearer " + first.sign(t, claims(nil)))); err != nil {
		t.Fatal(err)
	}
	p.change(func() {
		p.set = []jose.JSONWebKey{first.public(), second.public()}
		p.now = p.now.Add(time.Minute)
	})
	for name, changes := range map[string]map[string]any{
		"another issuer":   {"iss": "https://evil.example/"},
		"another audience": {"aud": "shop"},
		"expired":          {"exp": start.Add(-time.Hour).Unix()},
	} {
		if _, err := p.Authenticate(request("Bearer " + ecKey(t, "invented").sign(t, claims(changes)))); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	if p.asked != 1 {
		t.Errorf("the keys were fetched %d times", p.asked)
	}
	if _, err := p.Authenticate(request("Bearer " + second.sign(t, claims(nil)))); err != nil {
		t.Errorf("the new key: %v", err)
	}
}

// TestTypes: what else the provider signs with its keys is no access token.
func TestTypes(t *testing.T) {
	p, k := newProvider(t, nil), ecKey(t, "k")
	p.set = []jose.JSONWebKey{k.public()}
	with := jose.SigningKey{Algorithm: k.alg, Key: jose.JSONWebKey{Key: k.Signer, KeyID: k.id}}
	for typ, good := range map[jose.ContentType]bool{
		"": true, "JWT": true, "at+jwt": true, "application/at+JWT": true,
		"logout+jwt": false, "dpop+jwt": false, "application/jwt+at": false,
	} {
		if _, err := p.Authenticate(request("Bearer " + typed(t, with, typ, claims(nil)))); (err == nil) != good {
			t.Errorf("%q: %v", typ, err)
		}
	}
}

// TestProviderAway: a server starts without its provider, tells callers to come back, and
// goes on for a while with the keys that it has.
func TestProviderAway(t *testing.T) {
	k := ecKey(t, "k")
	token := k.sign(t, claims(map[string]any{"exp": start.Add(100 * time.Hour).Unix()}))
	for name, broken := range map[string]func(*provider){
		"an error":   func(p *provider) { p.code = 500 },
		"a redirect": func(p *provider) { p.code = 302 },
		"no JSON":    func(p *provider) { p.raw = "<html>" },
		"no keys":    func(p *provider) { p.raw = `{"keys":[]}` },
		"keys that do not fit": func(p *provider) {
			p.raw = `{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"new"},7,{"kty":"RSA","n":"","e":""}]}`
		},
		"without end": func(p *provider) { p.raw = `{"keys":["` + strings.Repeat("a", 2<<20) + `"]}` },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, nil)
			step := func(after time.Duration, code string, asked int) {
				t.Helper()
				p.change(func() { p.now = p.now.Add(after) })
				_, err := p.Authenticate(request("Bearer " + token))
				got := ""
				if err != nil {
					got = holdfast.AsError(err).Code
				}
				if got != code || p.asked != asked {
					t.Errorf("after %s: %v, asked %d times", p.now.Sub(start), err, p.asked)
				}
			}
			p.set = []jose.JSONWebKey{k.public()}
			p.change(func() { broken(p) })
			step(0, codes.AuthUnavailable, 1)
			step(29*time.Second, codes.AuthUnavailable, 1)
			step(time.Second, codes.AuthUnavailable, 2)
			p.change(func() { p.raw, p.code = "", 0 })
			step(30*time.Second, "", 3)
			p.change(func() { broken(p) })
			step(10*time.Minute, "", 4)
			step(23*time.Hour, "", 5)
			step(time.Hour, codes.AuthUnavailable, 6)
		})
	}
}

// TestTogether: many callers at once share one attempt, and none of them stops another.
func TestTogether(t *testing.T) {
	p, k := newProvider(t, nil), ecKey(t, "k")
	p.set = []jose.JSONWebKey{k.public()}
	token := k.sign(t, claims(nil))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := p.Authenticate(request("Bearer " + token)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if p.asked != 1 {
		t.Errorf("the keys were fetched %d times", p.asked)
	}
}

func TestIsToken(t *testing.T) {
	k := ecKey(t, "k")
	for header, want := range map[string]bool{
		"Bearer " + k.sign(t, claims(nil)): true, "Bearer hf_abcdefghijklmnopqrstuvwxyz234567": false,
		"Bearer eyJ": false, "Bearer a.b.c": false, "Basic eyJ.b.c": false, "": false,
	} {
		if got := jwtauth.IsToken(request(header)); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestOptionMistakes(t *testing.T) {
	for want, change := range map[string]func(*jwtauth.Options){
		"write it in full":      func(o *jwtauth.Options) { o.JWKS = "id.example.com/keys" },
		"must be https":         func(o *jwtauth.Options) { o.JWKS = "http://id.example.com/keys" },
		"user or a password":    func(o *jwtauth.Options) { o.JWKS = "https://u:p@id.example.com/keys" },
		"issuer is missing":     func(o *jwtauth.Options) { o.Issuer = "" },
		"audience is missing":   func(o *jwtauth.Options) { o.Audience = "" },
		"the tenant is longer":  func(o *jwtauth.Options) { o.Tenant = strings.Repeat("a", 129) },
		"cannot be used: write": func(o *jwtauth.Options) { o.JWKS = "file:///keys" },
	} {
		o := jwtauth.Options{JWKS: "https://id.example.com/keys", Issuer: "i", Audience: "a"}
		change(&o)
		if _, err := jwtauth.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
