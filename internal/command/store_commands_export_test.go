package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportCommand: a thread is moved from one file to another.
func TestExportCommand(t *testing.T) {
	path := madeStore(t)
	file := filepath.Join(t.TempDir(), "t.json")
	if code, out, errOut := runCommand(t, env(nil), "export", path, "--thread=t", "-o", file); code != exitOK ||
		out+errOut != "" {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	code, text, errOut := runCommand(t, env(nil), "export", path, "--thread=t")
	written, err := os.ReadFile(file)
	if code != exitOK || errOut != "" || err != nil || text != string(written) ||
		!strings.Contains(text, "What is the weather?") {
		t.Fatalf("%d %s %v\n%s", code, errOut, err, text)
	}
	other := filepath.Join(t.TempDir(), "new", "other.db")
	if code, out, errOut := runCommand(t, env(nil), "import", other, file); code != exitOK ||
		out != "default/t imported\n" || errOut != "" {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	fromEnv := env(map[string]string{"HOLDFAST_STORE": other})
	if code, out, errOut := runCommand(t, fromEnv, "import", file, "--thread", "u", "--tenant",
		"acme"); code != exitOK || out != "acme/u imported\n" || errOut != "" {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := runCommand(t, fromEnv, "check"); code != exitOK ||
		out != "2 threads checked, 0 problems\n" {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, again, errOut := runCommand(t, fromEnv, "export", "--thread=t"); code != exitOK || again != text {
		t.Errorf("the copy differs: %d %s\n%s", code, errOut, again)
	}
	exportMistakes(t, fromEnv, file)
}

// exportMistakes checks that each mistake says what to do and leaves no file.
func exportMistakes(t *testing.T, fromEnv func(string) string, file string) {
	t.Helper()
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"agents":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"which thread?", []string{"export"}},
		{"default/nope", []string{"export", "--thread=nope"}},
		{"make the file", []string{"export", "--thread=t", "-o", file}},
		{"it takes STORE FILE", []string{"import"}},
		{"read the thread", []string{"import", file + "x"}},
		{"there is a thread default/t already", []string{"import", file}},
		{"not an exported thread", []string{"import", bad}},
	} {
		if code, out, errOut := runCommand(t, fromEnv, c.args...); code != exitUsage || out != "" ||
			!strings.Contains(errOut, c.want) {
			t.Errorf("%q: %d %q %q", c.args, code, out, errOut)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing.json")
	if code, _, _ := runCommand(t, fromEnv, "export", "--thread=nope", "-o", missing); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("an export that failed left a file")
	}
}
