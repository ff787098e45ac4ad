package inspector

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Which of a user's threads ask something is stored nowhere but in their heads, so these are
// looked at, the last active first: a page at a time, and a bounded number for a request.
const (
	headsAtOnce = 100
	maxHeads    = 1000
)

// Questions returns the open questions of the caller's threads, those of the thread that was
// last active first: of about limit threads that were last active before the given time
// (zero: any time).
func (in *Inspector) Questions(
	ctx context.Context, who holdfast.Principal, before time.Time, limit int,
) (*threads.QuestionList, error) {
	list := &threads.QuestionList{Questions: []threads.Question{}}
	asking := 0
	for looked := 0; looked < maxHeads && asking < limit; {
		heads, err := in.cfg.Store.Threads(ctx, who, before, headsAtOnce)
		if err != nil {
			return nil, thread.ReadError(store.ThreadKey{}, err)
		}
		for i := 0; i < len(heads) && asking < limit; i++ {
			open, err := in.questionsOf(ctx, who, &heads[i])
			if err != nil {
				return nil, err
			}
			if list.Questions = append(list.Questions, open...); len(open) > 0 {
				asking++
			}
			looked++
			before = heads[i].UpdatedAt // an unreadable head sorts last within its minute, so this is the minute
			if i == len(heads)-1 && len(heads) < headsAtOnce {
				return list, nil
			}
		}
		if len(heads) == 0 {
			return list, nil
		}
	}
	list.Next = before.UTC()
	return list, nil
}

// questionsOf returns the open questions of a thread. One that is gone, or that cannot be
// read, asks nothing: the list of threads says what is wrong with it.
func (in *Inspector) questionsOf(
	ctx context.Context, who holdfast.Principal, h *store.Head,
) ([]threads.Question, error) {
	if h.Unreadable != nil {
		return nil, nil
	}
	t, err := in.read.Existing(ctx, who, h.Key.Thread)
	switch {
	case err != nil && (thread.Unreadable(err) || holdfast.AsError(err).Code == codes.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case t.State.Status() != threads.StatusInterrupted:
		return nil, nil
	}
	var open []threads.Question
	for _, q := range t.State.Questions() {
		open = append(open, threads.Question{
			Thread: threads.QuestionThread{
				ID:     t.Key.Thread,
				Title:  t.State.Title,
				Agent:  t.State.Agent,
				Hidden: t.State.Hidden,
			},
			Run:       t.State.Run(),
			Interrupt: q,
			AskedAt:   t.Head.UpdatedAt.UTC(),
		})
	}
	return open, nil
}
