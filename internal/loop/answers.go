package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// resume gives the open calls and the hook's question their answers. The calls start
// again in iterate.
func (b *beginning) resume() {
	answers := map[string]agui.ResumeEntry{}
	for _, a := range b.p.d.Answers {
		answers[a.InterruptID] = a
	}
	if len(answers) > 0 {
		b.st.Answers = map[string]string{}
	}
	b.st.Ending = nil
	if q := b.st.Question; q != nil && !q.Waits() {
		b.st.Question = nil // it was answered before, and the run has ended since
	} else if q.Waits() {
		if a, ok := answers[q.Interrupt.ID]; ok {
			q.Answer = b.answer(a, q.Interrupt)
		}
	}
	for i := range b.st.Calls {
		call := &b.st.Calls[i]
		if call.Waits() {
			a, ok := answers[call.Interrupt.ID]
			if !ok {
				continue
			}
			call.Answer = b.answer(a, call.Interrupt)
			if call.InDoubt && verdictOf(call.Answer).Outcome == answerRunAgain {
				// One answer allows one start: after another crash the call is in doubt again.
				call.InDoubt, call.Interrupt, call.Answer = false, nil, nil
				delete(b.r.doubted, call.ID)
			}
		}
		if !b.r.doubted[call.ID] && call.Given == nil {
			thread.PutIntent(b.c, b.st.CallKey(b.p.Key, b.p.Head.User, call), call, b.r.hist, b.c.Fence, b.cfg.Now())
		}
	}
}

// answer returns a person's answer to a question, and remembers its hash.
func (b *beginning) answer(a agui.ResumeEntry, q *agui.Interrupt) *holdfast.Answer {
	b.st.Answers[a.InterruptID] = decide.AnswerHash(a)
	return &holdfast.Answer{
		InterruptID: a.InterruptID, Reason: q.Reason, Payload: a.Payload, Metadata: a.Metadata, Declined: a.Status == agui.ResumeCancelled,
	}
}
