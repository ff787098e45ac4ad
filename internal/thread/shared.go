package thread

import (
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// shareUnreadable says that something is damaged that all threads share, such as their lists.
func shareUnreadable(err error) error {
	return holdfast.Errorf(codes.CheckpointUnreadable, sharedText).
		WithHint(sharedHint).
		Wrap(fmt.Errorf("store: %w", err))
}

// NotReady says that a server should not be asked, because something is damaged that all
// threads share: answers would not be complete.
func NotReady(err error) error {
	return holdfast.Errorf(codes.StoreUnavailable, sharedText).WithHint(sharedHint).Wrap(fmt.Errorf("store: %w", err))
}

const (
	sharedText = "A part of the store that all threads share cannot be read; it was left untouched."
	sharedHint = "Operators find out more with: holdfast check. A backup in the store's place mends it; holdfast " +
		"salvage saves what is whole."
)
