package boltstore

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// hot is the part of a thread that every commit rewrites; the State, which may
// be large, is kept apart.
type hot struct {
	store.Head        // without Key and State
	messages   uint64 // in the thread's tree
	posted     uint64 // the number of the last inbox item ever posted
}

func (h *hot) encode() []byte {
	b := make([]byte, 0, 128)
	b = binary.AppendUvarint(b, h.Next)
	b = binary.AppendUvarint(b, h.messages)
	b = binary.AppendUvarint(b, h.posted)
	b = binary.AppendVarint(b, h.UpdatedAt.Unix())
	b = binary.AppendUvarint(b, uint64(h.UpdatedAt.Nanosecond()))
	b = binary.AppendUvarint(b, h.Fence.Epoch)
	b = appendName(b, h.Fence.Nonce)
	b = appendName(b, h.Process)
	b = appendName(b, h.ETag)
	return appendName(b, h.User)
}

func decodeHot(b []byte) (*hot, error) {
	r := reader{b: b}
	h := &hot{Head: store.Head{Next: r.uvarint()}, messages: r.uvarint(), posted: r.uvarint()}
	seconds := r.varint()
	h.UpdatedAt = time.Unix(seconds, int64(r.uvarint())).UTC()
	h.Fence.Epoch = r.uvarint()
	h.Fence.Nonce = r.name()
	h.Process = r.name()
	h.ETag = r.name()
	h.User = r.name()
	return h, r.err
}

// errDamaged: the file does not hold what this package writes.
var errDamaged = errors.New("the store's file is damaged")

// reader takes values off the front of b. After the first failure it returns
// zeros and err is set.
type reader struct {
	b   []byte
	err error
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	return took(r, v, n)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	return took(r, v, n)
}

func took[T int64 | uint64](r *reader, v T, n int) T {
	if n <= 0 {
		r.b, r.err = nil, errDamaged
		return 0
	}
	r.b = r.b[n:]
	return v
}

// name copies what appendName wrote.
func (r *reader) name() string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, errDamaged
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
