package http

import (
	"context"
	"iter"
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/tanstack"
	"github.com/holdfast-agents/holdfast/threads"
)

// A client that has watched a run, or comes back later, is told what the thread waits for, in its own words.

// Reloads finds what pages ask for that were loaded again.
type Reloads interface {
	// Conversation returns what a page shows of a thread, with the messages that wait for the results of calls.
	Conversation(ctx context.Context, who holdfast.Principal, thread string) (
		*threads.Info, iter.Seq2[[]byte, error], error)
	// ThreadOf returns the caller's thread that runs the run, or whose last run it was.
	ThreadOf(ctx context.Context, who holdfast.Principal, run string) (string, error)
}

// forTanStack returns a reply whose end says what the run has left open as the client knows it.
func forTanStack(ctx context.Context, reloads Reloads, who holdfast.Principal, reply *agui.Reply) *agui.Reply {
	if reply == nil || reply.Side {
		return reply
	}
	return tanstack.Encode(reply, func() (*tanstack.Open, error) {
		info, history, err := reloads.Conversation(ctx, who, reply.ThreadID)
		if err != nil {
			return nil, err
		}
		return openOf(info, history), nil
	})
}

// postedByTanStack reports whether a run was posted by the client of TanStack AI, which repeats its id in a header.
func postedByTanStack(r *http.Request, run string) bool {
	return r.Header.Get(tanstack.HeaderRun) == run
}

// openOf returns what a thread waits for.
func openOf(info *threads.Info, history iter.Seq2[[]byte, error]) *tanstack.Open {
	o := &tanstack.Open{Run: info.Run, Calls: info.PendingToolCalls, History: history}
	for i := range info.Interrupts {
		q := &info.Interrupts[i]
		o.Questions = append(o.Questions, agui.Interrupt{
			ID:             q.ID,
			Reason:         q.Reason,
			Message:        q.Message,
			ToolCallID:     q.ToolCallID,
			ResponseSchema: q.ResponseSchema,
			ExpiresAt:      q.ExpiresAt,
			Metadata:       q.Metadata,
		})
	}
	return o
}
