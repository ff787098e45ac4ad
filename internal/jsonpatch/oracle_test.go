package jsonpatch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOfficialClientApplies: the official npm client applies what Diff makes, and has the same document then. With
// HOLDFAST_PAIRS there are so many pairs.
func TestOfficialClientApplies(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "test", "oracle")
	_, missing := exec.LookPath("node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		missing = err
	}
	if missing != nil {
		if os.Getenv("HOLDFAST_REQUIRE_ALL") != "" {
			t.Fatal("the official client is not installed; scripts/install-test-deps.sh installs it")
		}
		t.Skip("the official client is not installed; scripts/install-test-deps.sh installs it")
	}
	pairs := 1_000
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_PAIRS")); err == nil {
		pairs = n
	}
	var in bytes.Buffer
	patched := 0
	for seed := range uint64(pairs) {
		g := gen{rand.New(rand.NewPCG(seed, 11))}
		before, after := g.pair()
		patch, err := Diff([]byte(before), []byte(after))
		if err != nil {
			t.Fatalf("seed %d: %s to %s: %v", seed, before, after, err)
		}
		if !strings.HasPrefix(string(patch), `[{"op":"replace","path":"",`) && string(patch) != None {
			patched++
		}
		line := fmt.Sprintf("[%s,%s,%s]", before, patch, after)
		in.WriteString(strings.ReplaceAll(line, "\n", " "))
		in.WriteByte('\n')
	}
	if patched < pairs/4 {
		t.Errorf("only %d of %d pairs differ in a part", patched, pairs)
	}
	cmd := exec.CommandContext(t.Context(), "node", "jsonpatch.mjs")
	cmd.Dir, cmd.Stdin = dir, &in
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != fmt.Sprintf("%d applied", pairs) {
		t.Fatalf("%v:\n%.4000s", err, out)
	}
}
