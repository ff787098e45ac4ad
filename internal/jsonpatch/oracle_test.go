package jsonpatch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit"
)

// TestOfficialClientApplies: the official npm client applies what Diff makes, and has the same document then. With
// HOLDFAST_PAIRS there are so many pairs.
func TestOfficialClientApplies(t *testing.T) {
	t.Parallel()
	testkit.NPM(t, "test/oracle")
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
	testkit.OfficialClient(t, "jsonpatch.mjs", in.Bytes(), fmt.Sprintf("%d applied", pairs))
}
