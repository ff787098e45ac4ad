package folder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
)

// A manifest is Pebble's list of its tables: a file of records, each of which says which
// tables were added and removed, and from which log on the tables do not have what was
// committed. Pebble takes an end that it cannot read for a crash, and then removes the
// tables that only the unreadable part names. So the list is read here first; see
// inventory.go.

// A record is one chunk or several, in the blocks of logcheck.go, with a shorter header:
// checksum, length and type.
const (
	manifestHeader = 7
	manifestFull   = 1
	manifestLast   = 4
)

// The tags of what is in a record. Records that this store never has, such as tables that
// share a file, are not read.
const (
	tagComparator    = 1
	tagFirstLog      = 2
	tagNextFile      = 3
	tagLastSequence  = 4
	tagDeletedTable  = 6
	tagPlainTable    = 100
	tagNewTable      = 103 // with tags of its own
	tagNewRangeTable = 104 // with them, and other bounds
	tableTagEnd      = 1
	tableTagMustKnow = 64
	boundsHavePoints = 1
)

// manifest is what has been read of one.
type manifest struct {
	length   int64 // of what was read, in whole chunks
	sum      uint32
	firstLog uint64
	levels   map[uint64]int // of the tables in use, by their numbers

	behind []byte // what is not a whole chunk yet
	record []byte // what is not a whole record yet
}

var (
	// errManifest: a manifest goes on with something that is no record.
	errManifest = errors.New("the list of its tables cannot be read to its end")
	// errTag: a record has something in it that this store never has.
	errTag = errors.New("a record of the list of its tables is of a kind that is not known")
)

// take reads on.
func (m *manifest) take(b []byte) error {
	m.behind = append(m.behind, b...)
	for {
		left := logBlock - int(m.length%logBlock)
		size := left // of the padding
		if left >= manifestHeader {
			if len(m.behind) < manifestHeader {
				return nil
			}
			size = manifestHeader + int(binary.LittleEndian.Uint16(m.behind[4:]))
			kind := m.behind[6]
			if size > left || kind < manifestFull || kind > manifestLast {
				return errManifest
			}
			if len(m.behind) < size {
				return nil
			}
			if err := m.chunk(kind, m.behind[:size]); err != nil {
				return err
			}
		} else if len(m.behind) < size {
			return nil
		}
		m.sum = crc32Update(m.sum, m.behind[:size])
		m.length += int64(size)
		m.behind = m.behind[size:]
	}
}

// chunk takes a chunk of a record.
func (m *manifest) chunk(kind byte, b []byte) error {
	begins := kind == manifestFull || kind == manifestFull+1
	if chunkSum(b[6:]) != binary.LittleEndian.Uint32(b) || begins != (m.record == nil) {
		return errManifest
	}
	m.record = append(append([]byte{}, m.record...), b[manifestHeader:]...)
	if kind != manifestFull && kind != manifestLast {
		return nil
	}
	err := m.apply(m.record)
	m.record = nil
	return err
}

// whole reports whether the manifest ended with a record.
func (m *manifest) whole() bool { return len(m.behind) == 0 && m.record == nil && m.length > 0 }

// apply changes what is in use as a record says.
func (m *manifest) apply(record []byte) error {
	r := &editReader{Reader: bytes.NewReader(record)}
	removed, added := map[uint64]bool{}, map[uint64]int{}
	for r.Len() > 0 && r.err == nil {
		switch tag := r.uvarint(); tag {
		case tagComparator:
			r.skip()
		case tagFirstLog:
			m.firstLog = r.uvarint()
		case tagNextFile, tagLastSequence:
			r.uvarint()
		case tagDeletedTable:
			r.uvarint() // its level: it may be added at another one
			removed[r.uvarint()] = true
		case tagPlainTable, tagNewTable, tagNewRangeTable:
			level := int(r.uvarint())
			added[r.table(tag)] = level
		default:
			return fmt.Errorf("%w: %d", errTag, tag)
		}
	}
	if r.err != nil {
		return fmt.Errorf("%w: %w", errManifest, r.err)
	}
	if m.levels == nil {
		m.levels = map[uint64]int{}
	}
	maps.DeleteFunc(m.levels, func(table uint64, _ int) bool { return removed[table] })
	maps.Copy(m.levels, added)
	return nil
}

// editReader reads the parts of a record. After the first failure it returns zeros.
type editReader struct {
	*bytes.Reader
	err error
}

func (r *editReader) uvarint() uint64 {
	n, err := binary.ReadUvarint(r)
	r.err = errors.Join(r.err, err)
	return n
}

// skip skips bytes whose number is before them.
func (r *editReader) skip() {
	n := r.uvarint()
	if n > uint64(r.Len()) {
		r.err = io.ErrUnexpectedEOF
	}
	if r.err == nil {
		_, r.err = r.Seek(int64(n), io.SeekCurrent)
	}
}

// table reads the rest of a new table, and returns its number.
func (r *editReader) table(tag uint64) uint64 {
	number := r.uvarint()
	r.uvarint() // its size
	bounds := 2
	if tag == tagNewRangeTable {
		has, err := r.ReadByte()
		r.err = errors.Join(r.err, err)
		if has&boundsHavePoints != 0 {
			bounds = 4
		}
	}
	for range bounds {
		r.skip()
	}
	r.uvarint() // its first
	r.uvarint() // and its last sequence number
	for r.err == nil && tag != tagPlainTable {
		switch tag := r.uvarint(); {
		case tag == tableTagEnd:
			return number
		case tag&tableTagMustKnow != 0:
			r.err = errors.Join(r.err, errTag)
		default:
			r.skip()
		}
	}
	return number
}
