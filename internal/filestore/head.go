package filestore

import (
	"encoding/binary"
	"time"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/store"
)

// head is the part of a thread that every commit rewrites. The State, which may be
// large, is kept apart.
type head struct {
	store.Head        // without Key and State
	messages   uint64 // the number of the last message of the tree
	posted     uint64 // the number of the last inbox item ever posted
	seen       uint64 // the inbox has no items up to this number
	trimmed    uint64 // the log has no records up to this number
}

func (h *head) encode() []byte {
	b := make([]byte, 0, 128)
	b = binary.AppendUvarint(b, h.Next)
	b = binary.AppendUvarint(b, h.messages)
	b = binary.AppendUvarint(b, h.posted)
	b = binary.AppendUvarint(b, h.seen)
	b = binary.AppendUvarint(b, h.trimmed)
	b = binary.AppendVarint(b, h.UpdatedAt.Unix())
	b = binary.AppendUvarint(b, uint64(h.UpdatedAt.Nanosecond()))
	b = binary.AppendUvarint(b, h.Fence.Epoch)
	b = appendName(b, h.Fence.Nonce)
	b = appendName(b, h.Process)
	b = appendName(b, h.ETag)
	b = appendName(b, h.User)
	return binary.LittleEndian.AppendUint32(b, frame.Sum(b))
}

func decodeHead(b []byte) (*head, error) {
	end := len(b) - 4
	if end < 0 || binary.LittleEndian.Uint32(b[end:]) != frame.Sum(b[:end]) {
		return nil, folder.ErrDamaged
	}
	r := reader{b: b[:end]}
	h := &head{
		Head:     store.Head{Next: r.uvarint()},
		messages: r.uvarint(),
		posted:   r.uvarint(),
		seen:     r.uvarint(),
		trimmed:  r.uvarint(),
	}
	seconds := r.varint()
	h.UpdatedAt = time.Unix(seconds, int64(r.uvarint())).UTC()
	h.Fence.Epoch = r.uvarint()
	h.Fence.Nonce = r.name()
	h.Process = r.name()
	h.ETag = r.name()
	h.User = r.name()
	return h, r.err
}

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
		r.b, r.err = nil, folder.ErrDamaged
		return 0
	}
	r.b = r.b[n:]
	return v
}

// before is what r has taken off all.
func (r *reader) before(all []byte) []byte { return all[:len(all)-len(r.b)] }

// name copies what appendName wrote.
func (r *reader) name() string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, folder.ErrDamaged
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
