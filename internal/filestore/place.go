package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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
	dir string
	log *slog.Logger
	// mark is the format file. While it is open, no other file has its number.
	mark *os.File
	// lost is why commits are refused; nil while the folder is there.
	lost atomic.Pointer[error]
}

func openPlace(dir string, log *slog.Logger) (*place, error) {
	mark, err := os.Open(filepath.Join(dir, formatFile))
	if err != nil {
		return nil, err
	}
	return &place{dir: dir, log: log, mark: mark}, nil
}

// look looks whether the folder is there, and returns why commits are refused if it is
// not. A folder that is back, because it had only been moved, is as good as before.
func (p *place) look() error {
	there, err := os.Stat(p.mark.Name())
	was, err2 := p.mark.Stat()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && err2 == nil && !os.SameFile(there, was):
		err := fmt.Errorf("write to the store %s: %w: its folder was removed or replaced while the server runs, so what is written would be lost: "+
			"stop the server, put the folder or a backup in its place, and start it again", p.dir, store.ErrRefused)
		if p.lost.Swap(&err) == nil {
			p.log.Error("the store's folder was removed or replaced: commits are refused, and the newest ones may be lost", "store", p.dir)
		}
		return err
	case err == nil && err2 == nil && p.lost.Swap(nil) != nil:
		p.log.Info("the store's folder is back", "store", p.dir)
	}
	return nil
}

// why returns why commits are refused, as far as is known: refused is another reason, or
// nil.
func (p *place) why(refused *error) error {
	if lost := p.lost.Load(); lost != nil {
		return *lost
	}
	if refused != nil {
		return *refused
	}
	return nil
}
