package command

import (
	"bytes"
	"context"
	"io"
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

// TestProgram runs the program from its banner to a clean end.
func TestProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store := "file:" + filepath.Join(t.TempDir(), "data")
	out := &signalWriter{want: "recovery", seen: cancel}
	var errOut bytes.Buffer
	if code := run(ctx, []string{"--addr=localhost:0", "--store=" + store,
		"--demo-journal=" + filepath.Join(t.TempDir(), "j")}, env(nil), out, &errOut); code != exitOK {
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
		if code := run(t.Context(), append(c.args, "--store=memory:"), env(nil), &bytes.Buffer{},
			&bytes.Buffer{}); code != c.code {
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
	if err := os.WriteFile(file, []byte("agents:\n  - name: shop\n    model: demo\n    tools: "+
		"[charge_card]\nlimits:\n  perUser: { runs: 3 }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions([]string{"--config=" + file, "--store=memory:",
		"--demo-journal=" + filepath.Join(dir, "j")}, env(nil))
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
	if err := os.WriteFile(file, []byte("agents: [{name: a, model: demo, tools: [\"broken_*\"]}]\nmcpServers:\n  "+
		"broken: {command: nosuch-program}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := &signalWriter{want: "recovery", seen: cancel}
	var errOut bytes.Buffer
	if code := run(ctx, []string{"--addr=localhost:0", "--store=memory:", "--config=" + file}, env(nil), out,
		&errOut); code != exitOK {
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
	if err := os.WriteFile(file, []byte("agents: [{name: a, tools: [nosuch]}]\nmcpServers: {a: {}}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var errOut bytes.Buffer
	code := run(t.Context(), []string{"--store=memory:", "--config=" + file}, env(nil), &bytes.Buffer{}, &errOut)
	if lines := strings.Split(errOut.String(), "\n"); code != exitUsage || len(lines) != 3 ||
		!strings.HasPrefix(lines[0], file+":1:28: ") || !strings.HasPrefix(lines[1], file+":2:14: ") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}

// TestSettingsOfTheFile: the agents file is named, also if nobody has named it.
func TestSettingsOfTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(defaultConfig, []byte("agents: [{name: a, model: demo}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions([]string{"--store=memory:"}, env(nil))
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

// TestSettingsInTheFile: the file has settings of the server, where a variable and a flag take
// precedence; a mistake has its place, also for the commands that read the file.
func TestSettingsInTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	write := func(settings string) {
		t.Helper()
		text := "agents: [{name: a, model: demo}]\nsettings: " + settings + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{lease: 9s, maxRuns: 9, maxBody: 8MiB}")
	o, err := parseOptions([]string{"--config=" + file, "--store=memory:", "--lease=5s"},
		env(map[string]string{"HOLDFAST_MAX_RUNS": "7"}))
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
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Lease != 5*time.Second || cfg.MaxRuns != 7 || cfg.MaxBody != 8<<20 {
		t.Errorf("%s, %d runs, %d bytes", cfg.Lease, cfg.MaxRuns, cfg.MaxBody)
	}
	if code, out, errOut := runCommand(t, env(nil), "validate", "--config", file); code != exitOK {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	write("{lease: long, addr: x}")
	code, _, errOut := runCommand(t, env(nil), "validate", "--config", file)
	if code != exitUsage || !strings.Contains(errOut, file+":2:19: lease cannot be \"long\"; write a duration") ||
		!strings.Contains(errOut, file+":2:25: unknown key \"addr\"") {
		t.Errorf("%d %s", code, errOut)
	}
}
