//go:build unix && !solaris && !illumos && !aix

package filestore

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
)

// lockFile locks a file, alone or together with others who only read, and reports
// whether somebody else has locked it. The lock ends with the process.
func lockFile(name string, alone bool) (lock io.Closer, taken bool, err error) {
	mode, how := os.O_RDONLY, syscall.LOCK_SH
	if alone {
		mode, how = os.O_RDWR|os.O_CREATE, syscall.LOCK_EX
	}
	f, err := os.OpenFile(name, mode, folder.FileMode)
	if err != nil {
		return nil, false, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Is(err, syscall.EWOULDBLOCK),
			errors.Join(&os.PathError{Op: "lock", Path: name, Err: err}, f.Close())
	}
	return f, false, nil
}
