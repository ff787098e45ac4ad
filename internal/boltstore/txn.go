package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/store"

	bolt "go.etcd.io/bbolt"
)

const (
	// maxInline is the size in bytes of the largest value that is kept beside the
	// small ones. bbolt rewrites whole pages, of at least four keys: a large
	// neighbour would be written again with every small one.
	maxInline = 3 << 10
	// chunkSize is the size in bytes of the parts of larger values.
	chunkSize = 16 << 10
	// fill is how full a page is left when it is split. Threads grow at their end,
	// so pages that were filled are rarely touched again.
	fill = 0.9
)

// txn is a transaction with its buckets.
type txn struct {
	names, data, chunks, owned, active, children, ledger *bolt.Bucket
	codec                                                *frame.Codec
}

func newTxn(tx *bolt.Tx, codec *frame.Codec) *txn {
	bucket := func(name string) *bolt.Bucket {
		b := tx.Bucket([]byte(name))
		b.FillPercent = fill
		return b
	}
	return &txn{
		names: bucket(bucketNames), data: bucket(bucketData), chunks: bucket(bucketChunks),
		owned: bucket(bucketOwned), active: bucket(bucketActive), children: bucket(bucketChildren),
		ledger: bucket(bucketLedger), codec: codec,
	}
}

// find returns the number of a thread, or false if there is none.
func (t *txn) find(key store.ThreadKey) (uint64, bool) {
	b := t.names.Get(nameKey(key))
	if len(b) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

// thread is find with an error that wraps [store.ErrNotFound].
func (t *txn) thread(key store.ThreadKey) (uint64, error) {
	n, ok := t.find(key)
	if !ok {
		return 0, fmt.Errorf("thread %s: %w", key, store.ErrNotFound)
	}
	return n, nil
}

func (t *txn) hot(thread uint64) (*hot, error) {
	h, err := decodeHot(t.data.Get(sectionKey(thread, sectionHead)))
	if err != nil {
		return nil, fmt.Errorf("the head of thread number %d: %w", thread, err)
	}
	return h, nil
}

// entry is a value in the data bucket: a few bytes of the store's own, and the
// framed value.
type entry struct {
	data []byte
	own  int // how many bytes at the front are the store's
}

func newEntry(codec *frame.Codec, own, raw []byte) entry {
	return entry{data: append(own, codec.Encode(nil, "", raw)...), own: len(own)}
}

// put writes an entry under a key that is not there yet.
func (t *txn) put(key []byte, e entry) error {
	if len(e.data) <= maxInline {
		return t.data.Put(key, e.data)
	}
	if err := t.data.Put(key, e.data[:e.own]); err != nil {
		return err
	}
	rest := e.data[e.own:]
	for i := uint32(0); len(rest) > 0; i++ {
		n := min(len(rest), chunkSize)
		if err := t.chunks.Put(chunkKey(key, i), rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// replace is put for a key that may be there.
func (t *txn) replace(key []byte, e entry) error {
	if err := t.dropChunks(key); err != nil {
		return err
	}
	return t.put(key, e)
}

func (t *txn) delete(key []byte) error {
	if err := t.dropChunks(key); err != nil {
		return err
	}
	return t.data.Delete(key)
}

func (t *txn) dropChunks(key []byte) error {
	for i := uint32(0); ; i++ {
		k := chunkKey(key, i)
		if t.chunks.Get(k) == nil {
			return nil
		}
		if err := t.chunks.Delete(k); err != nil {
			return err
		}
	}
}

// decode returns a copy of the framed value under the key. framed is what
// follows the store's own bytes there; if it is empty, the value is in chunks.
func (t *txn) decode(key, framed []byte) ([]byte, error) {
	if len(framed) > 0 {
		return t.decodeAny(framed)
	}
	var joined []byte
	for i := uint32(0); ; i++ {
		chunk := t.chunks.Get(chunkKey(key, i))
		if chunk == nil {
			return t.decodeAny(joined)
		}
		joined = append(joined, chunk...)
	}
}

// ascend calls f with the entries whose keys have the prefix, from the key
// from on, in order, until f returns false. They are valid only during the
// call.
func ascend(b *bolt.Bucket, prefix, from []byte, f func(k, v []byte) (bool, error)) error {
	c := b.Cursor()
	for k, v := c.Seek(from); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if more, err := f(k, v); err != nil || !more {
			return err
		}
	}
	return nil
}

// descend is ascend backwards, over the keys before the key before.
func descend(b *bolt.Bucket, prefix, before []byte, f func(k, v []byte) (bool, error)) error {
	c := b.Cursor()
	var v []byte
	k, _ := c.Seek(before)
	if k == nil {
		k, v = c.Last()
	} else {
		k, v = c.Prev()
	}
	for ; k != nil && bytes.HasPrefix(k, prefix); k, v = c.Prev() {
		if more, err := f(k, v); err != nil || !more {
			return err
		}
	}
	return nil
}

// decodeAny decodes frames with a checksum, and without.
func (t *txn) decodeAny(framed []byte) ([]byte, error) {
	if frame.Unsummed(framed) {
		return t.codec.DecodeUnsummed("", framed)
	}
	return t.codec.Decode(nil, "", framed)
}
