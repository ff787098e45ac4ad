package stdio

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started starts a shell with a script.
func started(t *testing.T, script string, change func(*Spec)) (*Conn, string) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no shell here")
	}
	dir := t.TempDir()
	spec := Spec{
		Command: []string{
			"/bin/sh",
			"-c",
			script,
		},
		Dir:    dir,
		Env:    []string{"PATH=" + os.Getenv("PATH")},
		Grace:  50 * time.Millisecond,
		Stuck:  time.Minute,
		Log:    slog.New(slog.DiscardHandler),
		Redact: func(s string) string { return s },
	}
	if change != nil {
		change(&spec)
	}
	c, err := Start(spec, 1000)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); c.Wait() })
	return c, dir
}

// TestStuck: a process that does not read what was written to it is ended, also if nobody
// waits for an answer any more.
func TestStuck(t *testing.T) {
	t.Parallel()
	c, _ := started(t, `exec sleep 3600`, func(s *Spec) { s.Stuck = 50 * time.Millisecond })
	text := `"` + strings.Repeat("x", 200<<10) + `"` // more than a pipe holds
	if err := c.Write(t.Context(), &jsonrpc.Request{Method: "notifications/large",
		Params: []byte(`{"x":` + text + `}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the error is %v", err)
	}
}

// TestReads: what is no message is skipped, half a line at the end is none, and one that is
// too long ends the connection.
func TestReads(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for script, want := range map[string]int{
		`head -c 5000 /dev/urandom | tr -d '\n' | head -c 900; echo; echo '` + ping + `'; echo '` + ping + `'`: 2,
		`echo '[` + ping + `,` + ping + `]'; printf '\n \n'; printf '{"jsonrpc":"2.0","id":2,"met'`:            2,
		`head -c 5000 /dev/zero | tr '\0' x; echo; echo '` + ping + `'`:                                        0,
	} {
		c, _ := started(t, script, nil)
		n := 0
		for {
			_, err := c.Read(t.Context())
			if err != nil {
				break
			}
			n++
		}
		if n != want {
			t.Errorf("%s: %d messages, want %d", script, n, want)
		}
	}
}

// TestTalks: of what a process writes to its standard error only so much is logged.
func TestTalks(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c, _ := started(t, `yes 'words of no use' | head -c 4000000 >&2; echo the end >&2; exit 3`, func(s *Spec) {
		s.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	if _, err := c.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "the end") {
		t.Errorf("the error is %v", err)
	}
	c.Close()
	c.Wait()
	if n := log.Len(); n == 0 || n > 500_000 {
		t.Errorf("%d bytes were logged", n)
	}
}
