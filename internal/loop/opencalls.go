package loop

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The calls of an answer, before any of them starts.

// openCalls returns the answer's calls as the thread's open ones.
func (a *completion) openCalls() []thread.Call {
	r := a.r
	calls := make([]thread.Call, 0, len(a.sequence))
	for i, c := range a.sequence {
		_, ours := r.tools.Find(c.name)
		call := thread.Call{ID: c.id, Name: c.name, Run: r.rec.ID, Frontend: !ours && r.isFrontendTool(c.name)}
		// Arguments that were cut off may be valid JSON, if only the last members are missing.
		if call.Own = c.own; call.Own != nil {
			call.Frontend = false
		}
		cut := a.finish == holdfast.FinishLength || a.finish == holdfast.FinishFilter
		call.Cut = cut && (i == len(a.sequence)-1 || !json.Valid(c.args))
		calls = append(calls, call)
	}
	return calls
}

// decideCalls passes the iteration's calls to the Batch hooks before any of them starts. The
// decisions of hooks are stored with the calls.
func (a *completion) decideCalls() {
	r := a.r
	if len(a.sequence) == 0 || !r.chain.Decides() {
		a.noteRepeats()
		return
	}
	// The model's side carries its own calls out whatever is decided here.
	var list []holdfast.ToolCall
	var places []int
	for i, c := range a.sequence {
		if c.own != nil {
			continue
		}
		places = append(places, i)
		list = append(list, holdfast.ToolCall{
			ID:        c.id,
			Name:      c.name,
			Arguments: json.RawMessage(c.args),
			Key:       r.keyOf(&r.st.Calls[i]),
			Principal: r.principal(),
			Thread:    r.key.Thread,
			Run:       r.rec.ID,
			Iteration: r.st.Iteration,
			State:     r.shared.now().State,
			Frontend:  r.st.Calls[i].Frontend,
		})
	}
	if len(list) == 0 {
		return
	}
	b := holdfast.NewBatch(r.at.Load(), list)
	if err := r.chain.Decide(r.inner, b); err != nil {
		reason := holdfast.AsError(err)
		r.log.Warn("a middleware ends the run",
			"thread", r.key.Thread, "run", r.rec.ID, "iteration", r.st.Iteration, "code", reason.Code, "error", err)
		r.st.Ending = thread.EndingOf(reason)
		for i := range list {
			b.Deny(i, "Not started: "+reason.Message)
		}
	}
	for i, at := range places {
		result, ask := b.Decided(i)
		switch call := &r.st.Calls[at]; {
		case result != nil:
			call.Given = &thread.GivenResult{
				Text:   result.Text,
				Parts:  result.Parts,
				Failed: result.Failed,
				NotRun: result.NotRun,
			}
		case ask != nil && r.startable(call): // nobody is asked about what cannot be started
			call.Interrupt = r.interrupt(ask, call.ID)
		}
	}
	a.noteRepeats()
}

// noteRepeats decides about the answer's calls after a history has branched by itself: a
// call whose result is recorded needs nobody's leave, since it does not run; a different one
// of the same tool asks first.
func (a *completion) noteRepeats() {
	r := a.r
	if len(r.st.Happened) == 0 {
		return
	}
	used := map[string]int{}
	for i, c := range a.sequence {
		call := &r.st.Calls[i]
		happened := r.st.Happened.With(c.name)
		if call.Frontend || len(happened) == 0 || call.Given != nil || !r.startable(call) {
			continue
		}
		hash := thread.CallHash(c.name, string(c.args))
		if used[hash]++; used[hash] <= len(r.recorded[hash]) {
			call.Interrupt = nil
			continue
		}
		if call.Interrupt != nil { // a hook asks already
			note := *call.Interrupt
			note.Message = strings.TrimSpace(note.Message + " " + textAlready(happened))
			call.Interrupt = &note
			continue
		}
		call.Repeats = true
		call.Interrupt = r.interrupt(repeatQuestion(call, c.args, happened), call.ID)
	}
}
