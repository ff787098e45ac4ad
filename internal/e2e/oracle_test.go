package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// oracle prepares a script of test/oracle: the official npm client, current and older,
// against the server at url.
func oracle(t *testing.T, script, version, url string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("node", script)
	cmd.Dir = testkit.NPM(t, "test/oracle")
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+url, "AGUI_CLIENT="+version)
	return cmd
}

// eachClient runs f for each version of the official client, if it is installed.
func eachClient(t *testing.T, f func(t *testing.T, version string)) {
	t.Helper()
	testkit.NPM(t, "test/oracle")
	for _, version := range []string{"1.0.0", "0.0.59"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f(t, version)
		})
	}
}

// agentsFile is a file with the demo, and with an agent whose answers have a form.
func agentsFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	const agents = `agents:
  - name: demo
    model: demo
    tools: [current_time, calculate, wait, lookup, ask_person, update_plan, request_approval, carry_out]
  - name: formed
    model: demo
    output:
      schema:
        type: object
        properties: {text: {type: string}, mood: {enum: [calm, wild]}}
        required: [text, mood]
        additionalProperties: false
`
	if err := os.WriteFile(path, []byte(agents), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOfficialClient runs the scenarios: what people do with the official client.
func TestOfficialClient(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, version string) {
		p := start(t, redistest.FreeAddr(t), newFile(t), "--demo-delay=10ms", "--config="+agentsFile(t))
		out, err := oracle(t, "scenarios.mjs", version, p.url).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\nserver:\n%s", err, out, p.out)
		}
		t.Logf("%s", out)
	})
}

// TestKilledWhileItReasons: a run whose server is killed while the model reasons is taken
// over under the eyes of the official client, which then shows what the server has.
func TestKilledWhileItReasons(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, version string) {
		shared := newRedis(t)
		owner := start(t, redistest.FreeAddr(t), shared, "--demo-delay=20ms", "--lease=300ms")
		other := start(t, redistest.FreeAddr(t), shared, "--demo-delay=20ms", "--lease=300ms")
		cmd := oracle(t, "killed.mjs", version, other.url)
		cmd.Env = append(cmd.Env, "HOLDFAST_OWNER="+owner.url)
		client := run(t, cmd)
		client.awaitOutput(func(text string) bool { return strings.Contains(text, "reasons\n") }, nil)
		owner.kill()
		<-client.done
		if !client.cmd.ProcessState.Success() {
			t.Errorf("%s\nserver:\n%s", client.out, other.out)
		}
	})
}

// TestOfficialClientFallsBack: the official client shows what the second model has said, and
// nothing of the first one's answer, which broke off three times.
func TestOfficialClientFallsBack(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, version string) {
		c := newCrew(t, newFile(t)).begin()
		if out, err := oracle(t, "fallback.mjs", version, c.p.url).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\nserver:\n%s", err, out, c.p.out)
		}
	})
}

// TestOfficialClientContinues: the official client reads the cursors in events, is cut again
// and again, and loses and repeats nothing.
func TestOfficialClientContinues(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, version string) {
		// The log must stay as it was written: it is compared with the records that the client saw.
		p := start(t, redistest.FreeAddr(t), newFile(t), "--demo-delay=5ms", "--archive-after=1h")
		out, err := oracle(t, "cursors.mjs", version, p.url).CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatalf("%v\n%s\nserver:\n%s", err, out, p.out)
		}
	})
}
