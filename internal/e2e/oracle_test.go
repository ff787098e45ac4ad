package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/redistest"
)

// TestOfficialClient runs the scenarios of test/oracle: the official npm client,
// current and older, against the real server.
func TestOfficialClient(t *testing.T) {
	t.Parallel()
	needs(t, "node", "scripts/install-test-deps.sh installs it")
	dir := filepath.Join("..", "..", "test", "oracle")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		if os.Getenv("HOLDFAST_REQUIRE_ALL") != "" {
			t.Fatal("the official client is not installed; scripts/install-test-deps.sh installs it")
		}
		t.Skip("the official client is not installed; scripts/install-test-deps.sh installs it")
	}
	for _, version := range []string{"1.0.0", "0.0.59"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := start(t, redistest.FreeAddr(t), newFile(t), "--demo-delay=10ms")
			cmd := exec.Command("node", "scenarios.mjs")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "HOLDFAST_URL="+p.url, "AGUI_CLIENT="+version)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s\nserver:\n%s", err, out, p.out)
			}
			t.Logf("%s", out)
		})
	}
}
