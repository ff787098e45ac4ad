package archtest

import (
	"path/filepath"
	"regexp"
	"testing"
)

// TestImageVersion: the variable that the Dockerfile lets the linker set is there. The
// linker says nothing if it is not.
func TestImageVersion(t *testing.T) {
	t.Parallel()
	set := regexp.MustCompile(`-X ` + regexp.QuoteMeta(module) + `/(\S+)\.(\w+)=\$VERSION`).
		FindStringSubmatch(read(t, filepath.Join(root, "Dockerfile")))
	if set == nil {
		t.Fatal("the Dockerfile does not set the version")
	}
	declared := regexp.MustCompile(`(?m)^var ` + set[2] + ` string$`)
	for _, f := range sources(t, root) {
		if filepath.Dir(f.short) == set[1] && declared.Match(f.text) {
			return
		}
	}
	t.Errorf("the Dockerfile sets %s in %s, which has no such string", set[2], set[1])
}
