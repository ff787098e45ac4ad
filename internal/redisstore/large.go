package redisstore

import (
	"strconv"

	"github.com/holdfast-agents/holdfast/store"
)

// Entries that are larger than those of usual conversations are written in other ways, so that
// others do not wait for them.

const (
	// largeCommit is the size in bytes from which a commit is sent on a way of its own, one
	// after the other: it takes Redis for milliseconds, and nothing should share a pipeline
	// with it, or wait for several of them. A message counts messageWork bytes more.
	largeCommit = 256 << 10
	messageWork = 512
)

// manyMessages is how many messages a commit may have for each to be compressed with phrases,
// which takes several times as long as without: one caller's 10,000 would take a second of
// the processors that all share.
const manyMessages = 64

// placed returns the arguments of the commit script for a message. In a thread that is not
// there yet it is given as it is stored: the script then makes no texts of its own out of a
// history of thousands.
func placed(c *store.Commit, n int, data []byte) []any {
	if c.Expect != (store.Position{Next: 1}) {
		return []any{c.Messages[n].ID, data}
	}
	place := append(strconv.AppendInt(nil, int64(n), 10), ':')
	return []any{"m:" + c.Messages[n].ID, append(place, data...)}
}

// isLarge reports whether a commit takes Redis much longer than others.
func isLarge(c *store.Commit) bool {
	size := len(c.State) + len(c.Messages)*messageWork
	for i := range c.Messages {
		size += len(c.Messages[i].Data)
	}
	for i := range c.Records {
		size += len(c.Records[i])
	}
	for i := range c.Put {
		size += len(c.Put[i].Data)
	}
	return size >= largeCommit
}
