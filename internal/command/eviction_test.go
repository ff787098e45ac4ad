package command

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// TestEviction: a Redis that discards threads is refused, with what to do about it,
// unless eviction is allowed.
func TestEviction(t *testing.T) {
	redis := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	args := []string{"--addr=localhost:0", "--store=" + redis.URL()}
	var out, errOut bytes.Buffer
	if code := run(t.Context(), args, env(nil), &out, &errOut); code != exitFailed || out.Len() > 0 {
		t.Errorf("exit %d: %s", code, out.String())
	}
	for _, want := range []string{"allkeys-lru", "CONFIG SET maxmemory-policy noeviction", "--allow-eviction"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("the error does not say %q: %s", want, errOut.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	banner := &signalWriter{want: "recovery", seen: cancel}
	errOut.Reset()
	if code := run(ctx, args, env(map[string]string{"HOLDFAST_ALLOW_EVICTION": "1"}), banner, &errOut); code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	if !strings.Contains(banner.String(), "durability  process") ||
		!strings.Contains(errOut.String(), "policy=allkeys-lru") {
		t.Errorf("%s%s", banner.String(), errOut.String())
	}
}
