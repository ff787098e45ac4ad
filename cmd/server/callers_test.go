package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/jwtauth"
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
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": "https://id.example.com/", "aud": "holdfast", "sub": "u1", "org": "acme", "realm": map[string]any{"roles": []string{"read"}}, "exp": time.Now().Add(time.Hour).Unix(),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	key, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions([]string{"--jwks=" + provider.URL, "--jwt-issuer=https://id.example.com/", "--jwt-audience=holdfast", "--jwt-claims=tenant=org, roles=realm.roles"},
		env(map[string]string{"HOLDFAST_API_KEYS": entry}), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.callers(slog.New(slog.DiscardHandler))
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

func TestCallerMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"--jwks is missing":          {"--jwt-issuer=https://id.example.com/"},
		"the issuer is missing":      {"--jwks=https://id.example.com/keys", "--jwt-audience=a"},
		"the audience is missing":    {"--jwks=https://id.example.com/keys", "--jwt-issuer=i"},
		"must be https":              {"--jwks=http://id.example.com/keys", "--jwt-issuer=i", "--jwt-audience=a"},
		"tenant=org_id,user=sub":     {"--jwks=https://id.example.com/keys", "--jwt-issuer=i", "--jwt-audience=a", "--jwt-claims=group=x"},
		"write what is in which":     {"--jwks=https://id.example.com/keys", "--jwt-issuer=i", "--jwt-audience=a", "--jwt-claims=tenant="},
		"the tenant has control cha": {"--jwks=https://id.example.com/keys", "--jwt-issuer=i", "--jwt-audience=a", "--jwt-tenant=a\nb"},
	} {
		o, err := parseOptions(args, env(nil), &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.callers(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestReloadOnSignal: a SIGHUP makes the program read its keys again, and the log says
// whose have changed, and no key.
func TestReloadOnSignal(t *testing.T) {
	key, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := apikey.New(rand.Reader, "acme", "bob")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(entry + "\n")
	o, err := parseOptions(nil, env(map[string]string{"HOLDFAST_API_KEYS": "@" + file}), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	log := slog.New(slog.NewTextHandler(lineWriter(lines), nil))
	c, err := o.callers(log)
	if err != nil {
		t.Fatal(err)
	}
	defer c.reloadOnSignal(log)()
	who, err := c.keys.Authenticate(bearer(key))
	if err != nil {
		t.Fatal(err)
	}
	hangUp := func() {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	write("acme/alice")
	hangUp()
	if line := <-lines; !strings.Contains(line, "all stay as they were") || !strings.Contains(line, "not an entry") {
		t.Error(line)
	}
	if line := <-lines; !strings.Contains(line, "action=reload_keys result=failed") {
		t.Error(line)
	}
	if _, err := c.keys.Authenticate(bearer(key)); err != nil || who.Rights.Revoked.Err() != nil {
		t.Errorf("a mistake in the file revokes keys: %v", err)
	}
	write(other + "\n")
	hangUp()
	if line := <-lines; !strings.Contains(line, "msg=audit") || !strings.Contains(line, "action=reload_keys result=ok added=[acme/bob] removed=[acme/alice] changed=[]") || strings.Contains(line, "sha256") {
		t.Error(line)
	}
	if _, err := c.keys.Authenticate(bearer(key)); err == nil || who.Rights.Revoked.Err() == nil {
		t.Error("the removed key is still valid")
	}
}

// TestSignalWithoutKeys: with tokens alone there is nothing to read again. A SIGHUP, which
// operators send out of habit, does not end the program, and the log says so.
func TestSignalWithoutKeys(t *testing.T) {
	lines := make(chan string, 10)
	defer callers{tokens: new(jwtauth.Verifier)}.reloadOnSignal(slog.New(slog.NewTextHandler(lineWriter(lines), nil)))()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if line := <-lines; !strings.Contains(line, "no file of API keys") || !strings.Contains(line, "JWKS") {
		t.Error(line)
	}
}

type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
