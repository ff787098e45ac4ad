package clock

import (
	"crypto/rand"
	"strconv"
)

// NewIDs returns a function that makes the ids that the server chooses: of runs, messages,
// forks and commits. Their prefix says what they identify. They are ordered by time, so that
// a store appends them next to each other. Without a prefix an id is entirely random, for
// fences.
func NewIDs(now Shared) func(prefix string) string {
	return func(prefix string) string {
		var room [64]byte
		if prefix == "" {
			return string(random(room[:0], 16))
		}
		id := append(append(room[:0], prefix...), '_')
		id = strconv.AppendInt(id, now().UnixMilli(), 32)
		return string(random(id, 10))
	}
}

// random appends n letters and digits, of five random bits each.
func random(id []byte, n int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	start := len(id)
	id = append(id, make([]byte, n)...)
	_, _ = rand.Read(id[start:]) // it never fails
	for i := start; i < len(id); i++ {
		id[i] = letters[id[i]%32]
	}
	return id
}
