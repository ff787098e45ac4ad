package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/holdfast-agents/holdfast/store"
)

// place notices that the store's folder was removed, or that another one has taken its
// place. The engine would not: it goes on with the files that it has open, and what it
// writes there is gone when it closes them.
type place struct {
	// mark is the format file. While it is open, no other file has its number.
	mark *os.File
	// lost is why commits are refused; nil while the folder is there.
	lost atomic.Pointer[error]
}

func (p *place) open(dir string) (err error) {
	p.mark, err = os.Open(filepath.Join(dir, formatFile))
	return err
}

func (p *place) close() error {
	if p.mark == nil {
		return nil
	}
	return p.mark.Close()
}

// look looks whether the folder is there. A folder that is back, because it had only been
// moved, is as good as before.
func (s *Store) look() error {
	p := &s.place
	there, err := os.Stat(p.mark.Name())
	was, err2 := p.mark.Stat()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && err2 == nil && !os.SameFile(there, was):
		err := error(fmt.Errorf("write to the store %s: %w: its folder was removed or replaced while the server runs, so what is written would be lost: "+
			"stop the server, put the folder or a backup in its place, and start it again", s.dir, store.ErrRefused))
		if p.lost.Swap(&err) == nil {
			s.log.Error("the store's folder was removed or replaced: commits are refused, and the newest ones may be lost", "store", s.dir)
		}
		return err
	case err == nil && err2 == nil && p.lost.Swap(nil) != nil:
		s.log.Info("the store's folder is back", "store", s.dir)
	}
	return nil
}

// why returns why commits are refused; nil if they are not.
func (s *Store) why() error {
	for _, refused := range []*error{s.place.lost.Load(), s.refused.Load()} {
		if refused != nil {
			return *refused
		}
	}
	return nil
}
