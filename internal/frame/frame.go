// Package frame puts a one-byte codec id before each value, so that the compression can
// change while old values stay readable.
package frame

import (
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/klauspost/compress/zstd"
)

// The codec ids. They are part of stored data, so a number is never used again.
const (
	plain byte = 0
	zstd1 byte = 1
)

const (
	// worthwhile is the size, in bytes, above which compression saves more than it costs.
	worthwhile = 1 << 10
	// maxDecoded bounds the size, in bytes, of a value that was compressed. Larger values
	// are stored plain, because Decode would refuse them.
	maxDecoded = 64 << 20
)

// errUnreadable means that the data is not what Encode wrote.
var errUnreadable = errors.New("unreadable data")

// Codec encodes and decodes values. It may be used concurrently and should be shared,
// because it keeps the compressors' memory.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// New returns a codec. It starts no goroutine and need not be closed.
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

// Encode appends the frame of raw to dst and returns the result. Data of more than 1 KB
// is compressed if that makes it smaller.
func (c *Codec) Encode(dst, raw []byte) []byte {
	if len(raw) > worthwhile && len(raw) <= maxDecoded {
		out := c.encoder.EncodeAll(raw, append(dst, zstd1))
		if len(out)-len(dst) <= len(raw) {
			return out
		}
	}
	return append(append(dst, plain), raw...)
}

// Decode returns what was encoded; the result shares no memory with data. If this version
// does not know the codec, the error wraps [store.ErrVersionTooNew].
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
		if len(raw) == 0 { // valid for zstd, but Encode never writes it
			return nil, fmt.Errorf("a compressed value without content: %w", errUnreadable)
		}
		return raw, nil
	default:
		return nil, fmt.Errorf("a value is in codec %d, and this version knows only those up to %d: %w", data[0], zstd1, store.ErrVersionTooNew)
	}
}
