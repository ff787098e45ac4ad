package frame

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Phrases leave mostly letters of a value, and a byte is too much for most of those. A
// compressor that counts the letters of each value has to say what it has counted, which small
// values do not pay for. So the lengths of codes are fixed here: they come from the server's own
// values and from English text, in equal parts. Other text gains less, or is stored without.

// codeLengths has the length of each byte's code, in bits, as a hexadecimal digit. Stored values
// depend on it: it never changes.
const codeLengths = "689867ac777878cc997c8a9b999b9aac3c7999b989ac77796778787877788aaa" +
	"a99aa99baaaaa89aaaaa8b9bb9cab9aa7566646665a666556b55557698ba87cc" +
	"bcbcc9bbb9acbbbccccbcbccaaccccbccbccaabcccccccbacbcccccbcbcccbcc" +
	"cccccacccacccccbc9babccbbccccccccccccccccaccccccabccbacccccccccc"

// longestCode is the length of the longest code.
const longestCode = 12

// maxBlock bounds what is written in letters: a value in phrases.
const maxBlock = 2 * maxPhrases

// letters writes bytes by their codes.
type letters struct {
	codes   [256]uint16 // with the first bit lowest
	lengths [256]uint8
	// bytes has, for what the next bits may be, the byte and the length of its code.
	bytes [1 << longestCode]struct{ is, length uint8 }
}

func newLetters() *letters {
	l := &letters{}
	code := 0
	for length := range longestCode + 1 {
		for b := range codeLengths {
			n := strings.IndexByte("0123456789abc", codeLengths[b])
			if n != length {
				continue
			}
			l.lengths[b] = uint8(n)
			l.codes[b] = bits.Reverse16(uint16(code)) >> (16 - n)
			for at := int(l.codes[b]); at < len(l.bytes); at += 1 << n {
				l.bytes[at].is, l.bytes[at].length = uint8(b), uint8(n)
			}
			code++
		}
		code <<= 1
	}
	return l
}

// size returns how many bytes encode writes.
func (l *letters) size(block []byte) int {
	n := 0
	for _, b := range block {
		n += int(l.lengths[b])
	}
	return (bits.Len(uint(len(block)))+6)/7 + (n+7)/8
}

// encode appends the codes of the block's bytes, behind their number.
func (l *letters) encode(dst, block []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(block)))
	waiting, n := uint64(0), 0
	for _, b := range block {
		waiting |= uint64(l.codes[b]) << n
		if n += int(l.lengths[b]); n >= 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(waiting))
			waiting >>= 32
			n -= 32
		}
	}
	for ; n > 0; n -= 8 {
		dst = append(dst, byte(waiting))
		waiting >>= 8
	}
	return dst
}

// decode is the reverse of encode. It uses room if that is large enough.
func (l *letters) decode(name string, data, room []byte) ([]byte, error) {
	count, size := binary.Uvarint(data)
	if size <= 0 || count == 0 || count > maxBlock {
		return nil, fmt.Errorf("the letters of %q have no right number: %w", name, errUnreadable)
	}
	block := slices.Grow(room[:0], int(count))[:count]
	data = data[size:]
	waiting, n := uint64(0), 0
	for i := range block {
		for n < longestCode && len(data) > 0 {
			if len(data) >= 4 {
				waiting |= uint64(binary.LittleEndian.Uint32(data)) << n
				data, n = data[4:], n+32
				continue
			}
			waiting |= uint64(data[0]) << n
			data, n = data[1:], n+8
		}
		next := l.bytes[waiting%(1<<longestCode)]
		if n -= int(next.length); n < 0 {
			return nil, fmt.Errorf("the letters of %q end early: %w", name, errUnreadable)
		}
		block[i] = next.is
		waiting >>= next.length
	}
	if len(data) > 0 || n >= 8 || waiting != 0 {
		return nil, fmt.Errorf("the letters of %q do not end: %w", name, errUnreadable)
	}
	return block, nil
}
