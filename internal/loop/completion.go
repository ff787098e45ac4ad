package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
)

// One iteration's answer of the model. complete calls the model through the Model hooks,
// streams each delta into the log as it comes, and, when the answer is complete, commits
// it as messages together with the intents of its calls. Before that commit the answer
// exists in the log only, where it can be taken back: by another try after a failure, by
// a cancel, or by a takeover (supersede.go).

// complete makes one iteration's model call, and tries again while that can help. It
// returns nil once the answer is committed; if it has calls, once that is durable.
func (r *run) complete() error {
	for attempt := 0; ; attempt++ {
		a := &completion{r: r, attempt: attempt, message: r.host.cfg.NewID("msg"), calls: map[int]*callBuilder{}}
		err := a.observed()
		if err == nil {
			return a.commit()
		}
		for _, c := range a.sequence {
			r.st.TakeBack(c.id)
		}
		if r.ctx.Err() != nil {
			// A cancel keeps what people have already read.
			if errors.Is(context.Cause(r.ctx), errCancelled) {
				return errors.Join(errCancelled, a.keepPartial())
			}
			return context.Cause(r.ctx)
		}
		if err := a.retry(err); err != nil {
			return err
		}
	}
}

// retry prepares another try of a model call that failed with err. It returns the error
// if there is to be none.
func (a *completion) retry(err error) error {
	r := a.r
	var ask *holdfast.Interrupt
	if a.shown && errors.As(err, &ask) {
		return holdfast.Errorf(codes.MiddlewareFailed, "A middleware asked a person after the model had begun to answer.").
			WithHint("A Model hook asks before its first delta.").Wrap(errors.New(err.Error())) // no question any more
	}
	var failed *holdfast.ModelError
	if !errors.As(err, &failed) || !failed.Retryable || a.attempt+1 >= r.host.modelTries(r.agent.Name) {
		return err
	}
	wait := a.wait(failed.RetryAfter)
	r.host.cfg.Log.Warn("model call failed, trying again", "thread", r.key.Thread, "run", r.rec.ID,
		"iteration", r.st.Iteration, "attempt", a.attempt, "in", wait, "error", err)
	if a.shown {
		if err := r.supersede("holdfast.retry", map[string]any{"iteration": r.st.Iteration, "attempt": a.attempt + 1}); err != nil {
			return err
		}
		r.stale = r.stale || len(a.thoughts) > 0 && !reasons(r.hist.Path)
	}
	return a.pause(wait)
}

// wait returns how long to wait before another try: as long as the provider asked, at most
// 2 minutes, or a time that doubles with each try.
func (a *completion) wait(asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, 2*time.Minute)
	}
	return min(200*time.Millisecond<<a.attempt, 10*time.Second)
}

// pause waits for d, or until the run ends.
func (a *completion) pause(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-a.r.ctx.Done():
		return context.Cause(a.r.ctx)
	}
}

// request returns what the model is asked.
func (a *completion) request() *holdfast.ModelRequest {
	r := a.r
	req := &holdfast.ModelRequest{
		Thread: r.key.Thread, Run: r.rec.ID, Iteration: r.st.Iteration, Attempt: a.attempt,
		Messages: r.messages[:len(r.messages):len(r.messages)], ForwardedProps: r.rec.ForwardedProps,
	}
	if r.agent.Instructions != "" {
		req.Instructions = append(req.Instructions, r.agent.Instructions)
	}
	r.instruct(req)
	req.Tools = r.box.specs
	for _, t := range r.rec.Tools {
		// A frontend's tool never replaces a server's tool of the same name.
		if _, ours := r.tools[t.Name]; !ours {
			req.Tools = append(req.Tools, holdfast.ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Metadata: t.Metadata})
		}
	}
	return req
}

// instruct adds to a request what the client of this run has to say to the model.
func (r *run) instruct(req *holdfast.ModelRequest) {
	p := &r.agent.Client
	if p.Context != thread.ShowNothing {
		req.Context = r.rec.Context
	}
	if p.Instructions == thread.ShowNothing {
		return
	}
	for _, raw := range r.rec.Instructions {
		m, err := agui.DecodeMessage(raw)
		if err != nil {
			continue
		}
		d, err := m.Domain()
		switch {
		case err != nil:
		case p.Instructions == thread.ShowAsUser:
			req.ClientInstructions = append(req.ClientInstructions, d.PlainText())
		default:
			req.Instructions = append(req.Instructions, d.PlainText())
		}
	}
}

// completion is a model's answer while it streams in.
type completion struct {
	r       *run
	attempt int    // counted from 0
	message string // the assistant message's id
	shown   bool   // something was emitted
	// order is the ids of the messages as they appeared: reasoning and answer.
	order     []string
	text      []byte                       // of the assistant message
	textOpen  bool                         // its text is not ended
	textSeen  bool                         // its text has begun
	reasoning *reasoningBuilder            // the open one; nil if none is
	thoughts  map[string]*reasoningBuilder // all reasoning, by message id
	calls     map[int]*callBuilder         // the last call of each index
	sequence  []*callBuilder               // all calls in order
	finish    holdfast.FinishReason
	usage     *holdfast.Usage
	began     time.Time
	first     time.Duration // time to the first delta; negative before it
}

// observed is stream, reported to the observer.
func (a *completion) observed() error {
	a.began, a.first = a.r.host.cfg.Now(), -1
	err := a.stream()
	a.report(err)
	return err
}

// report tells the observer how the try ended.
func (a *completion) report(err error) {
	a.r.host.cfg.Observer.ModelCalled(a.r.place(), modelResult(a.r.ctx, err), a.first, a.r.host.cfg.Now().Sub(a.began), a.usage)
}

// stream calls the model and receives its deltas to the end. A panic of the model becomes
// an error; a panic of this package passes through.
func (a *completion) stream() (err error) {
	ctx, cancel := context.WithCancel(a.r.inner)
	defer cancel()
	reading := false // while it is true, a panic is this package's own
	defer func() {
		if reading {
			return
		}
		if p := recover(); p != nil {
			err = a.r.chain.ModelPanicked(ctx, p)
		}
	}()
	for d, err := range a.r.chain.CallModel(ctx, a.request()) {
		reading = true
		if over, err := a.receive(&d, err); over || err != nil {
			return err
		}
		reading = false
	}
	if a.r.ctx.Err() != nil {
		return context.Cause(a.r.ctx)
	}
	return &holdfast.ModelError{Kind: failure.Cut, Retryable: true, Public: "The model's answer was cut off.", Err: holdfast.ErrTruncated}
}

// messages returns what has streamed in so far, in the order of appearance, but a message
// with calls is the last: their results must follow it. Without calls it is what a
// cancelled answer leaves behind.
func (a *completion) messages(withCalls bool) []agui.Message {
	order := a.order
	if at := slices.Index(order, a.message); at >= 0 && withCalls && len(a.sequence) > 0 {
		order = append(slices.Delete(slices.Clone(order), at, at+1), a.message)
	}
	var out []agui.Message
	for _, id := range order {
		if b := a.thoughts[id]; b != nil {
			out = append(out, agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.RoleReasoning, Text: string(b.text), EncryptedValue: string(b.secret)}))
			continue
		}
		m := holdfast.Message{ID: id, Role: holdfast.RoleAssistant, Text: string(a.text)}
		if withCalls {
			for _, c := range a.sequence {
				m.Calls = append(m.Calls, holdfast.ToolCall{ID: c.id, Name: c.name, Arguments: json.RawMessage(c.args), EncryptedValue: c.secret})
			}
		} else if !a.textSeen {
			continue
		}
		out = append(out, agui.FromDomain(m))
	}
	return out
}

// commit ends the answer's items and commits, with their end, its messages and the
// intents of its calls. Calls start only once that is durable. Pure calls need no intent,
// because running them again changes nothing.
func (a *completion) commit() error {
	r := a.r
	events := a.ending()
	r.st.AddUsage(a.usage)
	r.st.Calls = a.openCalls()
	r.st.Open, r.st.Question = true, nil
	a.decideCalls()
	answer := a.messages(true)
	if err := r.append(answer, append(events, r.mend(answer)...), journal.Soon, r.putIntents); err != nil {
		return err
	}
	for i := range r.st.Calls {
		if r.st.Calls[i].Frontend {
			r.host.cfg.Observer.ToolCalled(r.place(), r.st.Calls[i].Name, observe.ToolFrontend, 0)
		}
	}
	if len(r.st.Calls) == 0 {
		return nil
	}
	return r.w.Flush(r.ctx)
}

// ending returns what ends the answer's open items. An answer without any content is
// still a message, so that the history does not end in a question.
func (a *completion) ending() []agui.Event {
	var events []agui.Event
	if len(a.sequence) == 0 && !a.textSeen {
		a.appear()
		a.textOpen, a.textSeen = true, true
		events = append(events, agui.TextMessageStart{Base: a.base(), MessageID: a.message, Role: string(holdfast.RoleAssistant)})
	}
	if a.textOpen {
		a.textOpen = false
		events = append(events, agui.TextMessageEnd{Base: a.base(), MessageID: a.message})
	}
	for _, c := range a.sequence {
		if c.secret != "" {
			events = append(events, agui.ReasoningEncryptedValue{Base: a.base(), Subtype: "tool-call", EntityID: c.id, EncryptedValue: c.secret})
		}
		events = append(events, agui.ToolCallEnd{Base: a.base(), ToolCallID: c.id})
	}
	return events
}
