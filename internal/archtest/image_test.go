package archtest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestImageVersion: the variable that the Dockerfile lets the linker set is there. The
// linker says nothing if it is not.
func TestImageVersion(t *testing.T) {
	t.Parallel()
	set := regexp.MustCompile(`-X main\.(\w+)=\$VERSION`).FindStringSubmatch(read(t, filepath.Join(root, "Dockerfile")))
	if set == nil {
		t.Fatal("the Dockerfile does not set the version")
	}
	if main := read(
		t,
		filepath.Join(root, "cmd", "server", "main.go"),
	); !strings.Contains(
		main,
		"\nvar "+set[1]+" string\n",
	) {
		t.Errorf("the Dockerfile sets main.%s, and cmd/server/main.go has no such string", set[1])
	}
}
