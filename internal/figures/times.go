package figures

import (
	"math"
	"time"
)

// Spread is how long something took: half of the times were at most P50, and 95 of 100 at
// most P95, in milliseconds.
type Spread struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	// Count is how many there were.
	Count int64 `json:"count"`
}

// times counts spans of time by their length. The bounds of its buckets grow by a twelfth of
// an octave, so what it says is off by less than 6 %, from 10 µs to a day.
type times struct {
	buckets [buckets]uint32
	count   int64
}

const (
	shortest = 10 * time.Microsecond
	octave   = 12
	buckets  = 34 * octave // 2^33 times the shortest is a day
)

func (t *times) add(d time.Duration) {
	i := 0
	if d > shortest {
		i = min(int(math.Log2(float64(d)/float64(shortest))*octave), buckets-1)
	}
	t.buckets[i]++
	t.count++
}

// spread returns nil if nothing was added.
func (t *times) spread() *Spread {
	if t.count == 0 {
		return nil
	}
	return &Spread{P50: t.below(0.50), P95: t.below(0.95), Count: t.count}
}

// below returns what a share of the times does not exceed, in milliseconds: the middle of the
// bucket in which the last of them is.
func (t *times) below(share float64) float64 {
	rank := max(int64(math.Ceil(share*float64(t.count))), 1)
	i := 0
	for seen := int64(t.buckets[0]); seen < rank; seen += int64(t.buckets[i]) {
		i++
	}
	ms := float64(shortest) / float64(time.Millisecond) * math.Exp2((float64(i)+0.5)/octave)
	return math.Round(ms*100) / 100
}
