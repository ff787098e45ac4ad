package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The outcome of a call is saved the moment it exists: a result with its message and its
// changes, a question, or that the call waits for somebody outside.

// save commits what came of a call: its result as a message and a pending write, with the
// record that shows it and the shared state it changed; or the question that it asks.
func (r *run) save(f finished) error {
	var ask *holdfast.Interrupt
	switch {
	case isHandedOut(f.err) && outsideOf(&r.tools, f.call.Name) != nil:
		return saveHandedOut(r, f.call)
	case errors.As(f.err, &ask):
		return r.saveQuestion(f.call, ask)
	case errors.Is(f.err, errFrontend): // the hooks have used the answer
		call := r.st.Call(f.call.ID)
		call.Interrupt, call.Answer = nil, nil
		return nil
	}
	var end *holdfast.EndRun
	switch {
	case errors.As(f.err, &end):
		r.st.Ending = thread.EndingOf(end.Err)
		f.result = holdfast.ToolResult{Text: end.Err.Message, Failed: true} // without the hint, which is for people
	case f.err != nil:
		f.result, f.code = holdfast.ToolResult{Text: r.toolErrorText(f.call, f.err), Failed: true}, codeOf(f.err)
	}
	message := r.host.Config.NewID("msg")
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	change, events, err := r.applyUpdates(&f, message)
	if err != nil {
		r.unchanged(&f, err)
	}
	m := agui.FromDomain(holdfast.Message{
		ID:     message,
		Role:   holdfast.RoleTool,
		CallID: f.call.ID,
		Text:   f.result.Text,
		Parts:  f.result.Parts,
	})
	over := *r.st.Call(f.call.ID)
	if f.result.Failed {
		// The protocol has no field that says that a result is an error's text. A call that has
		// kept something was begun, unless a person says that nothing came of it.
		m.Metadata = thread.FailedMark(f.notRun && (over.Kept == nil || f.code == thread.CodeNotDone), f.code)
	}
	if f.said { // the tool has not
		m.MarkImported()
	}
	// The message says what its event says: clients take the metadata of the event.
	m.Metadata = over.WithFacts(m.Metadata, r.keyOf(&over))
	result := agui.ToolCallResult{
		MessageID:  m.ID,
		ToolCallID: f.call.ID,
		Content:    m.Content,
		Role:       string(holdfast.RoleTool),
	}
	result.Timestamp, result.Metadata = r.now(), m.Metadata
	r.host.OutsideEnded(r.place(), &over)
	r.st.CloseCall(f.call.ID)
	r.results++
	return r.append([]agui.Message{m}, append([]agui.Event{result}, events...), r.when(f.call), func(c *store.Commit) {
		into(r.st, change)(c)
		thread.PutOutsideEnd(c, &over, r.host.Config.Now().Time())
		if f.reused != "" {
			c.Delete = append(c.Delete, store.ValueID{Kind: store.KindReuse, ID: f.reused})
		}
		if r.host.Config.NoPendingWrites && r.repeatable(f.call) {
			return
		}
		r.marks.note(c)
		c.Put = append(c.Put, store.Value{Kind: store.KindPending, ID: f.call.ID,
			Data: thread.MustJSON(thread.PendingWrite{
				Format:      thread.FormatBefore,
				CallID:      f.call.ID,
				Tool:        f.call.Name,
				Message:     m.ID,
				Failed:      f.result.Failed,
				Iteration:   r.st.Iteration,
				CompletedAt: r.host.Config.Now().Time(),
			})})
	})
}

// unchanged says in a call's result why it has not changed the shared state. If the
// agent's schema refuses the change, the result stays as it is otherwise: the tool has done its work.
func (r *run) unchanged(f *finished, err error) {
	text := "The shared state could not be changed: " + r.toolErrorText(f.call, err)
	switch {
	case codeOf(err) != codes.StateInvalid:
		f.result = holdfast.ToolResult{Text: text, Failed: true}
	case f.result.Parts != nil:
		f.result.Parts = append(slices.Clip(f.result.Parts), holdfast.Part{Type: holdfast.PartText, Text: text})
	case f.result.Text == "":
		f.result.Text = text
	default:
		f.result.Text += "\n\n" + text
	}
}

// when returns how soon a call's result is committed: at once, unless its tool is pure, or
// pending writes are off and the call can be run again. The last result of an iteration
// shares a commit with the checkpoint, which follows it if no hook comes between; but one
// that could not be had again waits for nothing.
func (r *run) when(call thread.Call) journal.Urgency {
	switch {
	case r.host.Config.NoPendingWrites && r.repeatable(call):
		return journal.WithNext
	case r.hasEffects(call) && (len(r.st.Calls) > 0 || r.chain.Closes() || !r.repeatable(call)):
		return journal.AtOnce
	default:
		return journal.Soon
	}
}

// repeatable reports whether a call that was cut off is run again.
func (r *run) repeatable(call thread.Call) bool {
	tool, ours := r.tools.Find(call.Name)
	return !ours || !NeverTwice(tool.Spec().Effect)
}

// saveQuestion makes the call wait for a person.
func (r *run) saveQuestion(call thread.Call, ask *holdfast.Interrupt) error {
	c := r.st.Call(call.ID)
	c.Interrupt, c.Answer, c.InDoubt, c.Unknown, c.Repeats = r.interrupt(ask, call.ID), nil, call.InDoubt,
		call.Unknown, false
	c.TellDeclined = ask.TellDeclined
	return r.w.Step(nil, func(c *store.Commit, _ store.Cursor) {
		if !call.InDoubt && !call.Unknown && r.st.Call(call.ID).Kept == nil {
			// The call ended with the question, so it is not in doubt. It starts again with
			// the answer. One that has kept something was begun, and stays so, and so is one of
			// which it is not known what became of it.
			c.Delete = append(c.Delete, store.ValueID{Kind: store.KindIntent, ID: call.ID})
		}
		r.saveState(c)
	})
}

// closeCalls gives every open call the text as its result, without running it. A result that
// has come from outside is not lost.
func (r *run) closeCalls(text string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.inner), cancelGrace)
	defer cancel()
	r.starts.end()
	for len(r.st.Calls) > 0 {
		f := finished{call: r.st.Calls[0]}
		f.result = closingResult(ctx, r, &f.call, text)
		f.notRun = f.call.Waits() && !f.call.InDoubt && !f.call.Unknown || (intents{r}).unstarted(&f.call)
		if err := r.save(f); err != nil {
			return err
		}
	}
	return nil
}

// closingResult returns the result of a call that is closed: what has come for it, or text.
func closingResult(ctx context.Context, r *run, call *thread.Call, text string) holdfast.ToolResult {
	if call.Finished() != nil {
		return passed(ctx, r.agent.Hooks, toolOf(r, call), toolCall(r, call))
	}
	if call.Own != nil && text == thread.TextCancelled {
		return holdfast.ToolResult{Text: thread.TextOwnCancelled, Failed: true}
	}
	return holdfast.ToolResult{Text: call.TextClosed(text, r.host.Config.Now().Time()), Failed: true}
}

// codeOf returns the code of a tool's error; empty if it has none.
func codeOf(err error) string {
	var public *holdfast.Error
	if errors.As(err, &public) {
		return public.Code
	}
	return ""
}

// toolErrorText returns what the model and the stream are shown of an error that a tool, or
// a hook around it, has returned. Of an [holdfast.Error] only its public text is; the text
// of any other is the author's word to the model, unless the agent hides those.
func (r *run) toolErrorText(call thread.Call, err error) string {
	text := call.Name + " failed; the server's log has the cause."
	var public *holdfast.Error
	switch {
	case errors.As(err, &public):
		if public.Message != "" {
			text = public.Message
		}
		if public.Err == nil {
			return text // there is no more to it
		}
	case !r.agent.HideToolErrors || errors.Is(err, holdfast.ErrArguments):
		return err.Error()
	}
	r.log.Warn("a tool failed",
		"tool", call.Name, "thread", r.key.Thread, "run", r.rec.ID, "call", call.ID, "error", err)
	return text
}

// cancelGrace is how long tools get to return after their run is cancelled.
const cancelGrace = time.Second
