package folder

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log that a process did not come to close ends in what was being written, which is
// no damage: it was never acknowledged. Pebble finds out whether there is damage before
// that end only where a later part of the log says how much of it was synced, and it
// understates that. But here nothing is written before everything in front of it is
// synced. So where something begins behind a part that cannot be read, that part was
// acknowledged, and is damaged. How much was synced at least, the file SYNCED says.

// LogDamage is damage in the newest log, behind which more was committed.
type LogDamage struct {
	file    string
	at, all int // bytes
}

// Error implements [error].
func (d *LogDamage) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d of %d: what was committed after that cannot be read", d.file, d.at,
		d.all)
}

// Unwrap returns that it is damage.
func (d *LogDamage) Unwrap() error { return ErrDamaged }

// Check compares the files of a store with what they were, and looks at the end of its log. The
// error is an [Amiss] or a [LogDamage] where something is missing or damaged.
func Check(dir string) error {
	if _, err := TakeStock(dir); err != nil {
		return err
	}
	return checkLog(dir)
}

// checkLog checks the newest log. The others were closed, so Pebble checks all of them.
func checkLog(dir string) error {
	here, err := filesIn(dir)
	if err != nil {
		return err
	}
	newest, there := here.newestLog()
	if !there {
		return nil
	}
	name := here.logs[newest].name
	log, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if at, damaged := damageInLog(log, uint32(newest), int(readSynced(dir, newest))); damaged {
		return &LogDamage{file: name, at: at, all: len(log)}
	}
	return nil
}

// damageInLog returns where the log with this number stops being readable, and whether
// that is damage: so much of it was synced, or there is something behind it.
func damageInLog(log []byte, number uint32, synced int) (at int, damaged bool) {
	for at < len(log) {
		block := min(len(log), blockEnd(at))
		if isTrailer(log[at:], number) {
			return at, false // it was closed
		}
		if block-at < logSyncedHeader && isZero(log[at:block]) {
			at = block
			continue
		}
		_, size := chunk(log[at:block], number)
		if size == 0 {
			break
		}
		at += size
	}
	if at < synced {
		return at, true
	}
	trailer, claimed := logTrailer(number), claimedEnd(log, at, number)
	_, legible := header(log[at:min(len(log), blockEnd(at))], number)
	for behind := at + 1; behind < len(log); behind++ {
		block := min(len(log), blockEnd(behind))
		kind, size := chunk(log[behind:block], number)
		begins := kind == logFull || kind == logFirst
		if size > 0 && begins {
			return at, true
		}
		if !bytes.HasPrefix(log[behind:], trailer) {
			continue
		}
		atEnd := legible == 0 && behind+len(trailer) == len(log)
		if behind == claimed || atEnd || behind <= blockEnd(at) && sumHolds(log[at:behind]) {
			return at, true
		}
	}
	return at, false
}

// claimedEnd returns where a record ends that cannot be read, by the headers of its chunks from
// this one on: there the trailer stands if the log was closed. The same bytes elsewhere may be
// data, of this record, which was partly written, or of an older log, whose file Pebble has
// reused. A damaged length claims a wrong end; see [sumHolds]. A header that never reached the disk,
// and is zero or of the older log, claims nothing: then only a trailer at the end of the file says
// that the log was closed.
func claimedEnd(log []byte, at int, number uint32) int {
	for at < len(log) {
		block := min(len(log), blockEnd(at))
		if block-at < logSyncedHeader {
			break
		}
		kind, size := header(log[at:block], number)
		if size == 0 { // its type or its number may be what is damaged
			size = logSyncedHeader + int(binary.LittleEndian.Uint16(log[at+4:]))
		}
		if at+size > block {
			break
		}
		at += size
		if blockEnd(at)-at < logSyncedHeader { // padding
			at = blockEnd(at)
		}
		if kind == logFull || kind == logLast || at%logBlock != 0 {
			break
		}
	}
	return at
}

// blockEnd returns where the block ends that has this byte of a log.
func blockEnd(at int) int { return (at/logBlock + 1) * logBlock }

// sumHolds reports whether a chunk is whole if it has this length and not the one that its header
// says, which its checksum does not cover.
func sumHolds(b []byte) bool {
	return len(b) >= logHeader && chunkSum(b[6:]) == binary.LittleEndian.Uint32(b)
}

// logTrailer is what a log ends with that was closed.
func logTrailer(number uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{0, 0, 0, 0, 0, 0, logFull}, number+1)
}

// isTrailer reports whether the rest of a log says that it was closed.
func isTrailer(rest []byte, number uint32) bool { return bytes.HasPrefix(rest, logTrailer(number)) }

// recordEnd returns where the last record ends in a log whose chunks are all whole.
func recordEnd(log []byte, number uint32) (end int) {
	for at := 0; at < len(log); {
		block := min(len(log), blockEnd(at))
		kind, size := chunk(log[at:block], number)
		if size == 0 { // padding
			at = block
			continue
		}
		at += size
		if kind == logFull || kind == logLast {
			end = at
		}
	}
	return end
}

// chunk returns the type of the chunk with which b begins, without what the newer types
// add, and the chunk's size; 0 if there is none.
func chunk(b []byte, number uint32) (kind byte, size int) {
	kind, size = header(b, number)
	if size == 0 || size > len(b) || chunkSum(b[6:size]) != binary.LittleEndian.Uint32(b) {
		return 0, 0
	}
	return kind, size
}

// header returns what the header with which b begins says of its chunk, which need not be whole:
// its type, as [chunk] does, and its size; 0 if there is none.
func header(b []byte, number uint32) (kind byte, size int) {
	if len(b) < logHeader || b[6] < logFull || b[6] >= logFull+2*logSynced ||
		binary.LittleEndian.Uint32(b[7:]) != number {
		return 0, 0
	}
	kind, size = b[6], logHeader
	if kind >= logFull+logSynced {
		kind, size = kind-logSynced, logSyncedHeader
	}
	return kind, size + int(binary.LittleEndian.Uint16(b[4:]))
}

func isZero(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

// Cut is a file system in which the damaged log ends where its damage begins.
func (d *LogDamage) Cut(fs vfs.FS) vfs.FS { return cutFS{fs, d} }

// cutFS is a file system in which a damaged log ends where its damage begins.
type cutFS struct {
	vfs.FS
	damage *LogDamage
}

// Open implements [vfs.FS].
func (c cutFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if err != nil || filepath.Base(name) != c.damage.file {
		return f, err
	}
	return &cutFile{File: f, left: c.damage.at}, nil
}

// cutFile is read from its beginning, as logs are.
type cutFile struct {
	vfs.File
	left int
}

// Read implements [vfs.File].
func (f *cutFile) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.File.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}
