package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// NPM returns the path of a folder of the repository with scripts for Node.js, such as "test/oracle". If Node.js or
// the folder's packages are not installed, the test is skipped, or fails if HOLDFAST_REQUIRE_ALL is set.
func NPM(t testing.TB, folder string) string {
	t.Helper()
	path, err := above(filepath.FromSlash(folder))
	if err == nil {
		_, err = os.Stat(filepath.Join(path, "node_modules"))
	}
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err == nil {
		return path
	}
	const how = "what %s needs is not installed; scripts/install-test-deps.sh installs it: %v"
	if os.Getenv("HOLDFAST_REQUIRE_ALL") != "" {
		t.Fatalf(how, folder, err)
	}
	t.Skipf(how, folder, err)
	return ""
}

// above returns the path of a folder that is in one of the folders above the test's.
func above(folder string) (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		path := filepath.Join(dir, folder)
		_, missing := os.Stat(path)
		if missing == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", missing
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// OfficialClient gives lines to a script of test/oracle, which has the official npm client judge them, and fails
// the test if the script says anything other than what is wanted.
func OfficialClient(t testing.TB, script string, lines []byte, want string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir, cmd.Stdin = NPM(t, "test/oracle"), bytes.NewReader(lines)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Fatalf("%v:\n%.4000s", err, out)
	}
}
