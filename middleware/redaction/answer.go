package redaction

import (
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// answerStream hides secrets in a model's answer.
type answerStream struct {
	text, reasoning textStream
	// calls has the arguments of the calls by index; if it is nil they are passed on
	// unchanged.
	calls map[int]*textStream
	yield func(holdfast.Delta, error) bool
}

// pass passes on a delta with whatever can be released. Text that is held back is released
// before something of another kind follows it. It returns false when the reader wants no more.
func (s *answerStream) pass(d holdfast.Delta) bool {
	if s.calls != nil && d.Call != nil && (d.Finish != "" || d.More) { // the rest of the call comes before its end
		end := holdfast.Delta{Usage: d.Usage, Finish: d.Finish, More: d.More}
		d.Usage, d.Finish, d.More = nil, "", false
		return s.pass(d) && s.pass(end)
	}
	if d.Reasoning != "" || d.ReasoningSecret != "" {
		if rest := s.text.flush(); rest != "" && !s.yield(holdfast.Delta{Text: rest}, nil) {
			return false
		}
		d.Reasoning = s.reasoning.add(d.Reasoning)
	}
	ends := d.Call != nil || d.Finish != "" || d.More
	if d.Text != "" || ends {
		d.Reasoning += s.reasoning.flush()
	}
	if d.Text != "" {
		d.Text = s.text.add(d.Text)
	}
	if ends {
		d.Text += s.text.flush()
	}
	return s.passCall(&d) && s.yield(d, nil)
}

// passCall hides secrets in a piece of a call. The held-back part of a call is released before
// another call takes its index, and before the end.
func (s *answerStream) passCall(d *holdfast.Delta) bool {
	if s.calls == nil {
		return true
	}
	if d.Call != nil {
		piece := *d.Call
		if piece.Name != "" && !s.flushCall(piece.Index) {
			return false
		}
		if s.calls[piece.Index] == nil {
			s.calls[piece.Index] = &textStream{hiding: s.text.hiding}
		}
		piece.Arguments = s.calls[piece.Index].add(piece.Arguments)
		if piece.Own != nil { // it is the last one
			piece.Arguments += s.calls[piece.Index].flush()
			delete(s.calls, piece.Index)
		}
		d.Call = &piece
	}
	if d.Finish != "" || d.More {
		for _, index := range slices.Sorted(maps.Keys(s.calls)) {
			if !s.flushCall(index) {
				return false
			}
		}
	}
	return true
}

// flushCall releases the rest of a call's arguments.
func (s *answerStream) flushCall(index int) bool {
	held := s.calls[index]
	if held == nil {
		return true
	}
	delete(s.calls, index)
	rest := held.flush()
	return rest == "" || s.yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: index, Arguments: rest}}, nil)
}
