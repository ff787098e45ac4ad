package settings

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/server"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// parsed returns the settings that these arguments and variables make.
func parsed(t *testing.T, args []string, variables map[string]string) *Settings {
	t.Helper()
	s, err := Parse(args, env(variables))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPrecedence: every setting is a variable of the environment, most are flags, and some are
// keys of the file. A flag takes precedence over a variable, and a variable over the file.
func TestPrecedence(t *testing.T) {
	s := parsed(t, []string{"--lease", "5s", "--addr=localhost:1", "--chat"}, map[string]string{
		"HOLDFAST_ADDR": "localhost:2", "HOLDFAST_MAX_RUNS": "7", "HOLDFAST_CHECKPOINT_FREQUENCY": "manual",
		"HOLDFAST_MIN_RATE": "-1",
	})
	if err := s.Complete(map[string]string{
		"lease": "9s", "maxRuns": "9", "maxBody": "8MiB", "recover": "off", "threadMaxBytes": "0",
	}); err != nil {
		t.Fatal(err)
	}
	c := &s.Config
	if c.Addr != "localhost:1" || c.MaxRuns != 7 || c.CheckpointFrequency != "manual" || c.Lease != 5*time.Second ||
		!c.Chat || c.MaxBody != 8<<20 || !c.NoRecovery || c.MinRate != -1 || c.ThreadMaxBytes != -1 {
		t.Errorf("%+v", s.Config)
	}
	if s.DemoDelay != 20*time.Millisecond || c.PinTimeout != 15*time.Minute || c.KeepCheckpoints != 100 ||
		c.DefaultModel != "demo" {
		t.Errorf("the defaults are %+v", s.Config)
	}
}

// TestDeltaWindow: the window is a duration or auto, and reads as it was written.
func TestDeltaWindow(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"auto": server.AutoWindow, "0s": 0, "100ms": 100 * time.Millisecond,
	} {
		into := time.Hour
		w := window(&into)
		if err := w.set(text); err != nil || into != want || w.show() != text {
			t.Errorf("%s is %s, shown as %s, %v", text, into, w.show(), err)
		}
	}
	for _, text := range []string{"", "-1ns", "-1s", "slow", "100"} {
		if _, err := Parse([]string{"--delta-window=" + text}, env(nil)); err == nil ||
			!strings.Contains(err.Error(), "write auto, or a duration") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestMediaBody: the bound that nobody has set leaves room for two bodies in the one for all, and
// the one that somebody has set stays as it is.
func TestMediaBody(t *testing.T) {
	for _, tt := range []struct {
		env, file map[string]string
		want      int64
	}{
		{nil, nil, 8 << 20},
		{map[string]string{"HOLDFAST_MAX_BODIES": "8MiB"}, nil, 4 << 20},
		{nil, map[string]string{"maxBodies": "10MiB"}, 5 << 20},
		{map[string]string{"HOLDFAST_MAX_BODIES": "256MiB"}, nil, 8 << 20},
		{map[string]string{"HOLDFAST_MAX_BODIES": "8MiB"}, map[string]string{"maxMediaBody": "8MiB"}, 8 << 20},
		{map[string]string{"HOLDFAST_MAX_BODIES": "8MiB", "HOLDFAST_MAX_MEDIA_BODY": "6MiB"}, nil, 6 << 20},
	} {
		s := parsed(t, nil, tt.env)
		if err := s.Complete(tt.file); err != nil {
			t.Fatal(err)
		}
		if got := s.Config.MaxMediaBody; got != tt.want {
			t.Errorf("%v, %v: %d", tt.env, tt.file, got)
		}
	}
}

// TestModel: one model or a chain of several.
func TestModel(t *testing.T) {
	for given, want := range map[string]string{"demo": "demo", "openai/x": "openai/x", "": "demo",
		"openai/x,gemini/y": "openai/x,gemini/y", " anthropic/x , demo,": "anthropic/x,demo"} {
		if got := parsed(t, []string{"--model=" + given}, nil).Config.DefaultModel; got != want {
			t.Errorf("%q is %q", given, got)
		}
	}
}

// TestMistakes: the error names the setting as it was written, and says what to write.
func TestMistakes(t *testing.T) {
	for want, c := range map[string]struct {
		args []string
		env  map[string]string
	}{
		"--recover=maybe cannot be used: use on or off": {args: []string{"--recover=maybe"}},
		"use demo, or openai/":                          {args: []string{"--model=skynet"}},
		"--model=demo, skynet cannot":                   {args: []string{"--model=demo, skynet"}},
		"names no model":                                {args: []string{"--model=,"}},
		"full:N":                                        {args: []string{"--retention=some"}},
		"write a whole number from 1":                   {args: []string{"--max-runs=0"}},
		"use adopt or pin":                              {args: []string{"--on-revision=wait"}},
		"use per_iteration, per_turn or ":               {args: []string{"--checkpoint-frequency=never"}},
		"--pin-timeout=0s cannot be used":               {args: []string{"--pin-timeout=0s"}},
		`HOLDFAST_LEASE="soon" cannot be used: write a duration`: {
			env: map[string]string{"HOLDFAST_LEASE": "soon"},
		},
		`HOLDFAST_MAX_BODY="4 MiB?" cannot be used: write a size`: {
			env: map[string]string{"HOLDFAST_MAX_BODY": "4 MiB?"},
		},
		"--jwt-claims=group=x cannot be used: write what is in which claim": {args: []string{"--jwt-claims=group=x"}},
		"like tenant=org_id,user=sub":                                       {args: []string{"--jwt-claims=tenant="}},
		"unexpected argument":                                               {args: []string{"serve"}},
		"not defined: -colour":                                              {args: []string{"--colour"}},
	} {
		if _, err := Parse(c.args, env(c.env)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := Parse([]string{"--help"}, env(nil)); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}

// TestNoFlag: what is no flag says where it is.
func TestNoFlag(t *testing.T) {
	_, err := Parse([]string{"--body-timeout=10s"}, env(nil))
	const want = `--body-timeout is not a flag: write "settings: {bodyTimeout: 10s}" in the agents file, or set ` +
		`HOLDFAST_BODY_TIMEOUT=10s`
	if err == nil || err.Error() != want {
		t.Error(err)
	}
	if s := parsed(t, nil, map[string]string{"HOLDFAST_BODY_TIMEOUT": "10s"}); s.Config.BodyTimeout != 10*time.Second {
		t.Error(s.Config.BodyTimeout)
	}
}

// TestChecks: the file may have what is in the groups for it, and nothing else; a check does
// not set anything.
func TestChecks(t *testing.T) {
	checks := Checks()
	for key, there := range map[string]bool{"maxBody": true, "recover": true, "addr": false, "store": false,
		"jwks": false, "demoKill": false, "version": false} {
		if (checks[key] != nil) != there {
			t.Errorf("%s: %v", key, !there)
		}
	}
	if err := checks["maxBody"]("8MB"); err != nil {
		t.Error(err)
	}
	if err := checks["maxBody"]("big"); err == nil || err.Error() != "write a size, like 256KiB or 4MiB" {
		t.Error(err)
	}
}

// TestValues: values are shown as they would be written.
func TestValues(t *testing.T) {
	for args, want := range map[string]string{
		"--retention=full:7": "full:7", "--retention=all": "all", "--retention=latest": "latest",
		"--retention=full:100": "full", "--recover=off": "off", "--log-level=WARN": "warn",
		"--hosts= a , b,": "a,b", "--jwt-claims=user=email": "user=email",
		"HOLDFAST_MAX_BODY=5000000": "5000000", "HOLDFAST_MAX_BODY=4194304": "4MiB", "HOLDFAST_MIN_RATE=-1": "-1",
		"HOLDFAST_THREAD_MAX_BYTES=0": "0", "HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS=0": "0",
		"HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS=12": "12", "HOLDFAST_MAX_STREAM_BYTES=1GB": "1000000000",
	} {
		name, value, _ := strings.Cut(args, "=")
		s := parsed(t, nil, map[string]string{name: value})
		if strings.HasPrefix(name, "--") {
			s = parsed(t, []string{args}, nil)
		}
		i := slices.IndexFunc(s.all(), func(r *Setting) bool { return "--"+r.name == name || r.variable() == name })
		if got := s.all()[i].into.show(); got != want {
			t.Errorf("%s is shown as %s, want %s", args, got, want)
		}
	}
	for given, want := range map[string]int{"0": -1, "-1": 0, "12": 12} {
		s := parsed(t, nil, map[string]string{"HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS": given})
		if got := s.Config.MaxConnectionsPerAddress; got != want {
			t.Errorf("%s connections of an address: %d, want %d", given, got, want)
		}
	}
}

// TestShown: every setting is there, with its value and where that comes from.
func TestShown(t *testing.T) {
	s := parsed(t, []string{"--lease", "5s", "--addr=localhost:1"}, map[string]string{
		"HOLDFAST_ADDR":     "localhost:2",
		"HOLDFAST_MAX_RUNS": "7",
		"HOLDFAST_API_KEYS": "acme/alice:sha256:00",
		"OPENAI_BASE_URL":   "https://me:pa55word@models.example.com/v1",
	})
	if err := s.Complete(map[string]string{"maxBody": "8MiB"}); err != nil {
		t.Fatal(err)
	}
	got := map[string][2]string{}
	for _, one := range s.Shown("agents.yaml") {
		if one.Text == "" || strings.ContainsAny(one.Text, "`[]") {
			t.Errorf("%s is described as %q", one.Name, one.Text)
		}
		got[one.Name] = [2]string{one.Value, one.Source}
	}
	for name, want := range map[string][2]string{
		"--lease": {"5s", "flag"}, "--addr": {"localhost:1", "flag"}, "--max-runs": {"7", "env"},
		"--recover": {"on", "default"}, "--config": {"agents.yaml", "default"}, "settings.maxBody": {"8MiB", "file"},
		"HOLDFAST_API_KEYS": {shownSecret, "env"}, "OPENAI_API_KEY": {"", "default"},
		"OPENAI_BASE_URL": {"https://" + shownSecret + "@models.example.com/v1", "env"},
	} {
		if got[name] != want {
			t.Errorf("%s: %v", name, got[name])
		}
	}
	if want := len(s.all()) + 7; len(got) != want {
		t.Errorf("%d settings are shown, want %d", len(got), want)
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
