package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The labels with which tools and hooks mark the next checkpoint. They run on other goroutines
// than the run's, so a label waits here; each commit of the state has those that wait, and the
// next checkpoint takes them.

type labels struct {
	mu      sync.Mutex
	waiting []string
	closed  bool
}

// begin takes over the label that the last owner of the run has stored and not used.
func (l *labels) begin(marked string) {
	if marked != "" {
		l.waiting = []string{marked}
	}
}

// add implements [holdfast.Mark]. For a tool that outlives its run it returns an error.
func (l *labels) add(_ context.Context, label string) error {
	if label == "" {
		return holdfast.Errorf(codes.InvalidInput, "A mark needs a label.")
	}
	if err := thread.CheckLabel(label); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return fmt.Errorf("mark %q: %w", label, journal.ErrClosed)
	case slices.Contains(l.waiting, label):
		return nil
	}
	more := append(slices.Clip(l.waiting), label)
	if _, fits := thread.JoinLabels(more); !fits {
		return holdfast.Errorf(codes.InvalidInput, "The next checkpoint has too many labels to take another one.")
	}
	l.waiting = more
	return nil
}

// joined returns the label of the next checkpoint.
func (l *labels) joined() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	label, _ := thread.JoinLabels(l.waiting)
	return label
}

// take returns it for the checkpoint that gets it. After the last one nothing can be marked.
func (l *labels) take(last bool) string {
	label := l.joined()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, l.closed = nil, l.closed || last
	return label
}
