package folder

import (
	"hash/crc32"
	"math/bits"
)

// The log's format: blocks with chunks in them, which do not cross from one block into
// the next. A chunk has a header: its checksum, its length, its type, the log's number,
// and in the newer types how much of the log was synced.
const (
	logBlock        = 32 << 10
	logHeader       = 11 // of types 5 to 8
	logSyncedHeader = 19 // of types 9 to 12
	logFull         = 5  // of both, the first type is a whole record,
	logFirst        = 6  // the second one the beginning of one,
	logLast         = 8  // and the fourth one the end of one
	logSynced       = 4  // is what the newer types are larger by
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkSum is the checksum of a chunk, from its type on.
func chunkSum(b []byte) uint32 {
	return bits.RotateLeft32(crc32.Checksum(b, castagnoli), 17) + 0xa282ead8
}

// crc32Update goes on with the checksum of a file.
func crc32Update(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }
