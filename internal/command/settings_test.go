package command

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/server"
)

// settingsOf returns the settings by name.
func settingsOf(t *testing.T, args []string, variables map[string]string) map[string]server.Setting {
	t.Helper()
	o, err := parseOptions(args, env(variables), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]server.Setting{}
	for _, s := range o.settings() {
		if s.Text == "" || strings.Contains(s.Text, "HOLDFAST_") {
			t.Errorf("%s is described as %q", s.Name, s.Text)
		}
		byName[s.Name] = s
	}
	return byName
}

// TestSettings: every setting is there, with its value and where that comes from.
func TestSettings(t *testing.T) {
	got := settingsOf(t, []string{"--lease", "5s", "--addr=localhost:1"}, map[string]string{
		"HOLDFAST_ADDR":     "localhost:2",
		"HOLDFAST_MAX_RUNS": "7",
		"HOLDFAST_API_KEYS": "acme/alice:sha256:00",
		"OPENAI_BASE_URL":   "https://me:pa55word@models.example.com/v1",
	})
	for name, want := range map[string][2]string{
		"--lease": {"5s", "flag"}, "--addr": {"localhost:1", "flag"}, "--max-runs": {"7", "env"},
		"--recover":         {"on", "default"},
		"HOLDFAST_API_KEYS": {shownSecret, "env"}, "OPENAI_API_KEY": {"", "default"},
		"OPENAI_BASE_URL": {"https://" + shownSecret + "@models.example.com/v1", "env"},
	} {
		if s := got[name]; s.Value != want[0] || s.Source != want[1] {
			t.Errorf("%s: %+v", name, s)
		}
	}
	(&options{}).flags(io.Discard).VisitAll(func(f *flag.Flag) {
		if _, there := got["--"+f.Name]; there == (f.Name == "version") {
			t.Errorf("--%s is shown: %v", f.Name, there)
		}
	})
}

// TestSettingsOfTheFile: the agents file is named, also if nobody has named it.
func TestSettingsOfTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(defaultConfig, []byte("agents: [{name: a, model: demo}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions([]string{"--store=memory:"}, env(nil), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	loaded, closeAll, err := o.load(o.log(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	cfg, _, err := o.config(loaded, o.log(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range cfg.Settings {
		if s.Name == "--config" && (filepath.Base(s.Value) != defaultConfig || s.Source != "default") {
			t.Errorf("%+v", s)
		}
	}
}

// TestNoSecretsInSettings: whatever a URL has before its host or in its query is not shown.
func TestNoSecretsInSettings(t *testing.T) {
	for value, want := range map[string]string{
		"redis://localhost:6379/0":                  "redis://localhost:6379/0",
		"redis://:s3cret@localhost:6379/0":          "redis://[secret]@localhost:6379/0",
		"rediss://me:a,b@c/d@h:1/0?password=s3cret": "rediss://[secret]@h:1/0?[secret]",
		"redis+sentinel://me:s3cret@h1:1,h2:2/mymaster/0?db=1": "redis+sentinel://[secret]@h1:1," +
			"h2:2/mymaster/0?[secret]",
		"file:./data": "file:./data",
		"tenant=https://example.com/tenant,user=sub":            "tenant=https://example.com/tenant,user=sub",
		"https://a.example,https://b.example":                   "https://a.example,https://b.example",
		"https://me:s3cret@a.example,https://you:t00@b.example": "https://[secret]@b.example",
		"me@example.com": "me@example.com",
		"*":              "*",
	} {
		if got := withoutSecret(value); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}
