package apikey_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/apikey"
)

// TestRights: an entry says what its key may be used for, wherever it stands in a list.
func TestRights(t *testing.T) {
	until := time.Date(2199, 12, 31, 12, 0, 0, 0, time.UTC)
	for options, want := range map[string]access.Rights{
		"":                              {Roles: []access.Role{access.RoleUser}},
		";roles=read":                   {Roles: []access.Role{access.RoleRead}},
		";roles=read,approver":          {Roles: []access.Role{access.RoleRead, access.RoleApprover}},
		";roles=read,read":              {Roles: []access.Role{access.RoleRead}},
		";agents=a,b-c":                 {Roles: []access.Role{access.RoleUser}, Agents: []string{"a", "b-c"}},
		";agents=a%2Cb,c%20d":           {Roles: []access.Role{access.RoleUser}, Agents: []string{"a,b", "c d"}},
		";expires=2199-12-31T12:00:00Z": {Roles: []access.Role{access.RoleUser}, Expires: until},
		";agents=a;roles=server_operator,user;expires=2199-12-31T14:00:00+02:00": {
			Roles: []access.Role{access.RoleServerOperator, access.RoleUser}, Agents: []string{"a"}, Expires: until,
		},
	} {
		for place, list := range map[string]string{
			"alone": "acme/alice%s:sha256:" + sum("k"), "first": "acme/alice%s:sha256:" + sum("k") +
				",acme/bob:sha256:" + sum("x"),
			"last":      "acme/bob;agents=x,y:sha256:" + sum("x") + ",acme/alice%s:sha256:" + sum("k"),
			"in a file": "@/keys",
		} {
			keys, err := apikey.Parse(strings.ReplaceAll(list, "%s", options), func(string) ([]byte, error) {
				return []byte("# keys\nacme/alice" + options + ":sha256:" + sum("k") + "\n"), nil
			})
			if err != nil {
				t.Errorf("%s, %s: %v", options, place, err)
				continue
			}
			who, err := keys.Authenticate(request("Bearer k"))
			if err != nil || who.User != "alice" {
				t.Fatalf("%s: %+v, %v", options, who, err)
			}
			got := *who.Rights
			got.Revoked, got.Expires = nil, got.Expires.UTC()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: %+v, want %+v", options, place, got, want)
			}
		}
	}
}

// TestRightsMistakes: each mistake is named, and no text of the entry is shown.
func TestRightsMistakes(t *testing.T) {
	for options, want := range map[string]string{
		";roles=":                        "there is no such role: use read, user, approver, tenant_operator",
		";roles=admin":                   "there is no such role",
		";roles=read,":                   "there is no such role",
		";Roles=read":                    "unknown option",
		";topsecret":                     "use agents=, roles= and expires=",
		";":                              "unknown option",
		";roles=read;roles=user":         "the option roles occurs twice",
		";agents=":                       "agents is not a list of names",
		";agents=a,,b":                   "agents is not a list of names",
		";agents=a+b":                    "agents is not a list of names",
		";agents=a%zz":                   "agents is not a list of names",
		";expires=tomorrow":              "write it like 2026-12-31T12:00:00Z",
		";expires=":                      "expires is not a time",
		";expires=2026-12-31":            "expires is not a time",
		";agents=a,topsecret;expires=12": "expires is not a time",
	} {
		keys, err := apikey.Parse("acme/alice"+options+":sha256:"+sum("a"), noFiles)
		if err == nil || keys != nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "API key 1") {
			t.Errorf("%s: want %q, got %v", options, want, err)
			continue
		}
		if strings.Contains(err.Error(), "topsecret") || strings.Contains(err.Error(), sum("a")[:16]) {
			t.Errorf("%s: the message shows too much: %v", options, err)
		}
	}
}

// TestFormerOperator: the role of earlier builds is the server's operator while there is one
// tenant. With several it is refused, and the error names the key and says what to write.
func TestFormerOperator(t *testing.T) {
	entryOf := func(name, key string) string { return "acme/" + name + ":sha256:" + sum(key) + "\n" }
	file := entryOf("ops;roles=read,operator", "o") + entryOf("root;roles=operator,server_operator", "r")
	read := func(string) ([]byte, error) { return []byte(file), nil }
	keys, err := apikey.Parse("@/keys", read)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][]access.Role{
		"o": {access.RoleRead, access.RoleServerOperator}, "r": {access.RoleServerOperator},
	} {
		if who, err := keys.Authenticate(request("Bearer " + key)); err != nil ||
			!slices.Equal(who.Rights.Roles, want) {
			t.Errorf("%s: %+v, %v", key, who.Rights, err)
		}
	}
	refused := func(err error, why string) bool {
		return err != nil && strings.Contains(err.Error(), "/keys:1 (acme/ops): "+why) &&
			strings.Contains(err.Error(), "tenant_operator") && strings.Contains(err.Error(), "server_operator")
	}
	const tokens, several = "callers with tokens may be of other tenants", "the keys are of several tenants"
	if _, err := apikey.Parse("@/keys", read, apikey.BesideTokens()); !refused(err, tokens) {
		t.Errorf("beside tokens: %v", err)
	}
	file += "globex/bob:sha256:" + sum("b") + "\n"
	if _, err := apikey.Parse("@/keys", read); !refused(err, several) {
		t.Errorf("with two tenants: %v", err)
	}
	if _, err := keys.Reload(); !refused(err, several) || keys.Len() != 2 {
		t.Errorf("with a second tenant since: %v, %d keys", err, keys.Len())
	}
	file = entryOf("ops;roles=read,server_operator", "o") + entryOf("root;roles=tenant_operator", "r") +
		"globex/bob:sha256:" + sum("b")
	// The first key means what it meant.
	if change, err := keys.Reload(); err != nil || fmt.Sprint(change) != "{[globex/bob] [] [acme/root]}" {
		t.Errorf("with the roles of today: %+v, %v", change, err)
	}
}

// TestExpired: a key is good until its time, and then the caller is told so.
func TestExpired(t *testing.T) {
	keys := parse(t, "acme/alice;expires=2020-01-01T00:00:00Z:sha256:"+sum("old")+
		" acme/alice;expires=2199-01-01T00:00:00Z:sha256:"+sum("new"))
	if _, err := keys.Authenticate(request("Bearer new")); err != nil {
		t.Error(err)
	}
	who, err := keys.Authenticate(request("Bearer old"))
	if e := holdfast.AsError(err); err == nil || who.User != "" || e.Code != "unauthenticated" ||
		e.Message != "The API key has expired." {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestNewFor(t *testing.T) {
	who := holdfast.Principal{Tenant: "acme", User: "alice", Rights: &access.Rights{
		Roles: []access.Role{
			access.RoleRead,
			access.RoleApprover,
		},
		Agents:  []string{"a,b", "c d"},
		Expires: time.Date(2199, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)),
	}}
	key, entry, err := apikey.NewFor(rand.Reader, who)
	if want := "acme/alice;agents=a%2Cb,c%20d;roles=read,approver;expires=2199-01-02T02:04:05Z:sha256:" +
		sum(key); err != nil || entry != want {
		t.Errorf("%s, %v; want %s", entry, err, want)
	}
	got, err := parse(t, entry).Authenticate(request("Bearer " + key))
	if err != nil || !slices.Equal(got.Rights.Agents, who.Rights.Agents) ||
		!got.Rights.Expires.Equal(who.Rights.Expires) {
		t.Errorf("%+v, %v", got.Rights, err)
	}
	for _, wrong := range []access.Rights{
		{}, {Roles: []access.Role{"admin"}}, {Roles: []access.Role{access.RoleUser}, Agents: []string{}},
		{Roles: []access.Role{access.RoleUser}, Agents: []string{""}},
	} {
		if _, _, err := apikey.NewFor(rand.Reader,
			holdfast.Principal{Tenant: "acme", User: "alice", Rights: &wrong}); err == nil {
			t.Errorf("a key was made with %+v", wrong)
		}
	}
}

// TestReload: keys come and go while the server runs. A key that is gone, or means something
// else now, is revoked; all others stay as they are, and so does everything if there is a
// mistake.
func TestReload(t *testing.T) {
	entryOf := func(name, key string) string { return "acme/" + name + ":sha256:" + sum(key) + "\n" }
	file := entryOf("alice", "a") + entryOf("bob", "b") + entryOf("carol", "c")
	keys, err := apikey.Parse("@/keys", func(string) ([]byte, error) {
		if file == "" {
			return nil, errors.New("gone")
		}
		return []byte(file), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	revoked := map[string]context.Context{}
	for _, key := range []string{"a", "b", "c"} {
		who, err := keys.Authenticate(request("Bearer " + key))
		if err != nil {
			t.Fatal(err)
		}
		revoked[key] = who.Rights.Revoked
	}
	for _, wrong := range []string{"", "# none\n", entryOf("alice", "a") + "acme/eve"} {
		file = wrong
		if change, err := keys.Reload(); err == nil || change.Removed != nil || keys.Len() != 3 {
			t.Errorf("%q: %+v, %v, %d keys", wrong, change, err, keys.Len())
		}
	}
	// Another order, a comment and a role that was the default anyway change nothing.
	file = "# new\n" + entryOf("dave", "d") + entryOf("carol;roles=read", "c") + entryOf("alice;roles=user", "a")
	change, err := keys.Reload()
	if got, want := fmt.Sprint(change), "{[acme/dave] [acme/bob] [acme/carol]}"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	for key, gone := range map[string]bool{"a": false, "b": true, "c": true} {
		if (revoked[key].Err() != nil) != gone {
			t.Errorf("key %s: %v", key, revoked[key].Err())
		}
	}
	if _, err := keys.Authenticate(request("Bearer b")); err == nil {
		t.Error("a key that was removed is still valid")
	}
	if who, err := keys.Authenticate(request("Bearer c")); err != nil || who.Rights.Has(access.RoleUser) ||
		who.Rights.Revoked.Err() != nil {
		t.Errorf("%+v, %v", who, err)
	}
	if who, err := keys.Authenticate(request("Bearer d")); err != nil || who.User != "dave" {
		t.Errorf("%+v, %v", who, err)
	}
	if change, err := keys.Reload(); err != nil || fmt.Sprint(change) != "{[] [] []}" {
		t.Errorf("nothing has changed: %+v, %v", change, err)
	}
}

// FuzzRights: what Parse accepts, it understands in the same way when it is written again.
func FuzzRights(f *testing.F) {
	f.Add(";agents=a,b;roles=read,user;expires=2199-01-01T00:00:00Z")
	f.Add(";agents=%2C,;roles=")
	f.Add(";;")
	f.Fuzz(func(t *testing.T, options string) {
		keys, err := apikey.Parse("acme/alice"+options+":sha256:"+sum("k"), noFiles)
		if err != nil {
			return
		}
		who, err := keys.Authenticate(request("Bearer k"))
		if err != nil {
			return // expired, or the options have made two entries of it
		}
		key, entry, err := apikey.NewFor(rand.Reader, who)
		if err != nil {
			t.Fatalf("%q cannot be written again: %v", options, err)
		}
		again, err := parse(t, entry).Authenticate(request("Bearer " + key))
		if err != nil {
			return // it expires within this second
		}
		got, want := *again.Rights, *who.Rights
		if !slices.Equal(got.Roles, want.Roles) || !slices.Equal(got.Agents, want.Agents) ||
			!got.Expires.Equal(want.Expires.Truncate(time.Second)) {
			t.Errorf("%q: %+v, then %+v", options, want, got)
		}
	})
}
