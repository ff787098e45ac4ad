// Package frame puts a header before each value: a codec id, so that the compression can
// change while old values stay readable, and a checksum, so that damage is never taken for
// content.
package frame

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/klauspost/compress/zstd"
)

// The codec ids. They are part of stored data, so a number is never used again, and 0 is none,
// so that zeros are no frame. They differ in more than one bit, so a single flip cannot turn
// one into another.
const (
	none          byte = 0
	summedBook    byte = 5
	summed        byte = 6
	summedPhrases byte = 9
	summedZstd    byte = 10
	summedLetters byte = 12
)

// A frame is the codec id, the checksum and the body. The checksum is CRC-32C, of
// what stands before the frame, the name, the codec id and the body.
const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// worthwhile is the size, in bytes, above which compression saves more than it costs. A
	// state of 400 bytes takes a third less.
	worthwhile = 256
	// maxDecoded bounds the size, in bytes, of a value that was compressed. Larger values
	// are stored plain, because Decode would refuse them.
	maxDecoded = 64 << 20
	// large is the size, in bytes, from which values have a compressor of their own. There
	// are as many as processors, and a value of megabytes keeps one busy for long enough
	// that commits would wait for it.
	large = 64 << 10
	// Between these sizes, in bytes, phrases make the server's own values half as large as
	// without. Larger ones have phrases enough of their own.
	worthPhrases, maxPhrases = 96, 4 << 10
	// mostText is the size, in bytes, up to which phrases and letters are as good for text as
	// zstd, which counts the letters of each value.
	mostText = 1 << 10
)

// errUnreadable means that the data is not what Encode wrote.
var errUnreadable = fmt.Errorf("%w: damaged", store.ErrUnreadable)

// Codec encodes and decodes values. It may be used concurrently and should be shared,
// because it keeps the compressors' memory.
type Codec struct {
	encoder, largeEncoder, phraseEncoder *zstd.Encoder
	decoder, largeDecoder                *zstd.Decoder
	book                                 *phraseBook
	letters                              *letters
	before                               bool // see Earlier
}

// New returns a codec. It starts no goroutine and need not be closed.
func New() (*Codec, error) {
	c := &Codec{book: newPhraseBook(), letters: newLetters()}
	for e, letters := range map[**zstd.Encoder]bool{&c.encoder: false, &c.largeEncoder: true} {
		var err error
		if *e, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false),
			// Also what never repeats: files in base64 become a quarter smaller, which is quicker than to write it.
			zstd.WithAllLitEntropyCompression(letters)); err != nil {
			return nil, fmt.Errorf("make a zstd encoder: %w", err)
		}
	}
	// The fastest level, because with phrases it makes values nearly as small as others.
	var err error
	if c.phraseEncoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithEncoderDictRaw(1, phrases)); err != nil {
		return nil, fmt.Errorf("make a zstd encoder with phrases: %w", err)
	}
	for _, d := range []**zstd.Decoder{&c.decoder, &c.largeDecoder} {
		var err error
		if *d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxDecoded),
			zstd.WithDecoderDictRaw(1, phrases)); err != nil {
			return nil, fmt.Errorf("make a zstd decoder: %w", err)
		}
	}
	return c, nil
}

// Earlier returns a codec that reads what c reads, and writes only what the version before reads too,
// which does not know common letters. They share their memory.
func (c *Codec) Earlier() *Codec {
	earlier := *c
	earlier.before = true
	return &earlier
}

// Encode appends the frame of raw to own and returns the result. Data of phrases and common letters
// become short; others of more than 256 bytes are compressed if that makes them smaller. Own
// and name, under which the result is going to be stored, are not part of the frame, but Decode
// finds out if they change.
func (c *Codec) Encode(own []byte, name string, raw []byte) []byte {
	if data := c.inPhrases(own, name, raw); data != nil {
		return data
	}
	encoder := c.encoder
	switch {
	case len(raw) <= worthwhile || len(raw) > maxDecoded:
		encoder = nil
	case len(raw) >= large:
		encoder = c.largeEncoder
	}
	return encode(encoder, summedZstd, own, name, raw)
}

// EncodeOwn is Encode for a value that is small again and again, so that its size is worth more
// time: what little it has of phrases helps to compress the rest.
func (c *Codec) EncodeOwn(own []byte, name string, raw []byte) []byte {
	if len(raw) < worthPhrases || len(raw) > maxPhrases {
		return c.Encode(own, name, raw)
	}
	if data := c.inPhrases(own, name, raw); data != nil {
		return data
	}
	return encode(c.phraseEncoder, summedPhrases, own, name, raw)
}

// inPhrases makes the frame of a value that phrases and letters make a quarter smaller, or half as
// large if it is long. It makes none of others: those have much text, which needs a compressor that
// counts its letters.
func (c *Codec) inPhrases(own []byte, name string, raw []byte) []byte {
	if len(raw) < worthPhrases || len(raw) > maxPhrases {
		return nil
	}
	most := len(raw) / 2
	if len(raw) <= mostText {
		most = len(raw) * 3 / 4
	}
	var room [mostText * 5 / 4]byte
	block := c.book.encode(room[:0], raw)
	size, letters := len(block), len(block)
	if !c.before {
		letters = c.letters.size(block)
	}
	if min(size, letters) > most {
		return nil
	}
	if letters < size {
		own = slices.Grow(own, 1+sumSize+letters)
		return seal(c.letters.encode(append(own, summedLetters, 0, 0, 0, 0), block), len(own), name)
	}
	own = slices.Grow(own, 1+sumSize+size)
	return seal(append(append(own, summedBook, 0, 0, 0, 0), block...), len(own), name)
}

// encode makes the frame, with an encoder if it is not nil and makes raw smaller.
func encode(encoder *zstd.Encoder, codec byte, own []byte, name string, raw []byte) []byte {
	data := append(own, codec, 0, 0, 0, 0)
	body := len(data)
	compressed := encoder != nil
	if compressed {
		data = encoder.EncodeAll(raw, data)
		compressed = len(data)-body < len(raw)
	}
	if !compressed {
		data[len(own)] = summed
		data = append(data[:body], raw...)
	}
	return seal(data, len(own), name)
}

// seal puts the checksum into the frame that begins at a place in data.
func seal(data []byte, at int, name string) []byte {
	head, body := data[at:at+1+sumSize], data[at+1+sumSize:]
	binary.LittleEndian.PutUint32(head[1:], sum(data[:at], name, head[:1], body))
	return data
}

// Sum is the checksum of a value that is not framed, because others have to read or
// compare it.
func Sum(value []byte) uint32 { return crc32.Checksum(value, castagnoli) }

func sum(own []byte, name string, codec, body []byte) uint32 {
	crc := crc32.Update(0, castagnoli, own)
	crc = crc32.Update(crc, castagnoli, []byte(name))
	crc = crc32.Update(crc, castagnoli, codec)
	return crc32.Update(crc, castagnoli, body)
}

// Decode returns what was encoded with own and name; the result shares no memory with
// data. If it is damaged, the error wraps [store.ErrUnreadable]; if this version does
// not know the codec, [store.ErrVersionTooNew].
func (c *Codec) Decode(own []byte, name string, data []byte) ([]byte, error) {
	if len(data) < 1+sumSize {
		return nil, fmt.Errorf("%q is too short: %w", name, errUnreadable)
	}
	codec, stored, body := data[0], binary.LittleEndian.Uint32(data[1:]), data[1+sumSize:]
	matches := func(codec []byte) bool { return sum(own, name, codec, body) == stored }
	switch known := Summed(data); {
	case known && !matches(data[:1]):
		return nil, fmt.Errorf("the checksum of %q does not match: %w", name, errUnreadable)
	case codec == summed:
		return append(make([]byte, 0, len(body)), body...), nil
	case codec == summedBook:
		return c.book.decode(name, body)
	case codec == summedLetters:
		return c.decodeLetters(name, body)
	case known:
		return c.decompress(name, body)
	case codec == none,
		matches([]byte{summed}),
		matches([]byte{summedBook}),
		matches([]byte{summedLetters}),
		matches([]byte{summedZstd}),
		matches([]byte{summedPhrases}):
		return nil, fmt.Errorf("the codec id of %q is not the one it was written with: %w", name, errUnreadable)
	}
	return nil, &store.VersionError{
		What:   fmt.Sprintf("the codec of %q", name),
		Stored: int(codec),
		Known:  int(summedLetters), // the largest one
	}
}

// Summed reports whether data may be a frame of this version.
func Summed(data []byte) bool {
	if len(data) == 0 {
		return false
	}
	switch data[0] {
	case summedBook, summed, summedPhrases, summedZstd, summedLetters:
		return true
	}
	return false
}

func (c *Codec) decompress(name string, body []byte) ([]byte, error) {
	decoder := c.decoder
	if len(body) >= large/4 {
		decoder = c.largeDecoder
	}
	raw, err := decoder.DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("the compressed %q: %w: %w", name, errUnreadable, err)
	}
	if len(raw) == 0 { // valid for zstd, but Encode never writes it
		return nil, fmt.Errorf("the compressed %q has no content: %w", name, errUnreadable)
	}
	return raw, nil
}

// decodeLetters decodes a value in phrases whose bytes are written by their codes.
func (c *Codec) decodeLetters(name string, body []byte) ([]byte, error) {
	var room [mostText * 5 / 4]byte
	block, err := c.letters.decode(name, body, room[:0])
	if err != nil {
		return nil, err
	}
	return c.book.decode(name, block)
}
