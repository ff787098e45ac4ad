package wait

import (
	"bytes"
	"log/slog"
	"sync"
)

// Lines is a log that says when a line with the words was written.
type Lines struct {
	// Found is closed then.
	Found chan struct{}

	words string
	once  sync.Once
}

// NewLines returns a log that looks for the words.
func NewLines(words string) *Lines { return &Lines{Found: make(chan struct{}), words: words} }

// Logger returns what writes to the log.
func (l *Lines) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write implements [io.Writer].
func (l *Lines) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(l.words)) {
		l.once.Do(func() { close(l.Found) })
	}
	return len(p), nil
}
