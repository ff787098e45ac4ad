package operator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/operator"
)

// contact leaves one in a directory and reads it again.
func contact(t *testing.T, addr string) operator.Contact {
	t.Helper()
	dir := t.TempDir()
	c, err := operator.NewContact(addr, "agents.example.com", operator.Token(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, operator.File))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read it", info, err)
	}
	got, err := operator.Read(dir)
	if err != nil || got != c {
		t.Errorf("%+v came back as %+v, %v", c, got, err)
	}
	if err := operator.Remove(dir); err != nil {
		t.Error(err)
	}
	if _, err := operator.Read(dir); err == nil {
		t.Error("it was not removed")
	}
	return got
}

func TestContact(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "0.0.0.0:8080": "http://localhost:8080",
		"[::]:80": "http://localhost:80",
		":81":     "http://localhost:81", "[::1]:82": "http://[::1]:82", "10.1.2.3:83": "http://10.1.2.3:83",
	} {
		if got := contact(t, addr).URL; got != want {
			t.Errorf("%s is reached at %s, want %s", addr, got, want)
		}
	}
	a, b := contact(t, "localhost:1"), contact(t, "localhost:1")
	if a.Token == b.Token || len(a.Token) < 20 {
		t.Errorf("the tokens are %q and %q", a.Token, b.Token)
	}
	r := httptest.NewRequest("POST", "/", nil)
	for shown, want := range map[string]bool{"": false, "Bearer ": false, "Bearer " + b.Token: false, a.Token: false,
		"Bearer " + a.Token: true} {
		r.Header.Set("Authorization", shown)
		if a.Allows(r) != want {
			t.Errorf("%q is let in: %t", shown, !want)
		}
	}
	r.Header.Set("Authorization", "Bearer ")
	if (operator.Contact{}).Allows(r) {
		t.Error("an empty token lets in")
	}
}

// TestTokenStays: the token of a server that was killed is that of the next one, and that of a
// server that has ended is not.
func TestTokenStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := operator.NewContact("localhost:1", "", operator.Token(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
	if got := operator.Token(dir); got != c.Token {
		t.Errorf("the next server has %q, want %q", got, c.Token)
	}
	c.Token = "short"
	if err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
	if got := operator.Token(dir); got == c.Token || len(got) < operator.MinToken {
		t.Errorf("a short token leaves %q", got)
	}
	if err := operator.Remove(dir); err != nil {
		t.Fatal(err)
	}
	a, b := operator.Token(dir), operator.Token("")
	if a == c.Token || a == b || len(a) < operator.MinToken || len(b) < operator.MinToken {
		t.Errorf("new tokens are %q and %q", a, b)
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	c := contact(t, "localhost:1")
	answer, status := "", http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Dir string }
		if err := json.NewDecoder(r.Body).
			Decode(&in); err != nil || in.Dir != "/backup" || !c.Allows(r) || r.Host != "agents.example.com" ||
			r.URL.Path != "/maintenance/backup" {
			t.Errorf("%s %+v %v", r.URL, in, err)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer)) // to a client that is there
	}))
	defer s.Close()
	c.URL = s.URL
	if err := c.Backup(t.Context(), "/backup"); err != nil {
		t.Error(err)
	}
	status = http.StatusServiceUnavailable
	for _, each := range [][2]string{{`{"error":{"message":"No.","hint":"Try."}}`, "No. Try."},
		{`<html>`, "answered 503"}} {
		answer = each[0]
		if err := c.Backup(t.Context(), "/backup"); err == nil || !strings.Contains(err.Error(), each[1]) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
