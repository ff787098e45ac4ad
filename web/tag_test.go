//go:build !noweb

package web_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestWithoutPage builds the package without the page, and runs the test of that.
func TestWithoutPage(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "test", "-count=1", "-v", "-vet=off", "-tags=noweb", ".").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestNoPage") {
		t.Errorf("%v\n%s", err, out)
	}
}
