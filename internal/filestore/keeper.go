package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// The keeper sees to it that there is an engine that writes, and one that reads,
// which are the same one except
//
//   - at a start without room: the store is read by an engine that only reads,
//     until the other one could be opened;
//   - after an engine has failed: it goes on to be read, until another one is open.
//
// An engine that has failed cannot be closed. It is left behind, with its memory
// and a few goroutines that never wake, so there may be only so many of them.

const (
	// maxLeft is how many engines may be left behind. A disk that fails more often needs
	// replacement, and the server a restart.
	maxLeft = 8
	// readTries is how often an engine that only reads is opened, if files vanish meanwhile.
	readTries = 10
	// roomFile is written, with so many bytes, to see whether there is room.
	roomFile, roomSize = "ROOM", 64 << 10
	// The pause before an engine is opened again doubles from the first one (firstPause) up to
	// the longest.
	longestPause = 30 * time.Second
)

// begin opens the first engine, and starts the committer.
func (c *committer) begin() error {
	o := c.open(c.readOnly)
	e, err := c.await(o)
	if errors.Is(err, errFull) {
		e, err = c.readMeanwhile(o)
	}
	if err != nil {
		return folder.Judged(err)
	}
	if e.readOnly {
		c.engine.Store(e)
		if c.readOnly {
			c.refused.Store(refusal(fmt.Errorf("the store %s is open for reading only", c.dir)))
		}
	} else if err := c.use(e); err != nil {
		return errors.Join(err, e.close())
	}
	if err := e.probe(); err != nil {
		c.damage.share(err)
		c.log.Error("what all threads share is damaged: the server is not ready; put a backup in the store's place, "+
			"or see: holdfast salvage",
			"store", c.dir, "error", folder.FirstLine(err))
	}
	go c.run()
	return nil
}

// errFull: there is no room to open an engine. It waits for it.
var errFull = errors.New("there is no room")

// await waits until an engine is open, has failed to, or waits for room.
func (c *committer) await(o *opening) (*engine, error) {
	full, _ := o.disk.Full()
	select {
	case <-o.done:
		return o.engine, o.err
	case <-o.disk.Failed():
		return nil, o.disk.Failure()
	case <-full:
		_, why := o.disk.Full()
		return nil, fmt.Errorf("%w: %w", errFull, why)
	}
}

// readMeanwhile opens an engine that only reads, while the other one waits for room.
// A new store has nothing that could be read.
func (c *committer) readMeanwhile(o *opening) (*engine, error) {
	_, why := o.disk.Full()
	var r *opening
	for range readTries {
		r = c.open(true)
		// The other one may still have removed what it has no more need of, after the reader had
		// found its name and before it had opened it.
		if <-r.done; !errors.Is(r.err, fs.ErrNotExist) {
			break
		}
	}
	if r.err != nil {
		o.disk.Leave()
		return nil, why
	}
	c.refuseForRoom(why)
	c.keep(func() *engine {
		e, err := c.awaitRoom(o)
		if err == nil {
			return e
		}
		return c.reopen(o.disk, err)
	})
	return r.engine, nil
}

// awaitRoom is await for an engine that may wait for room.
func (c *committer) awaitRoom(o *opening) (*engine, error) {
	select {
	case <-o.done:
		return o.engine, o.err
	case <-o.disk.Failed():
		return nil, o.disk.Failure()
	case <-c.closing:
		o.disk.Leave()
		return nil, folder.ErrClosed
	}
}

// keep has open open an engine, and gives it to the committer.
func (c *committer) keep(open func() *engine) {
	c.keeping.Go(func() {
		e := open()
		if e == nil {
			return
		}
		select {
		case c.opened <- e:
		case <-c.closing:
			_ = e.close() // it has written nothing of anybody's
		}
	})
}

// reopen opens an engine after another one has failed. It returns nil when the
// store is closed meanwhile, or when too many have failed.
func (c *committer) reopen(failed *folder.Disk, cause error) *engine {
	pause := c.pause
	for {
		failed.Leave()
		if c.left.Add(1) > maxLeft {
			c.refused.Store(refusal(fmt.Errorf("write to the store %s: %w; the disk has failed too often: look after "+
				"it, and start the server again", c.dir, cause)))
			c.log.Error("the store's disk has failed too often; commits are refused until the server is started again",
				"store", c.dir, "error", folder.FirstLine(cause))
			return nil
		}
		// For want of room, an engine more would be left behind in vain. Where the folder was, Pebble
		// would make a store that is empty.
		full := folder.NoRoom(cause) != 0
		for wait := true; wait; wait = c.place.look() != nil || full && !c.hasRoom() {
			select {
			case <-time.After(pause):
			case <-c.closing:
				return nil
			}
			if !full {
				pause = min(2*pause, longestPause)
			}
		}
		o := c.open(false)
		e, err := c.awaitRoom(o)
		switch {
		case err == nil:
			return e
		case errors.Is(err, folder.ErrClosed):
			return nil
		}
		c.log.Error("the store could not be opened again", "store", c.dir, "error", folder.FirstLine(err))
		c.refused.Store(refusal(folder.Reopens(c.dir, err)))
		failed, cause = o.disk, err
	}
}

// hasRoom reports whether a file can be written in the store's folder.
func (s *site) hasRoom() bool {
	name := filepath.Join(s.dir, roomFile)
	f, err := s.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, roomSize))
	if err == nil {
		err = f.SyncData()
	}
	// It is written again the next time, and means nothing.
	return errors.Join(err, f.Close(), s.fs.Remove(name)) == nil
}
func (c *committer) use(e *engine) error {
	t := newTxn(e.newBatch(), c, numbers{})
	defer t.close()
	var n numbers
	var err1, err2 error
	n.thread, err1 = t.number(metaKey(metaThreads))
	n.account, err2 = t.number(metaKey(metaAccounts))
	left, err3 := t.unfinished()
	if err := errors.Join(err1, err2, err3); err != nil {
		return folder.Unreadable(err)
	}
	c.writing, c.numbers = e, n
	c.hot.forgetAll()
	before := c.engine.Swap(e)
	c.refused.Store(nil)
	if len(left) > 0 && (before == nil || before.readOnly) {
		// Nobody has begun to write yet, so all of it is of another process.
		c.keeping.Go(func() { discardUnfinished(c, left) })
	}
	if before == nil {
		return nil
	}
	c.log.Info("the store can be written again", "store", c.dir)
	c.keeping.Go(func() {
		if !before.readOnly {
			before.retire()
		} else if err := before.close(); err != nil {
			c.log.Warn("the engine that only read could not be closed", "store", c.dir, "error", folder.FirstLine(err))
		}
	})
	return nil
}

// refusal is the error of commits that are refused because of err.
func refusal(err error) *error {
	err = folder.Brief(errors.Join(store.ErrRefused, err), err.Error())
	return &err
}

// refuseForRoom has commits refused because there is no room.
func (c *committer) refuseForRoom(why error) {
	err := folder.WaitsForRoom(c.dir, why)
	c.refused.Store(refusal(err))
	c.log.Error("the store has no room: commits are refused until it has",
		"store", c.dir, "error", folder.FirstLine(err))
}
