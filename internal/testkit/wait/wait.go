// Package wait is for tests of what gives no signal: other processes, Redis, the file
// system, threads of somebody else's library. A test that can wait on a signal, or run in a
// bubble of testing/synctest, does that instead.
package wait

import (
	"testing"
	"time"
)

const (
	// Limit is how long a test waits. It only has to be longer than what a busy machine
	// takes, since nobody waits that long for what does come.
	Limit = time.Minute
	often = 2 * time.Millisecond
	// rarely is how long pauses become. A pause is a part of what was waited before, so that it
	// makes no wait longer by much, and asking costs little where it takes long.
	rarely, part = 50 * time.Millisecond, 16
)

// For tries until f succeeds, and fails the test with its last error after [Limit].
func For(t testing.TB, f func() error) {
	t.Helper()
	var err error
	for begun := time.Now(); time.Since(begun) < Limit; time.Sleep(pause(time.Since(begun))) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("waited for %s in vain: %v", Limit, err)
}

// pause returns how long to wait before the next try, after so long.
func pause(waited time.Duration) time.Duration { return min(max(often, waited/part), rarely) }

// Until waits until something is so, and fails the test after [Limit].
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	For(t, func() error {
		if so() {
			return nil
		}
		return missing(what)
	})
}

// missing says what has not come.
type missing string

func (m missing) Error() string { return string(m) }

// Pass lets time pass where time itself is what is tried: how long a process has run before it
// is killed, how slow a network is. It is no way to wait for something.
func Pass(d time.Duration) { time.Sleep(d) }
