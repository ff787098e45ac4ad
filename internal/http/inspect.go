package http

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/threads"
)

// Inspect shows what is inside threads.
type Inspect interface {
	// Work returns what is under way on a thread and in no checkpoint yet.
	Work(ctx context.Context, who holdfast.Principal, thread string) (*threads.Work, error)
	// Calls returns the tool calls of a run or, if run is empty, of up to limit runs of the
	// thread: those before the given one (empty: the newest).
	Calls(ctx context.Context, who holdfast.Principal, thread, run, before string, limit int) (*threads.CallList, error)
	// Usage returns what all runs of a thread have used.
	Usage(ctx context.Context, who holdfast.Principal, thread string) (*threads.ThreadUsage, error)
	// Questions returns the open questions of about limit of the caller's threads that were
	// last active before the given time (zero: any time).
	Questions(ctx context.Context, who holdfast.Principal, before time.Time, limit int) (*threads.QuestionList, error)
}
