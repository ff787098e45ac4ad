package thread

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// NotFound says that there is no such thread. It is the same for a thread that does not
// exist and for one that belongs to somebody else.
func NotFound(thread string) *holdfast.Error {
	return holdfast.Errorf(codes.NotFound, "There is no thread %q.", thread).
		WithHint("GET /threads lists yours.")
}

// RunNotFound says that the thread has no such run.
func RunNotFound(thread, run string) *holdfast.Error {
	return holdfast.Errorf(codes.NotFound, "There is no run %q in thread %q.", run, thread).
		WithHint("GET /threads/%s names its last run.", thread)
}

// CheckpointNotFound says that the thread has no such checkpoint, or keeps it no longer.
func CheckpointNotFound(thread, id string) *holdfast.Error {
	return holdfast.Errorf(codes.NotFound, "There is no checkpoint %q in thread %q.", id, thread).
		WithHint("GET /threads/{thread}/checkpoints lists those that are kept.").With("checkpointId", id)
}
