package loop

import "github.com/holdfast-agents/holdfast/internal/thread"

// What a stream holds in memory while it sends the messages of a path: what is read at a time,
// and for each step its place and its id.
const (
	pieceBytes = 64 << 10
	stepBytes  = 96
)

// heldBy returns what a path and what is read along it hold in memory, in bytes.
func heldBy(path thread.Path) int64 { return pieceBytes + stepBytes*int64(len(path)) }
