package connection

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNoPasswordFile: a file that cannot be read is not taken for a Redis that does not run.
func TestNoPasswordFile(t *testing.T) {
	_, _, problem := credentials(filepath.Join(t.TempDir(), "none"), "u")(t.Context())
	if err := unreachable(problem, time.Second); !strings.Contains(err.Error(), "--redis-password-file") ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
