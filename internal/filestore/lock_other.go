//go:build !unix || solaris || illumos || aix

package filestore

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockFile locks a file, and reports whether somebody else has locked it. Here even
// those who only read lock it alone. The lock ends with the process.
func lockFile(name string, alone bool) (lock io.Closer, taken bool, err error) {
	if !alone {
		if _, err := os.Stat(name); err != nil {
			return nil, false, err
		}
	}
	lock, err = vfs.Default.Lock(name)
	missing := errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)
	return lock, err != nil && !missing, err
}
