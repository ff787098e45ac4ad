package command

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/server"
)

// demoStore makes a file with a thread of the demo agent, which has charged twice.
func demoStore(t *testing.T) (path, journal string) {
	t.Helper()
	folder := t.TempDir()
	path, journal = filepath.Join(folder, "data"), filepath.Join(folder, "journal.txt")
	o, err := parseOptions([]string{"--store=file:" + path, "--demo-journal=" + journal, "--demo-delay=0s"}, env(nil))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	loaded, closeAll, err := o.load(log)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	cfg, _, err := o.config(loaded, log)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked(t, s, "t", "charge 2")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return path, journal
}

// TestReplayCommand: a thread runs again with its recorded results; neither its store nor
// the outside world notices.
func TestReplayCommand(t *testing.T) {
	path, journal := demoStore(t)
	fromEnv := env(map[string]string{"HOLDFAST_DEMO_JOURNAL": journal})
	before, err := os.ReadFile(journal)
	if err != nil || !strings.Contains(string(before), "charge") {
		t.Fatalf("%s %v", before, err)
	}
	fork := filepath.Join(t.TempDir(), "fork.json")
	code, out, errOut := runCommand(t, fromEnv, "replay", path, "--thread=t", "--checkpoint=000000000001", "-o", fork)
	if code != exitOK || errOut != "" {
		t.Fatalf("%d %s\n%s", code, errOut, out)
	}
	golden(t, "replay.txt", masked(out))
	if after, err := os.ReadFile(journal); err != nil || string(after) != string(before) {
		t.Errorf("the replay did\n%s, %v", after, err)
	}
	if code, out, errOut := runCommand(t, env(nil), "check", path); code != exitOK ||
		out != "1 thread checked, 0 problems\n" {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	if code, _, errOut := runCommand(t, env(nil), "import", other, fork, "--thread=f"); code != exitOK {
		t.Fatalf("%d %s", code, errOut)
	}
	if code, out, errOut := runCommand(t, env(nil), "check", other); code != exitOK ||
		!strings.Contains(out, "1 thread checked, 0 problems\n") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"what should be replayed?", []string{"replay", path, "--thread=t"}},
		{`no checkpoint "9"`, []string{"replay", path, "--thread=t", "--checkpoint=9"}},
		{"default/nope", []string{"replay", path, "--thread=nope", "--checkpoint=1"}},
		{"nothing.yaml", []string{"replay", path, "--thread=t", "--checkpoint=000000000001", "--config=nothing.yaml"}},
	} {
		if code, _, errOut := runCommand(t, env(nil), c.args...); code != exitUsage ||
			!strings.Contains(errOut, c.want) {
			t.Errorf("%q: %d %q", c.args, code, errOut)
		}
	}
}
