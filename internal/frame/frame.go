// Package frame puts a one-byte codec id before a value, so that how values are
// compressed can change while old ones stay readable.
package frame

import (
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/klauspost/compress/zstd"
)

// The codec ids. They are in stored data: a number is never used twice.
const (
	plain byte = 0
	zstd1 byte = 1
)

const (
	// worthwhile is the size in bytes above which compressing saves more than it
	// costs.
	worthwhile = 1 << 10
	// maxDecoded bounds what one compressed value may become in memory, in bytes.
	// Larger values are stored plain, because they could not be read back.
	maxDecoded = 64 << 20
)

// errUnreadable: the data is not what Encode wrote.
var errUnreadable = errors.New("unreadable data")

// Codec encodes and decodes values. It may be used concurrently, and is meant
// to be shared: it keeps the compressors' memory.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// New returns a codec. It owns no goroutine and needs no closing.
func New() (*Codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return nil, fmt.Errorf("make a zstd encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxDecoded))
	if err != nil {
		return nil, fmt.Errorf("make a zstd decoder: %w", err)
	}
	return &Codec{encoder: encoder, decoder: decoder}, nil
}

// Encode appends the framed raw to dst and returns the result. What is larger
// than 1 KB and shrinks is compressed.
func (c *Codec) Encode(dst, raw []byte) []byte {
	if len(raw) > worthwhile && len(raw) <= maxDecoded {
		out := c.encoder.EncodeAll(raw, append(dst, zstd1))
		if len(out)-len(dst) <= len(raw) {
			return out
		}
	}
	return append(append(dst, plain), raw...)
}

// Decode returns what was encoded, in memory of its own. A codec that this
// version does not know is an error that wraps [holdfast.ErrVersionTooNew].
func (c *Codec) Decode(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("a value without a codec id: %w", errUnreadable)
	}
	switch body := data[1:]; data[0] {
	case plain:
		return append(make([]byte, 0, len(body)), body...), nil
	case zstd1:
		raw, err := c.decoder.DecodeAll(body, nil)
		if err != nil {
			return nil, fmt.Errorf("a compressed value: %w: %w", errUnreadable, err)
		}
		if len(raw) == 0 { // nothing at all is a valid input of zstd, but not one of ours
			return nil, fmt.Errorf("a compressed value without content: %w", errUnreadable)
		}
		return raw, nil
	default:
		return nil, fmt.Errorf("a value is in codec %d, this version knows codecs up to %d: %w", data[0], zstd1, holdfast.ErrVersionTooNew)
	}
}
