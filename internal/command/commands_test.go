package command

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/apikey"
)

func runCommand(t *testing.T, getenv func(string) string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), args, getenv, &out, &errOut)
	return code, out.String(), errOut.String()
}

func TestValidateCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fromEnv := env(map[string]string{"HOLDFAST_CONFIG": path})

	code, _, errOut := runCommand(t, fromEnv, "validate")
	if code != exitUsage || !strings.Contains(errOut, "there is no file "+path) {
		t.Errorf("no file: %d %s", code, errOut)
	}
	write("agents:\n  - name: a\n    model: demo\n    tools: [lookup]\n  - name: b\n  - {name: c, models: " +
		"[openai/x, {name: demo}]}\n")
	code, out, errOut := runCommand(t, fromEnv, "validate")
	if want := path + ": ok, 3 agents: a (demo), b (default model), c (openai/x, then demo)\n"; code != exitOK ||
		out != want || errOut != "" {
		t.Errorf("good: %d %q %q", code, out, errOut)
	}
	write("agents:\n  - name: a\n    tools: [lokup]\n    modle: demo\n")
	code, out, errOut = runCommand(t, env(nil), "validate", "--config", path)
	want := path + ":3:13: unknown tool \"lokup\"; did you mean \"lookup\"?\n" + path +
		":4:5: unknown key \"modle\"; did you mean \"model\"?\n"
	if code != exitUsage || out != "" || errOut != want {
		t.Errorf("bad: %d %q %q", code, out, errOut)
	}
	if code, _, errOut = runCommand(t, env(nil), "validate", path); code != exitUsage ||
		!strings.Contains(errOut, "unexpected argument") {
		t.Errorf("argument: %d %q", code, errOut)
	}
}

// TestSchemaCommand: it prints a JSON Schema.
func TestSchemaCommand(t *testing.T) {
	code, out, errOut := runCommand(t, env(nil), "schema")
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal([]byte(out), &schema); err != nil || code != exitOK || schema.Properties["agents"] == nil {
		t.Errorf("%d %q %v\n%s", code, errOut, err, out)
	}
}

// TestVersionCommand: the command and the flag print the same version.
func TestVersionCommand(t *testing.T) {
	code, out, errOut := runCommand(t, env(nil), "version")
	if code != exitOK || errOut != "" || out != "holdfast "+version()+"\n" {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	var flag bytes.Buffer
	if code := run(t.Context(), []string{"--version"}, env(nil), &flag, &flag); code != exitOK || flag.String() != out {
		t.Errorf("--version: %d %q", code, flag.String())
	}
	if code, _, errOut = runCommand(t, env(nil), "version", "now"); code != exitUsage ||
		!strings.Contains(errOut, "unexpected argument") {
		t.Errorf("with an argument: %d %q", code, errOut)
	}
}

func TestKeyCommand(t *testing.T) {
	code, out, errOut := runCommand(t, env(nil), "key", "--tenant", "acme", "--user", "alice@example.com")
	if code != exitOK || errOut != "" {
		t.Fatalf("%d %q", code, errOut)
	}
	key := regexp.MustCompile(`hf_[a-z2-7]{32}`).FindString(out)
	entry := regexp.MustCompile(`acme/\S+:sha256:[0-9a-f]{64}`).FindString(out)
	keys, err := apikey.Parse(entry, os.ReadFile)
	if err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + key}}}
	if who, err := keys.Authenticate(r); err != nil || who.Tenant != "acme" || who.User != "alice@example.com" ||
		!who.Rights.Has(access.RoleUser) {
		t.Errorf("%+v, %v", who, err)
	}
	if code, _, errOut = runCommand(t, env(nil), "key", "--tenant", "acme"); code != exitUsage ||
		!strings.Contains(errOut, "the user is empty") {
		t.Errorf("no user: %d %q", code, errOut)
	}
	_, out, _ = runCommand(t, env(nil), "key", "--tenant=acme", "--user=ci", "--roles=read,tenant_operator",
		"--agents=a,b", "--expires=2199-01-01T00:00:00Z")
	want := " acme/ci;agents=a,b;roles=read,tenant_operator;expires=2199-01-01T00:00:00Z:sha256:"
	if !strings.Contains(out, want) {
		t.Errorf("no %s in %s", want, out)
	}
	for _, wrong := range []string{"--roles=admin", "--roles=", "--roles=operator", "--expires=soon", "--expires=-1h",
		"--expires=2020-01-01T00:00:00Z"} {
		if code, out, _ = runCommand(t, env(nil), "key", "--tenant=acme", "--user=ci", wrong); code != exitUsage ||
			out != "" {
			t.Errorf("%s: %d %s", wrong, code, out)
		}
	}
}

// TestHealthcheck: a server that is not ready exits with 1, which Docker takes for
// unhealthy (it reserves 2), and the text has the server's own reason.
func TestHealthcheck(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"error":{"code":"shutting_down","message":"This server is shutting down."}}`)
		}
	}))
	addr := strings.TrimPrefix(s.URL, "http://")
	code, out, errOut := runCommand(t, env(nil), "healthcheck", "--addr", addr)
	if code != exitFailed || out != "" ||
		!strings.Contains(errOut, "status 503: shutting_down: This server is shutting down.") {
		t.Errorf("not ready: %d %q %q", code, out, errOut)
	}
	s.Close()
	if code, out, errOut = runCommand(t, env(nil), "healthcheck", "--addr", addr); code != exitFailed || out != "" ||
		!strings.Contains(errOut, "does not answer") {
		t.Errorf("gone: %d %q %q", code, out, errOut)
	}
	if code, _, errOut = runCommand(t, env(nil), "healthcheck", "--addr", "nonsense"); code != exitUsage {
		t.Errorf("a wrong address: %d %q", code, errOut)
	}
}
