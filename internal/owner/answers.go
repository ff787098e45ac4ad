package owner

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// resume gives the open calls and the hook's question their answers. The calls start
// again in iterate.
func (b *beginning) resume(ctx context.Context) error {
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
	edits := map[string]json.RawMessage{}
	for i := range b.st.Calls {
		call := &b.st.Calls[i]
		if call.Waits() {
			a, ok := answers[call.Interrupt.ID]
			if !ok {
				continue
			}
			call.Answer = b.answer(a, call.Interrupt)
			if edited := decide.EditedArguments(call.Answer.Payload, call.Interrupt); edited != nil &&
				!call.Answer.Declined && b.changes(call, edited) {
				edits[call.ID], call.Edited, call.Kept = edited, thread.CallHash(call.Name, string(edited)),
					nil // it is another call now
				call.Attempts = 0
				delete(b.r.Doubted, call.ID)
			}
			if call.InDoubt && loop.RunsAgain(call.Answer) {
				// One answer allows one start: after another crash the call is in doubt again.
				call.InDoubt, call.Unknown, call.Kept, call.Interrupt, call.Answer = false, false, nil, nil, nil
				call.StartAgain()
				delete(b.r.Doubted, call.ID)
			}
		}
	}
	if err := (sharing{b}).share(ctx); err != nil {
		return err
	}
	if err := b.edit(ctx, edits); err != nil {
		return err
	}
	for i := range b.st.Calls {
		if call := &b.st.Calls[i]; !call.Waits() && !call.WaitsOutside() && !b.r.Doubted[call.ID] && call.Given == nil {
			b.p.box.Intend(b.c, b.st.CallKey(b.p.Key, b.p.Head.User, call), call, b.r.History,
				thread.Intent{Fence: b.c.Fence, At: b.cfg.Now().Time()})
		}
	}
	return nil
}

// changes reports whether edited arguments say something else than the model's.
func (b *beginning) changes(call *thread.Call, edited json.RawMessage) bool {
	return thread.CallHash(call.Name, string(edited)) != thread.CallHash(call.Name, b.r.History.Arguments(call.ID))
}

// edit puts the arguments that a person has chosen in the place of the model's. Messages
// never change, so the message that makes the calls, and the results that follow it, go on
// as copies; the one that the model wrote stays in the tree. The snapshot that a resume
// begins with shows the copies.
func (b *beginning) edit(ctx context.Context, edits map[string]json.RawMessage) error {
	path := b.r.History.Path
	at := slices.IndexFunc(path, func(m agui.Message) bool {
		return slices.ContainsFunc(m.ToolCalls, func(c agui.ToolCall) bool { return edits[c.ID] != nil })
	})
	if at < 0 {
		return nil
	}
	parent := ""
	if at > 0 {
		parent = path[at-1].ID
	}
	b.leaveTo(parent)
	after := b.read.SharedAfter(ctx, b.p.Key)
	for i := at; i < len(path); i++ {
		m := path[i]
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for j := range m.ToolCalls {
			if edited := edits[m.ToolCalls[j].ID]; edited != nil {
				m.ToolCalls[j].Function.Arguments = string(edited)
				m.MarkEdited()
			}
		}
		was := m.ID
		m.ID = b.cfg.NewID("msg")
		b.add(m)
		shared, changed, err := after(was)
		if err != nil {
			return err
		}
		if changed {
			b.c.Put = append(b.c.Put, store.Value{Kind: store.KindBlob, ID: thread.SharedAfter(m.ID), Data: shared})
		}
	}
	return nil
}

// answer returns a person's answer to a question, and remembers its hash.
func (b *beginning) answer(a agui.ResumeEntry, q *agui.Interrupt) *holdfast.Answer {
	b.st.Answers[a.InterruptID] = decide.AnswerHash(a)
	return &holdfast.Answer{
		InterruptID: a.InterruptID,
		Reason:      q.Reason,
		Payload:     decide.PayloadOf(a, q),
		Metadata:    a.Metadata,
		Declined:    a.Status == agui.ResumeCancelled,
	}
}
