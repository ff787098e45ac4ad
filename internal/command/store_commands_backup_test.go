package command

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// TestBackupCommand copies a store that nobody has open, and one that a server uses, which
// the command finds by itself. Both copies are stores.
func TestBackupCommand(t *testing.T) {
	path := madeStore(t)
	base := t.TempDir()
	backedUp := func(name string, args ...string) {
		t.Helper()
		dir := filepath.Join(base, name)
		code, out, errOut := runCommand(t, env(map[string]string{"HOLDFAST_STORE": "file:" + path}),
			append([]string{"backup", dir}, args...)...)
		if code != exitOK || !strings.HasPrefix(out, "backed up to "+dir+"; ") || errOut != "" {
			t.Fatalf("%d %q %q", code, out, errOut)
		}
		if code, out, errOut := runCommand(t, env(nil), "check", dir); code != exitOK ||
			!strings.HasPrefix(out, "1 thread checked, 0 problems") {
			t.Errorf("%d %q %q", code, out, errOut)
		}
		if _, err := os.Stat(filepath.Join(dir, "SERVER")); err == nil {
			t.Error("the backup has the server's token")
		}
	}
	backedUp("stopped")
	s, err := server.New(server.Config{
		Addr: "localhost:0", Store: "file:" + path, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Agents: []holdfast.Agent{{Name: "weather", Model: holdfast.ModelFunc(nil)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	backedUp("running")
	backedUp("named", "--store="+path)
	code, out, errOut := runCommand(t, env(nil), "backup", "--store", path, filepath.Join(base, "running"))
	if code != exitUsage || out != "" || !strings.Contains(errOut, "a backup is a new directory: ") {
		t.Errorf("to a directory that is there: %d %q %q", code, out, errOut)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "SERVER")); err == nil {
		t.Error("the server has left its token behind")
	}
}

// TestBackupCommandMistakes: nothing is made.
func TestBackupCommandMistakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backup")
	missing := filepath.Join(t.TempDir(), "data")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"it takes one argument", nil},
		{"it takes one argument", []string{dir, dir}},
		{"there is no store at " + missing, []string{dir, "--store=" + missing}},
		{"backed up by Redis", []string{dir, "--store=redis://:secret@localhost:1/0"}},
		{"exists only inside its server", []string{dir, "--store=memory:"}},
	} {
		code, out, errOut := runCommand(t, env(nil), append([]string{"backup"}, c.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errOut, c.want) || strings.Contains(errOut, "secret") {
			t.Errorf("%q: %d %q %q", c.args, code, out, errOut)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a mistake has made a directory")
	}
}
