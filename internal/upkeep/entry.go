package upkeep

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// inList returns what a list has of a thread that was not read: nil if it is not there, or somebody
// else's. One that cannot be read is listed too.
func inList(h *store.Head, err error) (*threads.Info, error) {
	err = thread.ReadError(h.Key, err)
	pub := holdfast.AsError(err)
	switch {
	case pub.Code == codes.NotFound:
		return nil, nil
	case !thread.Unreadable(err):
		return nil, err
	}
	return &threads.Info{
		ID:        h.Key.Thread,
		Status:    threads.StatusUnreadable,
		Code:      pub.Code,
		Text:      agui.FullText(pub),
		UpdatedAt: h.UpdatedAt,
		ETag:      thread.PublicETag(h.ETag),
	}, nil
}
