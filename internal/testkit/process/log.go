package process

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Log keeps what is written to it, a line a call, for those who read it meanwhile. The zero
// Log is empty.
type Log struct {
	// Out gets a copy, unless it is nil.
	Out io.Writer

	mu     sync.Mutex
	lines  []string
	awaits []awaited
}

// awaited is a line that somebody waits for.
type awaited struct {
	is   func(line string) bool
	seen chan struct{}
}

// Write implements [io.Writer].
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := strings.TrimSuffix(string(b), "\n")
	l.lines = append(l.lines, line)
	l.awaits = slices.DeleteFunc(l.awaits, func(a awaited) bool {
		if a.is(line) {
			close(a.seen)
			return true
		}
		return false
	})
	if l.Out == nil {
		return len(b), nil
	}
	return l.Out.Write(b)
}

// Lines returns the lines so far.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// String returns the lines as one text.
func (l *Log) String() string { return strings.Join(append(l.Lines(), ""), "\n") }

// Take returns the lines as one text, and forgets them.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(append(l.lines, ""), "\n")
	l.lines = nil
	return text
}

// Seen returns a channel that is closed once there is such a line.
func (l *Log) Seen(is func(line string) bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := make(chan struct{})
	if slices.ContainsFunc(l.lines, is) {
		close(seen)
	} else {
		l.awaits = append(l.awaits, awaited{is, seen})
	}
	return seen
}

// mortalLog drops what a dead process logs.
type mortalLog struct {
	w    io.Writer
	life life
}

func (l *mortalLog) Write(b []byte) (int, error) {
	if l.life.over() {
		return len(b), nil
	}
	return l.w.Write(b)
}

// withoutTimes removes what differs from test to test.
func withoutTimes(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == "took") {
		return slog.Attr{}
	}
	return a
}
