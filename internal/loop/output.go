package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Answers in a form: if the agent has an Output, the answer that ends a run must be JSON that
// fits its schema. One that does not fit is taken back like one that broke off, and the model
// is asked once more: the same request, with that answer and what is wrong with it at its end.
// The state stores the steps in between, so a takeover asks the same. An answer that is wrong
// again is kept and marked, and ends the run with an error; a run that continues there shows
// the model both.

// misfit is what is wrong with an answer.
type misfit struct {
	// errors are for the model.
	errors []string
	// final is the error of an answer that asking again cannot help; nil for most.
	final *holdfast.Error
}

// misfit returns what is wrong with the form of the answer; nil if nothing is. While tools
// are called it has none.
func (a *completion) misfit() *misfit {
	f := a.r.agent.Form
	if f == nil || len(a.sequence) > 0 || a.more {
		return nil
	}
	// An answer that has come is judged, also if the run is cancelled meanwhile.
	errors, err := f.Compiled.Violations(context.WithoutCancel(a.r.ctx), a.text)
	if err != nil {
		errors = []string{fmt.Sprintf("it cannot be checked against the schema of %q: %v", f.Name, err)}
	}
	switch {
	case len(errors) == 0:
		return nil
	case a.finish == holdfast.FinishLength:
		return &misfit{
			errors,
			holdfast.Errorf(codes.OutputCut,
				"The model's length limit cut its answer off before its JSON was complete.").
				WithHint("Raise the limit (max_tokens or its like, in the agent's params), or ask for less. The "+
					"answer is kept; to ask again, %s.", thread.HintEmptyPost),
		}
	case a.finish == holdfast.FinishFilter:
		return &misfit{
			errors,
			holdfast.Errorf(codes.OutputInvalid,
				"The model, or its provider's filter, declined to answer in the form that this agent's answers have.").
				WithHint("The answer that came instead is kept. To ask again, %s.", thread.HintEmptyPost),
		}
	}
	return &misfit{errors: errors}
}

// settle commits the answer, unless the model is to be asked once more: then it returns
// false.
func (a *completion) settle() (bool, error) {
	wrong := a.misfit()
	switch {
	case wrong == nil:
		if f := a.r.agent.Form; f != nil && len(a.sequence) == 0 {
			a.r.st.Output = a.message
		}
	case wrong.final == nil && a.r.st.Misfit == nil:
		return false, a.askAgain(wrong)
	default:
		a.endWith(wrong)
	}
	a.r.st.Misfit = nil
	return true, a.commit()
}

// askAgain takes the answer back and notes it, so that the next request has it.
func (a *completion) askAgain(wrong *misfit) error {
	r := a.r
	r.log.Warn("the model's answer does not have its form, asking again",
		"thread", r.key.Thread, "run", r.rec.ID, "iteration", r.st.Iteration, "attempt", a.attempt,
		"errors", wrong.errors)
	r.st.AddUsage(a.usage)
	r.st.Misfit = thread.NewMisfit(string(a.text), wrong.errors)
	if err := r.supersede("holdfast.output_retry",
		map[string]any{"iteration": r.st.Iteration, "attempt": a.attempt + 1, "errors": wrong.errors}); err != nil {
		return err
	}
	r.stale = r.stale || len(a.thoughts) > 0 && !reasons(r.hist.Path)
	return nil
}

// endWith has the run end with an error once the answer is committed, which is kept with a
// mark.
func (a *completion) endWith(wrong *misfit) {
	err := wrong.final
	if err == nil {
		err = holdfast.Errorf(codes.OutputInvalid,
			"The model's answer does not have the form that this agent's answers have: %s.",
			strings.Join(wrong.errors, "; ")).
			WithHint("It was asked twice. The answer is kept; to ask again, %s.", thread.HintEmptyPost)
	}
	a.mark = thread.MisfitMark(wrong.errors)
	a.r.st.Ending = thread.EndingOf(err)
}

// resultOf returns the answer that is the result of a run that ends; nil if there is none.
func resultOf(h *thread.History, answer string, end *conclusion) json.RawMessage {
	at, there := h.Index[answer]
	if !there || end.shown.Type != agui.OutcomeSuccess || len(end.shown.PendingToolCallIDs) > 0 {
		return nil
	}
	return thread.ResultOf(&h.Path[at])
}

// keepPartial commits the text of a cancelled answer, marked as partial: what people have
// read is not taken away. Calls that were still being written never happened.
func (a *completion) keepPartial() error {
	r := a.r
	r.st.Misfit = nil
	if err := r.w.CloseOpen(); err != nil {
		return err
	}
	kept := a.messages(false)
	for i := range kept {
		if kept[i].Role != string(holdfast.RoleActivity) { // what it shows is whole
			kept[i].Metadata = json.RawMessage(`{"holdfast":{"partial":true}}`)
		}
	}
	if err := r.append(kept, a.shows(kept), journal.Soon, nil); err != nil {
		return err
	}
	if len(a.sequence)+len(kept) == 0 {
		return nil
	}
	// The snapshot shows the mark, and removes calls that were still being written.
	return r.w.Step([]agui.Event{agui.MessagesRef{Leaf: r.st.Leaf}}, func(c *store.Commit, last store.Cursor) {
		r.st.Boundary, r.st.Steps = last, r.w.OpenSteps()
		r.saveState(c)
	})
}
