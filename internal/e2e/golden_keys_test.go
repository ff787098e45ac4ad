package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goldenKeys are the idempotency keys of the open calls in a golden store, by thread.
type goldenKeys struct {
	Keys map[string]string
}

// inFlight is a thread whose process died in the middle of a call. The call has an intent
// and no result.
const inFlight = "in-flight"

// keysOf returns the keys under which calls of the thread have started in the process.
func keysOf(p *process, thread string) (keys []string) {
	line := regexp.MustCompile(`msg="tool call starts" thread=` + thread + ` .*key=(\S+)`)
	for _, m := range line.FindAllStringSubmatch(p.out.String(), -1) {
		keys = append(keys, m[1])
	}
	return keys
}

// readKey notes the key of the thread's only call.
func (g *goldenKeys) readKey(t *testing.T, p *process, thread string) {
	t.Helper()
	keys := keysOf(p, thread)
	if len(keys) != 1 {
		t.Fatalf("the calls of %s have the keys %q, want one", thread, keys)
	}
	if g.Keys == nil {
		g.Keys = map[string]string{}
	}
	g.Keys[thread] = keys[0]
}

// leaveInFlight makes that thread, with a server whose calls take long enough.
func (g *goldenKeys) leaveInFlight(t *testing.T, store, format string, models *goldenProvider) {
	t.Helper()
	p := models.start(t, store, format, filepath.Join(t.TempDir(), "journal"), "--demo-delay=100ms",
		"--log-level=debug")
	res, err := post(t.Context(), p.url, input(inFlight, "r1", userMessage("u1", "ask me tea or coffee?")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	// Its end is committed with the call's intent.
	if err := readStream(res.Body, func(r record) bool { return r.kind() == "TOOL_CALL_END" }); err != nil {
		t.Fatal(err)
	}
	p.awaitOutput(func(string) bool { return len(keysOf(p, inFlight)) > 0 }, nil)
	g.readKey(t, p, inFlight)
	p.kill()
}

// checkKeys: what was in flight goes on, and every call that was open has started again
// under the key that it had.
func (g *goldenKeys) checkKeys(t *testing.T, p *process) {
	t.Helper()
	var end record
	res, err := post(t.Context(), p.url,
		[]byte(`{"threadId":"`+inFlight+`","runId":"on","protocolVersion":"1.0","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	err = readStream(res.Body, func(r record) bool { end = r; return false })
	if err != nil || !strings.Contains(end.Raw, "tea or coffee?") {
		t.Errorf("the call in flight ended with %s, %v", end.Raw, err)
	}
	for thread, key := range g.Keys {
		// The server's records reach the test on its own way.
		p.awaitOutput(func(string) bool { return len(keysOf(p, thread)) > 0 }, nil)
		if got := keysOf(p, thread); len(got) != 1 || got[0] != key {
			t.Errorf("the open call of %s has started under %q, want %s", thread, got, key)
		}
	}
}
