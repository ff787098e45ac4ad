package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// TestSecondProcess: two servers on one folder would both believe to own every
// run, so the second does not start and says why.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "data")
	start(t, redistest.FreeAddr(t), "file:"+store)
	second := launch(t, binary, redistest.FreeAddr(t), "file:"+store)
	select {
	case <-second.done:
	case <-time.After(patience):
		t.Fatal("the second server did not give up")
	}
	if code := second.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{store, "another process"} {
		if !strings.Contains(second.out.String(), want) {
			t.Errorf("the second server does not mention %q: %s", want, second.out)
		}
	}
}
