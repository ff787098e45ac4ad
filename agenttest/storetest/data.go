package storetest

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// sizes are around those where a store may change how it treats a value.
func sizes() []int {
	return []int{0, 1, 1023, 1024, 1025, 2048, 3071, 3072, 3073, 4096, 16<<10 - 1, 16 << 10, 16<<10 + 1, 100_000}
}

// noise returns data that does not compress, the same each time.
func noise(size int) []byte {
	b := make([]byte, size)
	x := uint64(size)*2862933555777941757 + 3037000493
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// prose returns data that compresses well.
func prose(size int) []byte {
	const s = "The quick brown fox jumps over the lazy dog. "
	return []byte(strings.Repeat(s, size/len(s)+1)[:size])
}

// fillWith puts a mark into everything that a commit writes.
func fillWith(c *store.Commit, mark string) {
	c.State = []byte(mark)
	c.Records = [][]byte{[]byte(mark)}
	c.Messages = []store.Message{{ID: "m", Data: []byte(mark)}}
	c.Put = []store.Value{{Kind: "k", ID: "v", Data: []byte(mark)}}
}

// filled makes a thread that has everything a thread can have.
func filled(t *testing.T, s store.Store, k store.ThreadKey) *thread {
	th := create(t, s, k, func(c *store.Commit) {
		c.Process = "p"
		c.State = prose(5000)
		c.Records = [][]byte{prose(10), prose(40_000)}
		c.Messages = []store.Message{{ID: "a", Data: prose(10)}, {ID: "b", Parent: "a", Data: noise(40_000)}}
		for _, kind := range append(store.Kinds(), "foreign", "for/eign\x00") {
			c.Put = append(c.Put, store.Value{Kind: kind, ID: "1", Data: prose(10)},
				store.Value{Kind: kind, ID: "2", Data: noise(20_000)})
		}
	})
	th.post("i", "item")
	return th
}
