package prompt

import (
	"encoding/base64"
	"encoding/binary"
)

// Mark is what is kept of a request to measure the next one by: checksums and a length. It
// is written as a text of less than 40 characters. It is never changed.
type Mark struct {
	// sums are the checksums of the prompt up to the end of each part.
	sums [Parts]uint32
	// size is how long the prompt was, in bytes; 0 if that is not known.
	size uint64
	// branched means that the history has branched since.
	branched bool
}

// known reports whether there was a request. m may be nil.
func (m *Mark) known() bool { return m != nil && m.size > 0 }

// Branched returns the mark of the same request, for a history that has branched since,
// which is a reason to repeat less. m may be nil.
func (m *Mark) Branched() *Mark {
	if m == nil {
		return nil
	}
	branched := *m
	branched.branched = true
	return &branched
}

// flagBranched is the flag for a history that has branched.
const flagBranched = 1

// MarshalText implements [encoding.TextMarshaler].
func (m *Mark) MarshalText() ([]byte, error) {
	var b []byte
	for _, sum := range m.sums {
		b = binary.LittleEndian.AppendUint32(b, sum)
	}
	b = binary.AppendUvarint(b, m.size)
	if m.branched {
		b = append(b, flagBranched)
	}
	return base64.RawStdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. An unreadable text is no mark: a thread
// is worth more than a measurement.
func (m *Mark) UnmarshalText(text []byte) error {
	*m = Mark{}
	b, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil || len(b) < 4*int(Parts) {
		return nil
	}
	var read Mark
	for p := range read.sums {
		read.sums[p] = binary.LittleEndian.Uint32(b)
		b = b[4:]
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > maxSize {
		return nil
	}
	read.size, read.branched = size, len(b) > n && b[n]&flagBranched != 0
	*m = read
	return nil
}

// maxSize bounds the length of a prompt, so that it can be counted with.
const maxSize = 1 << 40
