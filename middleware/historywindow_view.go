package middleware

import (
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// window is a history window with its defaults.
type window struct{ HistoryWindowOptions }

// windowView is a history seen through a window.
type windowView struct {
	*window
	messages []holdfast.Message
	// before has, for each index including the end, how many bytes of messages precede it.
	before []int
	// always has the indices of the messages that are shown wherever the window is: what
	// the person asked first and what they asked last, because an answer needs its question.
	always []int
}

func (w *window) view(messages []holdfast.Message) *windowView {
	v := &windowView{window: w, messages: messages, before: make([]int, len(messages)+1)}
	last := -1
	for i := range messages {
		v.before[i+1] = v.before[i] + messageSize(&messages[i])
		if messages[i].Role != holdfast.RoleUser {
			continue
		}
		if last = i; len(v.always) < *w.KeepFirst {
			v.always = append(v.always, i)
		}
	}
	if last >= 0 && !slices.Contains(v.always, last) {
		v.always = append(v.always, last)
	}
	return v
}

// kept returns the indices of the messages before an index that are shown all the same.
func (v *windowView) kept(from int) []int {
	n := 0
	for n < len(v.always) && v.always[n] < from {
		n++
	}
	return v.always[:n]
}

// hidden returns how many of the messages between two indices are not shown if the window
// begins at the second.
func (v *windowView) hidden(after, from int) int {
	return from - after - (len(v.kept(from)) - len(v.kept(after)))
}

// size returns how much is shown if the window begins at an index.
func (v *windowView) size(from int) (messages, bytes int) {
	messages, bytes = len(v.messages)-from, v.before[len(v.messages)]-v.before[from]
	for _, i := range v.kept(from) {
		messages, bytes = messages+1, bytes+v.before[i+1]-v.before[i]
	}
	return messages, bytes
}

func (v *windowView) fits(from int) bool {
	messages, bytes := v.size(from)
	return (v.MaxMessages == 0 || messages <= v.MaxMessages) && (v.MaxBytes == 0 || bytes <= v.MaxBytes)
}

// from returns the index at which the window begins: 0 if everything fits, otherwise the
// first boundary from which everything fits. A boundary before a person's message is
// preferred, unless it would leave less than half of what could be shown. If nothing fits,
// it is the last boundary.
func (v *windowView) from() int {
	if v.fits(0) {
		return 0
	}
	first, last := 0, 0
	for _, i := range boundaries(v.messages) {
		last = i
		if !v.fits(i) {
			continue
		}
		if first == 0 {
			first = i
		}
		if 2*(len(v.messages)-i) < len(v.messages)-first {
			break
		}
		if v.messages[i].Role == holdfast.RoleUser {
			return i
		}
	}
	if first > 0 {
		return first
	}
	return last
}

// request returns a request with what is shown if the window begins at an index, and with
// notes as further instructions.
func (v *windowView) request(req *holdfast.ModelRequest, from int, notes ...string) *holdfast.ModelRequest {
	r := *req
	r.Instructions = slices.Concat(req.Instructions, notes)
	r.Messages = nil
	for _, i := range v.kept(from) {
		r.Messages = append(r.Messages, v.messages[i])
	}
	r.Messages = append(r.Messages, v.messages[from:]...)
	return &r
}

// boundaries returns the indices, other than 0, before which a history can be cut: it
// separates neither a call from its result nor reasoning from what it led to.
func boundaries(messages []holdfast.Message) []int {
	var out []int
	open := map[string]bool{}
	for i := range messages {
		m := &messages[i]
		if i > 0 && len(open) == 0 && messages[i-1].Role != holdfast.RoleReasoning {
			out = append(out, i)
		}
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		delete(open, m.CallID)
	}
	return out
}

// noteHidden tells the model how many messages are left out.
const noteHidden = "The conversation before this point is not shown: %d messages."

func hiddenNote(hidden int) []string {
	if hidden == 0 {
		return nil
	}
	return []string{fmt.Sprintf(noteHidden, hidden)}
}
