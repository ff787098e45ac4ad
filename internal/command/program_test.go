package command

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/server"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// TestOptions: every setting is a flag and an environment variable, and the flag takes
// precedence.
func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"--lease", "5s", "--addr=localhost:1"}, env(map[string]string{
		"HOLDFAST_ADDR": "localhost:2", "HOLDFAST_MAX_RUNS": "7", "HOLDFAST_CHECKPOINT_FREQUENCY": "manual",
	}), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if o.addr != "localhost:1" || o.maxRuns != 7 || o.frequency != "manual" || o.lease != 5*time.Second ||
		o.recovery != "on" {
		t.Errorf("%+v", o)
	}
}

// TestModelOption: one model or a chain of several.
func TestModelOption(t *testing.T) {
	for given, want := range map[string]string{"demo": "demo", "openai/x": "openai/x",
		"openai/x,gemini/y": "openai/x,gemini/y", " anthropic/x , demo,": "anthropic/x,demo"} {
		o, err := parseOptions([]string{"--model=" + given}, env(nil), &bytes.Buffer{})
		if err != nil || o.model != want {
			t.Errorf("%q is %q, %v", given, o.model, err)
		}
	}
}

func TestOptionMistakes(t *testing.T) {
	for want, c := range map[string]struct {
		args []string
		env  map[string]string
	}{
		"use on or off":         {args: []string{"--recover=maybe"}},
		"use demo, or openai/":  {args: []string{"--model=skynet"}},
		"--model=skynet is":     {args: []string{"--model=demo, skynet"}},
		"names no model":        {args: []string{"--model=,"}},
		"full:N":                {args: []string{"--retention=some"}},
		"must be at least 1":    {args: []string{"--max-runs=0"}},
		"use adopt or pin":      {args: []string{"--on-revision=wait"}},
		"pin-timeout=0s is not": {args: []string{"--pin-timeout=0s"}},
		`HOLDFAST_LEASE="soon" cannot be used: parse error; write it like the default, 3s`: {
			env: map[string]string{"HOLDFAST_LEASE": "soon"},
		},
		"unexpected argument":  {args: []string{"serve"}},
		"not defined: -colour": {args: []string{"--colour"}},
	} {
		_, err := parseOptions(c.args, env(c.env), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestRetentionOption: how many checkpoints stay listed.
func TestRetentionOption(t *testing.T) {
	for given, want := range map[string]int{"full": 100, "full:7": 7, "latest": 1, "all": -1} {
		o, err := parseOptions([]string{"--retention=" + given}, env(nil), &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := o.keepCheckpoints(); err != nil || got != want {
			t.Errorf("%s keeps %d, %v; want %d", given, got, err, want)
		}
	}
	for _, given := range []string{"", "full:", "full:0", "full:-1", "all:5", "ALL"} {
		if _, err := parseOptions(
			[]string{"--retention=" + given},
			env(nil),
			&bytes.Buffer{},
		); err == nil ||
			!strings.Contains(err.Error(), "full:N with a number from 1, all, or latest") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// TestProgram runs the program from its banner to a clean end.
func TestProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store := "file:" + filepath.Join(t.TempDir(), "data")
	out := &signalWriter{want: "recovery", seen: cancel}
	var errOut bytes.Buffer
	if code := run(
		ctx,
		[]string{"--addr=localhost:0", "--store=" + store, "--demo-journal=" + filepath.Join(t.TempDir(), "j")},
		env(nil),
		out,
		&errOut,
	); code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	for _, want := range []string{"holdfast ", "http://localhost:", "no API keys", "durability  ", "no API key needed",
		"per_iteration", "shutting down"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the program does not say %q:\n%s", want, out.String())
		}
	}
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"--version"}, exitOK}, {[]string{"--help"}, exitOK}, {[]string{"--what"}, exitUsage},
		{[]string{"--addr=0.0.0.0:1"}, exitFailed}} {
		if code := run(
			t.Context(),
			append(c.args, "--store=memory:"),
			env(nil),
			&bytes.Buffer{},
			&bytes.Buffer{},
		); code != c.code {
			t.Errorf("%v: exit %d, want %d", c.args, code, c.code)
		}
	}
}

// signalWriter calls seen once the text that it waits for was written.
type signalWriter struct {
	bytes.Buffer
	want string
	seen func()
}

func (w *signalWriter) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.want) {
		w.seen()
	}
	return n, err
}

// TestFileNamesCharge: with a journal, agents in a file may have charge_card, too.
func TestFileNamesCharge(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "holdfast.yaml")
	if err := os.WriteFile(
		file,
		[]byte("agents:\n  - name: shop\n    model: demo\n    tools: [charge_card]\nlimits:\n  perUser: { runs: 3 }\n"),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions(
		[]string{"--config=" + file, "--store=memory:", "--demo-journal=" + filepath.Join(dir, "j")},
		env(nil),
		&bytes.Buffer{},
	)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	loaded, closeAll, err := o.load(log)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	cfg, _, err := o.config(loaded, log)
	if err != nil || len(cfg.Agents) != 1 || cfg.Quotas.PerUser.Runs != 3 {
		t.Errorf("the file is read as %+v, %v", cfg.Quotas, err)
	}
}

// TestMCPServersOfTheFile: the start goes on without a server that cannot be started.
func TestMCPServersOfTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(
		file,
		[]byte(
			"agents: [{name: a, model: demo, tools: [\"broken_*\"]}]\nmcpServers:\n  broken: "+
				"{command: nosuch-program}\n",
		),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := &signalWriter{want: "recovery", seen: cancel}
	var errOut bytes.Buffer
	if code := run(
		ctx,
		[]string{"--addr=localhost:0", "--store=memory:", "--config=" + file},
		env(nil),
		out,
		&errOut,
	); code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	if log := errOut.String(); strings.Count(log, "mcp=broken error=") != 1 ||
		!strings.Contains(log, "nosuch-program") {
		t.Errorf("the log is %s", log)
	}
}

// TestWaitForServers: the log says for which servers it is waited, and which are not there. One
// that was tried already is not waited for, however late it is.
func TestWaitForServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	text := "agents: [{name: a, model: demo}]\nmcpServers: {broken: {command: nosuch-program}, silent: {command: sh, " +
		"args: [-c, \"cat > /dev/null\"]}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := server.Load(file, server.Parts{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if err := loaded.Servers[0].Ready(t.Context()); err == nil {
		t.Error("it was started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var log bytes.Buffer
	waitForServers(ctx, loaded, slog.New(slog.NewTextHandler(&log, nil)))
	if got := log.String(); strings.Contains(got, "broken") || strings.Count(got, "mcp=silent") != 2 ||
		!strings.Contains(got, "not waited for any longer") {
		t.Errorf("the log is %s", got)
	}
}

// TestMistakesOfTheFile: the start says them as validate does, each line with its place.
func TestMistakesOfTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(
		file,
		[]byte("agents: [{name: a, tools: [nosuch]}]\nmcpServers: {a: {}}\n"),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	var errOut bytes.Buffer
	code := run(t.Context(), []string{"--store=memory:", "--config=" + file}, env(nil), &bytes.Buffer{}, &errOut)
	if lines := strings.Split(
		errOut.String(),
		"\n",
	); code != exitUsage || len(lines) != 3 || !strings.HasPrefix(lines[0], file+":1:28: ") ||
		!strings.HasPrefix(lines[1], file+":2:14: ") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}
