// Package ids makes the ids that the server chooses: of runs, messages, forks and commits.
package ids

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"
)

// New returns a function that makes ids whose prefix says what they identify. They are
// ordered by time, so that a store appends them next to each other. Without a prefix an id
// is entirely random, for fences.
func New(now func() time.Time) func(prefix string) string {
	return func(prefix string) string {
		random := strings.ToLower(rand.Text())
		if prefix == "" {
			return random[:16]
		}
		id := strconv.FormatInt(now().UnixMilli(), 32)
		return prefix + "_" + id + random[:10]
	}
}
