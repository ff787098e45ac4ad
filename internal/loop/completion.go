package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/prompt"
	"github.com/holdfast-agents/holdfast/observe"
)

// One try of an iteration's model call. It calls the model through the Model hooks,
// streams each delta into the log as it comes, and, when the answer is complete, commits
// it as messages together with the intents of its calls. Before that commit the answer
// exists in the log only, where it can be taken back: by another try after a failure
// (attempts.go), by a cancel, or by a takeover (supersede.go).

// completion is a model's answer while it streams in.
type completion struct {
	r       *run
	attempt int // counted from 0
	// overflows is how often the model has said that the conversation is too long.
	overflows int
	message   string // the assistant message's id
	shown     bool   // something was emitted
	// received is how many bytes have come, and held are those that wait; nil if none do.
	received int
	held     *heldBack
	retake   func() error // takes back what an earlier try has shown
	// order is the ids of the messages as they appeared: reasoning and answer.
	order     []string
	text      []byte                       // of the assistant message
	textOpen  bool                         // its text is not ended
	textSeen  bool                         // its text has begun
	reasoning *reasoningBuilder            // the open one; nil if none is
	thoughts  map[string]*reasoningBuilder // all reasoning, by message id
	calls     map[int]*callBuilder         // the last call of each index
	sequence  []*callBuilder               // all calls in order
	// media are what it has made besides text, mediaBytes their size, and left what of it
	// cannot be shown.
	media      []mediaBuilder
	mediaBytes int
	left       []string
	finish     holdfast.FinishReason
	more       bool            // another message of the answer follows
	mark       json.RawMessage // the assistant message's metadata; nil for most
	usage      *holdfast.Usage
	began      clock.Moment
	first      time.Duration // time to the first delta; negative before it
	prompt     *prompt.Tracker
	chosen     decide.Choice // of the tools
}

// observed is stream, reported to the observer. A call that was not made is not.
func (a *completion) observed(asking *hooks.Asking) error {
	a.began, a.first = clock.Now(), -1
	err := a.stream(hooks.ContextWithAsking(a.r.owner.starting(a.r.inner, "", false), asking))
	if !errors.Is(err, hooks.ErrNotShrunk) {
		a.report(err)
	}
	return err
}

// report tells the observer how the try ended.
func (a *completion) report(err error) {
	a.r.host.Config.Observer.ModelCalled(a.r.place(), modelResult(a.r.ctx, err), a.first, a.began.Ran(), a.usage)
	a.prompted()
}

// stream calls the model and receives its deltas to the end. A panic of the model becomes
// an error; a panic of this package passes through.
func (a *completion) stream(ctx context.Context) (err error) {
	if continues(a.r.models[a.r.model].Model) {
		return a.goOn(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
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
	ctx, a.prompt = prompt.Follow(ctx, a.r.st.Prompt, len(a.r.messages))
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
	return errCutOff()
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
			out = append(out, agui.FromDomain(holdfast.Message{
				ID:             id,
				Role:           holdfast.RoleReasoning,
				Text:           string(b.text),
				EncryptedValue: string(b.secret),
			}))
			continue
		}
		m := holdfast.Message{ID: id, Role: holdfast.RoleAssistant, Text: string(a.text), Metadata: a.mark}
		if withCalls {
			for _, c := range a.sequence {
				m.Calls = append(m.Calls, holdfast.ToolCall{
					ID:             c.id,
					Name:           c.name,
					Arguments:      json.RawMessage(c.args),
					EncryptedValue: c.secret,
				})
			}
		} else if !a.textSeen && len(a.media) == 0 {
			continue
		}
		out = append(append(out, agui.FromDomain(m)), a.activities()...)
	}
	return out
}

// commit ends the answer's items and commits, with their end, its messages and the
// intents of its calls. Calls start only once that is durable, unless all of them are
// pure: those need no intent, and running them again changes nothing, so they start at
// once, and their answer shares a commit with results that come quickly.
func (a *completion) commit() error {
	r := a.r
	events := a.ending()
	r.st.AddUsage(a.usage)
	r.st.Calls = a.openCalls()
	r.st.Open, r.st.Question, r.st.More, r.st.Begun = true, nil, a.more, nil
	a.decideCalls()
	keepTo(a.chosen, r.side, r.st.Calls)
	answer := a.messages(true)
	recorded, shown := growth{r}.recorded(false)
	events = slices.Concat(events, a.shows(answer), r.mend(answer), shown)
	if err := r.append(append(answer, recorded...), events, journal.Soon, intents{r}.put); err != nil {
		return err
	}
	for i := range r.st.Calls {
		if r.st.Calls[i].Frontend {
			r.host.Config.Observer.ToolCalled(r.place(), r.st.Calls[i].Name, observe.ToolFrontend, 0)
		}
	}
	if !slices.ContainsFunc(r.st.Calls, r.hasEffects) {
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
		events = append(events, agui.TextMessageStart{Base: a.base(), MessageID: a.message,
			Role: string(holdfast.RoleAssistant)})
	}
	if a.textOpen {
		a.textOpen = false
		base := a.base()
		base.Metadata = a.mark
		events = append(events, agui.TextMessageEnd{Base: base, MessageID: a.message})
	}
	for _, c := range a.sequence {
		if c.secret != "" {
			events = append(events, agui.ReasoningEncryptedValue{
				Base:           a.base(),
				Subtype:        "tool-call",
				EntityID:       c.id,
				EncryptedValue: c.secret,
			})
		}
		events = append(events, agui.ToolCallEnd{Base: a.base(), ToolCallID: c.id})
	}
	return events
}
