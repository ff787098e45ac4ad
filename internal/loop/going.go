package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Models that are agents themselves. Their answer is several messages, and they carry out calls
// of their own between them. Each message is an iteration of the run, with its checkpoint, so
// what is complete stays whatever dies; the model's stream goes on from one iteration to the
// next. The results of the model's own calls come from the stream: this file waits for them, and
// decides about those whose stream is lost.

// endGoing ends the stream, and with it the request, if there is one.
func (l listener) endGoing() {
	r := l.r
	g := r.going
	if g == nil {
		return
	}
	r.going = nil
	g.end()
}

// listener is a run that listens to such a stream. Only the run's goroutine uses it.
type listener struct{ r *run }

// The calls of the model's own.

// ownOpen reports whether there is an open call that the model's side carries out.
func ownOpen(calls []thread.Call) bool {
	return slices.ContainsFunc(calls, func(c thread.Call) bool { return c.Own != nil })
}

// hear takes what came of the calls that the model's side carries out, as long as its stream says
// so. Calls of the server's tools are made when the stream has come to its end.
func (l listener) hear() error {
	r := l.r
	for r.going != nil && len(r.st.Calls) > 0 {
		d, err := r.going.read()
		if err != nil {
			return l.lose(err)
		}
		if err := l.heard(&d); err != nil {
			return err
		}
		if r.going != nil && r.going.ahead != nil {
			break
		}
	}
	return nil
}

// heard takes one delta that came between a message with calls and the next.
func (l listener) heard(d *holdfast.Delta) error {
	r := l.r
	switch {
	case d.Result != nil:
		return l.ownResult(d.Result)
	case d.Beside != "":
		return (besides{r}).takeBeside(json.RawMessage(d.Beside))
	case d.Finish != "":
		r.st.AddUsage(d.Usage)
		l.endGoing()
		return l.closeOwn(agui.TextNotSaid)
	case d.Text == "" && d.Reasoning == "" && d.Call == nil && d.Media == nil:
		return nil
	case !ownOpen(r.st.Calls):
		l.endGoing()
		return &holdfast.ModelError{
			Kind:   failure.Invalid,
			Public: "The agent went on speaking after it had called a tool of this server.",
			Err:    errors.New("an agent's message follows a call whose result it waits for"),
		}
	}
	own := *d
	r.going.ahead = &own
	return l.closeOwn(agui.TextNotSaid)
}

// lose ends a stream that broke off while the model's side carried out calls. Nobody
// knows what became of them; the error is told to the next try of the model.
func (l listener) lose(err error) error {
	r := l.r
	l.endGoing()
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.lost = err
	var ask *holdfast.Interrupt
	if errors.As(err, &ask) {
		return l.closeOwn(agui.TextAsksFirst)
	}
	return nil
}

// ownResult saves a result that the model's stream has. The Tool hooks see it as that of a call
// that is finished.
func (l listener) ownResult(m *holdfast.Message) error {
	r := l.r
	id := m.CallID
	if known, there := r.going.ids[id]; there {
		id = known
	}
	call := r.st.Call(id)
	if call == nil || call.Own == nil {
		return nil
	}
	call.Own.Message = m.ID
	result := holdfast.ToolResult{Text: m.Text, Parts: m.Parts}
	if m.Error != "" {
		result = holdfast.ToolResult{Text: m.Error, Failed: true}
	}
	c := toolCall(r, call)
	c.Finished = true
	spec := holdfast.ToolSpec{Name: call.Name, Effect: call.Own.Effect}
	return r.save(finished{call: *call, result: passed(r.inner, r.chain, resultTool{spec, result}, c)})
}

// closeOwn gives the calls of the model's own that are open the text as their result.
func (l listener) closeOwn(text string) error {
	r := l.r
	for _, call := range slices.Clone(r.st.Calls) {
		if call.Own == nil {
			continue
		}
		f := finished{call: call, result: holdfast.ToolResult{Text: text}}
		if err := r.save(f); err != nil {
			return err
		}
	}
	return nil
}

// ownLost returns what happens to a call of the model's own whose stream is gone, or whose process
// died: it may have been carried out.
func ownLost(call thread.Call) finished {
	failed := func(text string) finished {
		return finished{call: call, result: holdfast.ToolResult{Text: text, Failed: true}}
	}
	switch {
	case call.Own.Effect == holdfast.EffectPure:
		return failed(thread.TextOwnLost)
	case call.Attempts > 1: // a person has said so
		return failed(thread.TextOwnAgain)
	case call.Own.InDoubt == thread.DoubtFail:
		f := failed("")
		f.err = &holdfast.EndRun{Err: holdfast.Errorf(codes.ModelFailed,
			"The agent was lost while it was carrying out %s, which may have taken effect.", call.Name).
			WithHint("Find out whether it has. To go on, %s.", thread.HintEmptyPost)}
		return f
	}
	call.Unknown = true
	return inDoubt(call, holdfast.ToolSpec{InDoubt: call.Own.InDoubt})
}

// The model's side begins calls before their message is complete. Such a message cannot be taken
// back: a call in it may have taken effect already. So the head says what the message would be if
// the stream ended there.

// restore puts what was begun into the history, as a message that is complete.
func (l listener) restore() error {
	r := l.r
	begun := r.st.Begun
	r.st.Begun = nil
	if begun == nil || begun.After != r.st.Leaf { // somebody has said something else since
		return nil
	}
	var messages []agui.Message
	for _, raw := range begun.Messages {
		if m, err := agui.DecodeMessage(raw); err == nil {
			messages = append(messages, m)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	var calls []thread.Call
	if json.Unmarshal(begun.Calls, &calls) != nil {
		return nil
	}
	r.st.Calls, r.st.Open, r.st.More, r.st.Question = calls, true, true, nil
	return r.append(messages, []agui.Event{agui.MessagesRef{Leaf: messages[len(messages)-1].ID}}, journal.AtOnce, nil)
}

// keepsBegun reports whether what a try has begun stands, although it failed.
func (l listener) keepsBegun() bool {
	r := l.r
	return r.st.Begun != nil && (r.ctx.Err() == nil || errors.Is(context.Cause(r.ctx), errCancelled))
}
