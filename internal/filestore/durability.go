package filestore

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
)

var (
	_ store.Durable       = (*Store)(nil)
	_ store.CommitChecker = (*Store)(nil)
)

// littleSpace is when an operator should know that a disk gets full.
const littleSpace = 1 << 30

// fileSystem is what the operating system says about a file's place.
type fileSystem struct {
	kind uint32 // its magic number
	free uint64 // bytes that this user can still write
}

// inMemory are file systems that end with the machine.
var inMemory = map[uint32]string{
	0x01021994: "tmpfs",
	0x858458f6: "ramfs",
}

// elsewhere are file systems where another machine, or another program, does
// the work: there a sync and a lock are what that one makes of them.
var elsewhere = map[uint32]string{
	0x6969:     "NFS",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB",
	0x517b:     "SMB",
	0x65735546: "FUSE",
	0x01021997: "9p",
}

// Durability implements [store.Durable]. Every commit is synced, so it looks at
// what a sync is worth where the directory is.
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	if err := ctx.Err(); err != nil {
		return store.Durability{}, err
	}
	d := durabilityIn(s.dir)
	if files := s.damage.list(); len(files) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%s has damaged files (%s): the threads in their damaged parts cannot "+
			"be read; put a backup in its place", s.dir, strings.Join(files, ", ")))
	}
	return d, nil
}

func durabilityIn(dir string) store.Durability {
	kind, free, known, err := statFileSystem(dir)
	switch {
	case err != nil:
		note := fmt.Sprintf("the file system of %s could not be looked at, so what a sync is "+
			"worth there is unknown: %v", dir, err)
		return store.Durability{Level: store.LevelProcess, Notes: []string{note}}
	case !known:
		return store.Durability{Level: store.LevelMachine}
	}
	return fileSystem{kind: kind, free: free}.judge(dir)
}

// CanCommit implements [store.CommitChecker].
func (s *Store) CanCommit(ctx context.Context) error {
	if err := cmp.Or(s.place.canWrite(s.committer.refused.Load()), ctx.Err()); err != nil {
		return err
	}
	if err := s.damage.ofAll(); err != nil {
		return fmt.Errorf("the store %s is damaged in what all threads share, so threads may be missing from its "+
			"lists: %w; put a backup in its place, or save what is whole with holdfast salvage", s.dir, err)
	}
	return nil
}

// judge says what it means for a store to be at path, which is there.
func (at fileSystem) judge(path string) store.Durability {
	d := store.Durability{Level: store.LevelMachine}
	if name, ok := inMemory[at.kind]; ok {
		d.Level = store.LevelProcess
		d.Notes = append(d.Notes, fmt.Sprintf("%s is in memory (%s): it is lost when the machine stops; "+
			"put the store on a disk", path, name))
	}
	if name, ok := elsewhere[at.kind]; ok {
		d.Level = store.LevelProcess
		d.Notes = append(d.Notes, fmt.Sprintf("%s is not on a local disk (%s): what syncs and locks are worth there "+
			"depends on the mount; put the store on a local disk, or use Redis", path, name))
	}
	if at.free < littleSpace {
		d.Notes = append(d.Notes, fmt.Sprintf("the disk of %s has only %d MiB left: when it is full, commits wait",
			path, at.free>>20))
	}
	return d
}
