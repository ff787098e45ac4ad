package web_test

import (
	"os"
	"testing"
)

// TestTypes: the page's sources are right by the types that their comments declare.
func TestTypes(t *testing.T) {
	t.Parallel()
	const checker = "node_modules/typescript/bin/tsc"
	if _, err := os.Stat(checker); err != nil && os.Getenv("HOLDFAST_REQUIRE_ALL") != "1" {
		t.Skip("no type checker here: scripts/install-test-deps.sh installs it")
	}
	node(t, checker, "-p", ".")
}
