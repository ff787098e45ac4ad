package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// From the deltas of a model to events: this file takes an answer apart as it arrives,
// opens and closes the messages, reasoning and calls that clients see, and collects what
// the iteration needs of it: the text, the reasoning and the calls.

// receive takes one delta of the model, or its error. It reports whether it was the last.
func (a *completion) receive(d *holdfast.Delta, err error) (bool, error) {
	if err != nil {
		return true, err
	}
	if a.r.ctx.Err() != nil { // a model may be slow to notice
		return true, context.Cause(a.r.ctx)
	}
	if a.first < 0 {
		a.first = a.began.Ran()
	}
	if d.Usage != nil {
		a.usage = d.Usage
	}
	if a.received += bytesOf(d); a.held.holds(d, a.received) {
		return false, nil
	}
	if err := a.showHeld(); err != nil {
		return true, err
	}
	if err := a.show(d); err != nil {
		return true, err
	}
	if d.Finish == "" && !d.More {
		return false, nil
	}
	a.finish, a.more = d.Finish, d.More
	return true, a.endReasoning()
}

// showHeld takes back what an earlier try has shown, and shows what waits instead.
func (a *completion) showHeld() error {
	held := a.held
	a.held = nil
	if held == nil {
		return nil
	}
	if err := a.retake(); err != nil {
		return err
	}
	for _, d := range held.release() {
		if err := a.show(&d); err != nil {
			return err
		}
	}
	return nil
}

// show takes a delta that is not held back. Activities of hooks come before the answer.
func (a *completion) show(d *holdfast.Delta) error {
	if !a.shown {
		if err := (growth{a.r}).addRecorded(); err != nil {
			return err
		}
	}
	return a.take(d)
}

// take adds what a delta holds to the answer.
func (a *completion) take(d *holdfast.Delta) error {
	if d.MessageID != "" {
		a.mark = agui.RemoteMark(d.MessageID)
	}
	if d.Beside != "" && a.r.going != nil {
		if err := (besides{a.r}).takeBeside(json.RawMessage(d.Beside)); err != nil {
			return err
		}
	}
	if d.Reasoning != "" || d.ReasoningSecret != "" {
		if err := a.takeReasoning(d); err != nil {
			return err
		}
	}
	if d.Text != "" {
		if err := a.takeText(d.Text); err != nil {
			return err
		}
	}
	if d.Media != nil {
		a.takeMedia(d.Media)
	}
	if d.Call != nil {
		return a.takeCall(d.Call)
	}
	return nil
}

// emit adds an event to the log, after which there is something to take back.
func (a *completion) emit(ev agui.Event) error {
	a.shown = true
	return a.r.w.Add([]agui.Event{ev}, journal.WithWords, nil)
}

// base returns what all events of the answer have: the time.
func (a *completion) base() agui.Base { return agui.Base{Timestamp: a.r.now()} }

// takeReasoning continues the open reasoning, or begins another.
func (a *completion) takeReasoning(d *holdfast.Delta) error {
	if a.reasoning == nil {
		if err := a.endText(); err != nil {
			return err
		}
		b := &reasoningBuilder{id: a.r.host.Config.NewID("msg")}
		a.reasoning = b
		a.order = append(a.order, b.id)
		if a.thoughts == nil {
			a.thoughts = map[string]*reasoningBuilder{}
		}
		a.thoughts[b.id] = b
		if err := a.emit(agui.ReasoningStart{Base: a.base(), MessageID: b.id}); err != nil {
			return err
		}
		if err := a.emit(agui.ReasoningMessageStart{Base: a.base(), MessageID: b.id}); err != nil {
			return err
		}
	}
	b := a.reasoning
	if d.ReasoningSecret != "" {
		b.secret = append(b.secret, d.ReasoningSecret...)
	}
	if d.Reasoning == "" {
		return nil
	}
	b.text = append(b.text, d.Reasoning...)
	return a.r.w.Delta(a.r.ctx, agui.TypeReasoningMessageContent, b.id, d.Reasoning)
}

// endReasoning ends the open reasoning, if there is any.
func (a *completion) endReasoning() error {
	b := a.reasoning
	if b == nil {
		return nil
	}
	a.reasoning = nil
	if err := a.emit(agui.ReasoningMessageEnd{Base: a.base(), MessageID: b.id}); err != nil {
		return err
	}
	if len(b.secret) > 0 {
		ev := agui.ReasoningEncryptedValue{
			Base:           a.base(),
			Subtype:        "message",
			EntityID:       b.id,
			EncryptedValue: string(b.secret),
		}
		if err := a.emit(ev); err != nil {
			return err
		}
	}
	return a.emit(agui.ReasoningEnd{Base: a.base(), MessageID: b.id})
}

// appear notes that the assistant message is now on the screen.
func (a *completion) appear() {
	if !slices.Contains(a.order, a.message) {
		a.order = append(a.order, a.message)
	}
}

// takeText continues the assistant message's text.
func (a *completion) takeText(text string) error {
	if err := a.endReasoning(); err != nil {
		return err
	}
	if !a.textOpen {
		a.appear()
		a.textOpen, a.textSeen = true, true
		if err := a.emit(agui.TextMessageStart{Base: a.base(), MessageID: a.message,
			Role: string(holdfast.RoleAssistant)}); err != nil {
			return err
		}
	}
	a.text = append(a.text, text...)
	return a.r.w.Delta(a.r.ctx, agui.TypeTextMessageContent, a.message, text)
}

// endText ends the text, if it is open.
func (a *completion) endText() error {
	if !a.textOpen {
		return nil
	}
	a.textOpen = false
	return a.emit(agui.TextMessageEnd{Base: a.base(), MessageID: a.message})
}

// takeCall continues a call. Providers interleave the pieces of parallel calls by index,
// and some use an index again for another call.
func (a *completion) takeCall(d *holdfast.CallDelta) error {
	if err := a.endReasoning(); err != nil {
		return err
	}
	b := a.calls[d.Index]
	if b == nil || (d.ID != "" && b.given != "" && d.ID != b.given) {
		if d.Name == "" {
			return &holdfast.ModelError{
				Retryable: true,
				Public:    "The model made a tool call without a name.",
				Kind:      failure.Cut,
				Err:       errNamelessCall,
			}
		}
		if err := a.endText(); err != nil {
			return err
		}
		a.appear()
		b = &callBuilder{given: d.ID, id: d.ID, name: d.Name, predicted: a.predictedBy(d.Name)}
		// An id that was used in the thread before (providers repeat call_0), or that would
		// be refused from a client, is replaced by a new one before anybody sees it.
		if a.r.hist.Calls[b.id] || a.r.st.Used(b.id) || agui.CheckID("id", b.id) != nil {
			b.id = a.r.host.Config.NewID("call")
		}
		a.r.hist.Calls[b.id] = true
		a.calls[d.Index] = b
		a.sequence = append(a.sequence, b)
		if err := a.tellPredictions(b); err != nil {
			return err
		}
		ev := agui.ToolCallStart{Base: a.base(), ToolCallID: b.id, ToolCallName: b.name, ParentMessageID: a.message}
		if err := a.emit(ev); err != nil {
			return err
		}
	}
	if d.EncryptedValue != "" {
		b.secret = d.EncryptedValue
	}
	if d.Arguments != "" {
		b.args = append(b.args, d.Arguments...)
		if err := a.r.w.Delta(a.r.ctx, agui.TypeToolCallArgs, b.id, d.Arguments); err != nil {
			return err
		}
		if err := a.predict(b); err != nil {
			return err
		}
	}
	return a.takeOwn(b, d.Own)
}

// takeOwn notes that the model's side carries a call out itself, from now on.
func (a *completion) takeOwn(b *callBuilder, own *holdfast.ToolSpec) error {
	if own == nil || a.r.going == nil {
		return nil
	}
	b.own = &thread.OwnCall{Effect: own.Effect, InDoubt: own.InDoubt}
	a.r.going.ids[b.given] = b.id
	if own.Effect == holdfast.EffectPure {
		return nil
	}
	return a.noteBegun()
}

// errNamelessCall is the cause of a model error: a call cannot be shown without its name.
var errNamelessCall = errors.New("a tool call begins without a name")

// reasoningBuilder is one reasoning message while it streams in.
type reasoningBuilder struct {
	id     string
	text   []byte
	secret []byte
}

// callBuilder is one tool call while it streams in.
type callBuilder struct {
	given string // the provider's id
	id    string // the id in the thread
	name  string
	args  []byte // JSON, possibly cut off
	// secret is the provider's opaque value.
	secret string
	// predicted is what it predicts of the shared state; nil if nothing.
	predicted *prediction
	// own is set once the model's side carries the call out.
	own *thread.OwnCall
}
