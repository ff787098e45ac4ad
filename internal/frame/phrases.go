package frame

import (
	_ "embed" // the phrases are a file, because they never change
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/klauspost/compress/s2"
)

// The compressor of the server's own values, which are small and mostly made of phrases. It
// writes blocks of S2 with the phrases as their dictionary. The encoder is not the one
// of that library, which has a table of 64 KB on its stack: goroutines that commit would all be
// that large. This one looks phrases up in a table that is made once, and clears 1 KB.

// phrases is what the server's own values are made of, the most frequent ones last. Compressed
// data refers to it, so it is part of stored data and never changes; another text would be
// another codec.
//
//go:embed phrases.txt
var phrases []byte

const (
	// hashed is how many bytes a match has at least.
	hashed = 5
	// phraseBits and ownBits are the sizes of the tables of phrases, and of the value's own
	// bytes.
	phraseBits, ownBits = 13, 9
)

// phraseBook finds the phrases in a value.
type phraseBook struct {
	dict   *s2.Dict
	places [1 << phraseBits]uint16 // where in phrases the bytes of a hash begin, plus one
}

func newPhraseBook() *phraseBook {
	// The dictionary's first byte says which offset a block begins with; no block here uses it.
	b := &phraseBook{dict: s2.NewDict(append([]byte{0}, phrases...))}
	for i := range len(phrases) - 8 {
		b.places[hash(binary.LittleEndian.Uint64(phrases[i:]), phraseBits)] = uint16(i + 1)
	}
	return b
}

func hash(eight uint64, bits int) uint64 {
	return (eight << (64 - 8*hashed)) * 889523592379 >> (64 - bits)
}

// encode appends raw, of at most maxPhrases bytes, as a block.
func (b *phraseBook) encode(dst, raw []byte) []byte {
	var own [1 << ownBits]uint16 // where in raw the bytes of a hash begin, plus one
	dst = binary.AppendUvarint(dst, uint64(len(raw)))
	written := 0
	for at := 0; at+8 <= len(raw); {
		eight := binary.LittleEndian.Uint64(raw[at:])
		h := hash(eight, ownBits)
		// An offset is how far back a match begins; the phrases stand right before raw.
		offset, length := 0, 0
		if place := int(own[h]) - 1; place >= 0 {
			offset, length = at-place, same(raw[place:], raw[at:])
		}
		if place := int(b.places[hash(eight, phraseBits)]) - 1; place >= 0 {
			if n := same(phrases[place:], raw[at:]); n > length {
				offset, length = at+len(phrases)-place, n
			}
		}
		own[h] = uint16(at + 1)
		if length < hashed {
			at++
			continue
		}
		dst = appendLiteral(dst, raw[written:at])
		dst = appendCopy(dst, offset, length)
		at += length
		written = at
	}
	return appendLiteral(dst, raw[written:])
}

// same returns how many bytes a and b have in common at their beginning.
func same(a, b []byte) (n int) {
	for n+8 <= len(a) && n+8 <= len(b) {
		if diff := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); diff != 0 {
			return n + bits.TrailingZeros64(diff)/8
		}
		n += 8
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// The elements of a block, as the format has them: what begins with its length minus one, times
// four, is a literal, and others repeat what stands so many bytes back.

func appendLiteral(dst, text []byte) []byte {
	switch n := len(text) - 1; {
	case n < 0:
		return dst
	case n < 60:
		dst = append(dst, byte(n)<<2)
	case n < 1<<8:
		dst = append(dst, 60<<2, byte(n))
	default:
		dst = append(dst, 61<<2, byte(n), byte(n>>8))
	}
	return append(dst, text...)
}

func appendCopy(dst []byte, offset, length int) []byte {
	for length > 64 {
		part := min(64, length-4) // a rest has at least four bytes
		dst = append(dst, byte(part-1)<<2|2, byte(offset), byte(offset>>8))
		length -= part
	}
	if length < 12 && offset < 1<<11 {
		return append(dst, byte(offset>>8)<<5|byte(length-4)<<2|1, byte(offset))
	}
	return append(dst, byte(length-1)<<2|2, byte(offset), byte(offset>>8))
}

// decode returns what encode has made a block of.
func (b *phraseBook) decode(name string, block []byte) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	if err != nil || n == 0 || n > maxPhrases {
		return nil, fmt.Errorf("the phrases of %q have no right length: %w", name, errUnreadable)
	}
	raw, err := b.dict.Decode(nil, block)
	if err != nil {
		return nil, fmt.Errorf("the phrases of %q: %w: %w", name, errUnreadable, err)
	}
	return raw, nil
}
