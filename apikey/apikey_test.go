package apikey_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/apikey"
)

func noFiles(path string) ([]byte, error) {
	return nil, fmt.Errorf("open %s: %w", path, os.ErrNotExist)
}

// newKey makes a key for a test.
func newKey(t testing.TB, tenant, user string) (key, entry string) {
	t.Helper()
	key, entry, err := apikey.New(rand.Reader, tenant, user)
	if err != nil {
		t.Fatal(err)
	}
	return key, entry
}

func parse(t testing.TB, s string) *apikey.Keys {
	t.Helper()
	keys, err := apikey.Parse(s, noFiles)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/runs", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	return r
}

// identity returns a principal without its rights.
func identity(p holdfast.Principal) holdfast.Principal { p.Rights = nil; return p }

func sum(s string) string {
	d := sha256.Sum256([]byte(s))
	return hex.EncodeToString(d[:])
}

// TestAuthenticate: every user gets in with each of their keys, and only as
// themselves.
func TestAuthenticate(t *testing.T) {
	old, oldEntry := newKey(t, "acme", "alice")
	fresh, freshEntry := newKey(t, "acme", "alice")
	odd, oddEntry := newKey(t, "a/b:c, d", "a+b@example.com #1")
	keys := parse(t, oldEntry+",\n "+freshEntry+" "+strings.Replace(oddEntry, sum(odd), strings.ToUpper(sum(odd)), 1)+
		"\n")
	if keys.Len() != 3 {
		t.Errorf("%d keys", keys.Len())
	}
	alice := holdfast.Principal{Tenant: "acme", User: "alice"}
	for _, tt := range []struct {
		header string
		want   holdfast.Principal
	}{
		{"Bearer " + old, alice},
		{"Bearer " + fresh, alice},
		{"bearer " + fresh, alice},
		{"BEARER   " + fresh + " ", alice},
		{"Bearer " + odd, holdfast.Principal{Tenant: "a/b:c, d", User: "a+b@example.com #1"}},
	} {
		got, err := keys.Authenticate(request(tt.header))
		if err != nil || identity(got) != tt.want {
			t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
		}
	}
}

// TestAuthenticateRefuses: a refused caller cannot tell why, but learns what to do, and
// no message contains the key.
func TestAuthenticateRefuses(t *testing.T) {
	key, entry := newKey(t, "acme", "alice")
	unknown, _ := newKey(t, "acme", "alice")
	keys := parse(t, entry)
	const missing, invalid = "This server needs an API key.", "The API key is not valid."
	for name, tt := range map[string]struct {
		headers []string
		want    string
	}{
		"missing":          {nil, missing},
		"unknown":          {[]string{"Bearer " + unknown}, invalid},
		"empty":            {[]string{""}, invalid},
		"no key":           {[]string{"Bearer"}, invalid},
		"blank key":        {[]string{"Bearer  "}, invalid},
		"other scheme":     {[]string{"Basic " + key}, invalid},
		"no scheme":        {[]string{key}, invalid},
		"glued":            {[]string{"Bearer:" + key}, invalid},
		"shortened":        {[]string{"Bearer " + key[:len(key)-1]}, invalid},
		"longer":           {[]string{"Bearer " + key + "a"}, invalid},
		"other case":       {[]string{"Bearer " + strings.ToUpper(key)}, invalid},
		"the hash":         {[]string{"Bearer " + sum(key)}, invalid},
		"two keys":         {[]string{"Bearer " + key + " " + key}, invalid},
		"two headers":      {[]string{"Bearer " + key, "Bearer " + key}, invalid},
		"very long":        {[]string{"Bearer " + strings.Repeat("x", 1<<16)}, invalid},
		"known, then junk": {[]string{"Bearer " + key + "\x00"}, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			principal, err := keys.Authenticate(request(tt.headers...))
			if err == nil || principal != (holdfast.Principal{}) {
				t.Fatalf("let in as %+v", principal)
			}
			e := holdfast.AsError(err)
			if e.Code != "unauthenticated" || e.Message != tt.want ||
				!strings.Contains(e.Hint, "Authorization: Bearer") {
				t.Errorf("%+v", e)
			}
			if all := err.Error() + e.Message + e.Hint; strings.Contains(all, "hf_") ||
				strings.Contains(all, sum(key)) {
				t.Errorf("the key is shown: %s", all)
			}
		})
	}
}

// TestSharedBeginning: hashes that start with the same bytes are still different keys.
// The index uses the first bytes, the decision the whole hash.
func TestSharedBeginning(t *testing.T) {
	key, entry := newKey(t, "acme", "alice")
	digest := sum(key)
	other := digest[:62] + "00"
	if other == digest {
		other = digest[:62] + "01"
	}
	mallory := "acme/mallory:sha256:" + other
	for _, order := range []string{entry + "," + mallory, mallory + "," + entry} {
		got, err := parse(t, order).Authenticate(request("Bearer " + key))
		if err != nil || got.User != "alice" {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if got, err := parse(t, mallory).Authenticate(request("Bearer " + key)); err == nil {
		t.Errorf("let in as %+v with half a hash", got)
	}
}

func TestParseMistakes(t *testing.T) {
	hash := sum("a")
	const example = "acme/alice:sha256:"
	for name, tt := range map[string]struct {
		give string
		want string
	}{
		"nothing":    {"", "no API key is configured"},
		"separators": {" ,\n\t", "no API key is configured"},
		"no hash":    {"acme/alice", "API key 1: not an entry: write tenant/user:sha256:HEX"},
		"a key":      {"acme/alice:hf_topsecretkey", "API key 1: not an entry: this looks like the key itself"},
		"bare key":   {"hf_topsecretkey", "this looks like the key itself"},
		"key as user": {"acme/hf_topsecretkeytopsecretkeytopsecretkey:sha256:" + hash,
			"this looks like the key itself"},
		"other hash":   {"acme/alice:md5:" + hash, "not an entry"},
		"no tenant":    {"alice:sha256:" + hash, "API key 1: before :sha256: there must be tenant/user"},
		"empty tenant": {"/alice:sha256:" + hash, "the tenant is empty"},
		"empty user":   {"acme/:sha256:" + hash, "the user is empty"},
		"short": {example + hash[:63],
			"API key 1 (acme/alice): what follows sha256: must be exactly 64 hexadecimal digits"},
		"long":         {example + hash + "0", "exactly 64"},
		"very long":    {example + strings.Repeat("0", 1<<16), "exactly 64"},
		"not hex":      {example + strings.Replace(hash, hash[:1], "x", 1), "exactly 64"},
		"a second one": {example + hash + ", topsecretkey", "API key 2: not an entry"},
		"twice": {example + hash + ",acme/bob:sha256:" + strings.ToUpper(hash),
			"API key 2 (acme/bob): the same key is already at API key 1 (acme/alice)"},
		"empty key":      {example + sum(""), "the key was empty when it was hashed"},
		"echo of empty":  {example + sum("\n"), "the key was empty when it was hashed"},
		"raw plus":       {"acme/a+b:sha256:" + hash, "write + as %2B"},
		"raw slash":      {"acme/a/b:sha256:" + hash, "write / as %2F"},
		"raw colon":      {"acme:eu/alice:sha256:" + hash, ": as %3A"},
		"raw percent":    {"acme/50%:sha256:" + hash, "write % as %25"},
		"control":        {"acme/a%0Ab:sha256:" + hash, "API key 1: the user has control characters"},
		"not UTF-8":      {"%ff/alice:sha256:" + hash, "the tenant has control characters or is not UTF-8"},
		"long name":      {"acme/" + strings.Repeat("a", 129) + ":sha256:" + hash, "the user is longer than 128 bytes"},
		"missing file":   {"@/keys", "the file of API keys cannot be read: open /keys"},
		"key and file":   {example + hash + " @/keys", "cannot be read"},
		"file of a file": {"@@/keys", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := apikey.Parse(tt.give, noFiles)
			if err == nil || keys != nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("want %q, got %v, %v", tt.want, keys, err)
			}
			if strings.Contains(err.Error(), "topsecret") || strings.Contains(err.Error(), hash[:16]) {
				t.Errorf("the message shows too much: %v", err)
			}
		})
	}
}

func TestParseReportsAllMistakes(t *testing.T) {
	_, err := apikey.Parse("acme, acme/bob:sha256:0, acme/eve:sha256:"+sum("x"), noFiles)
	want := "API key 1: not an entry: write tenant/user:sha256:HEX; make it with: holdfast key " +
		"--tenant TENANT --user USER\n" +
		"API key 2 (acme/bob): what follows sha256: must be exactly 64 hexadecimal digits"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestParseFile(t *testing.T) {
	key, entry := newKey(t, "acme", "alice")
	spare, spareEntry := newKey(t, "acme", "bob")
	read := func(data string) func(string) ([]byte, error) {
		return func(path string) ([]byte, error) {
			if path != "/run/secrets/keys" {
				return nil, errors.New("wrong path")
			}
			return []byte(data), nil
		}
	}
	keys, err := apikey.Parse(spareEntry+",@/run/secrets/keys",
		read("# Alice, laptop\r\n\r\n  "+entry+"  # since May\r\n"))
	if err != nil || keys.Len() != 2 {
		t.Fatalf("%v, %v", keys, err)
	}
	for user, k := range map[string]string{"alice": key, "bob": spare} {
		if got, err := keys.Authenticate(request("Bearer " + k)); err != nil || got.User != user {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	for want, data := range map[string]string{
		"/run/secrets/keys:3: not an entry":                                   "#\n\nacme " + sum("a") + "\n",
		"/run/secrets/keys:1: not an entry":                                   "@/other",
		"/run/secrets/keys: the file has no API key":                          "# later\n",
		"keys:2 (acme/alice): the same key is already at /run/secrets/keys:1": entry + "\n" + entry,
	} {
		if _, err := apikey.Parse("@/run/secrets/keys", read(data)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestNew(t *testing.T) {
	key, entry := newKey(t, "acme", "alice")
	if !regexp.MustCompile(`^hf_[a-z2-7]{32}$`).MatchString(key) || entry != "acme/alice:sha256:"+sum(key) {
		t.Errorf("%s, %s", key, entry)
	}
	if again, _ := newKey(t, "acme", "alice"); again == key {
		t.Error("two keys are the same")
	}
	if _, _, err := apikey.New(bytes.NewReader(make([]byte, 19)), "acme", "alice"); err == nil {
		t.Error("a key was made of too few random bytes")
	}
	for _, names := range [][2]string{{"", "alice"}, {"acme", ""}, {"acme", "a\nb"}, {"\xff", "alice"},
		{strings.Repeat("a", 129), "alice"}} {
		if _, _, err := apikey.New(rand.Reader, names[0], names[1]); err == nil {
			t.Errorf("a key was made for %q", names)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("acme/alice:sha256:"+sum("a")+", @/keys", "# comment\nacme/bob:sha256:"+sum("b"))
	f.Add("a%20b/%2B:sha256:"+sum("a"), "")
	f.Add("@,@ @", "hf_x")
	f.Fuzz(func(t *testing.T, s, file string) {
		keys, err := apikey.Parse(s, func(string) ([]byte, error) { return []byte(file), nil })
		if (keys == nil) == (err == nil) {
			t.Fatalf("%v, %v", keys, err)
		}
		if err == nil && keys.Len() == 0 {
			t.Error("no key, and no error")
		}
	})
}

// FuzzNames: a key lets in exactly the user that it was made for.
func FuzzNames(f *testing.F) {
	f.Add("acme", "alice")
	f.Add("a/b:sha256:c", "a+b @,#%")
	f.Fuzz(func(t *testing.T, tenant, user string) {
		key, entry, err := apikey.New(rand.Reader, tenant, user)
		if err != nil {
			return
		}
		got, err := parse(t, entry).Authenticate(request("Bearer " + key))
		if want := (holdfast.Principal{Tenant: tenant, User: user}); err != nil || identity(got) != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	})
}

func Example() {
	// A fixed source instead of crypto/rand.Reader, so that the output is known.
	key, entry, err := apikey.New(strings.NewReader("not at all random..."), "acme", "alice@example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key)
	fmt.Println(entry)

	keys, err := apikey.Parse(entry, os.ReadFile)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodGet, "/threads", nil)
	_, err = keys.Authenticate(r)
	fmt.Println(err)
	r.Header.Set("Authorization", "Bearer "+key)
	who, err := keys.Authenticate(r)
	fmt.Println(who.Tenant, who.User, err)
	// Output:
	// hf_nzxxiidboqqgc3dmebzgc3ten5ws4lro
	// acme/alice%40example.com:sha256:fac0e291392701437392545841fd5f90eb9cad59812f8c5b8f08c6262f18a54e
	// unauthenticated: This server needs an API key.
	// acme alice@example.com <nil>
}

// TestSeveralUsers: several keys of one user are one user.
func TestSeveralUsers(t *testing.T) {
	var entries []string
	for _, user := range []string{"acme/alice", "acme/alice", "evil/eve", "evil/mallory"} {
		tenant, name, _ := strings.Cut(user, "/")
		_, entry := newKey(t, tenant, name)
		entries = append(entries, entry)
	}
	keys := parse(t, strings.Join(entries, ","))
	for tenant, want := range map[string]bool{"acme": false, "evil": true, "other": false} {
		if got := keys.SeveralUsers(tenant); got != want {
			t.Errorf("%s has several users: %t", tenant, got)
		}
	}
}
