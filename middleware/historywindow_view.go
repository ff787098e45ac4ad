package middleware

import (
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// window shows a part of a history.
type window struct{ HistoryWindowOptions }

// windowView is a history that is looked at through a window.
type windowView struct {
	*window
	messages []holdfast.Message
	// before is how many bytes stand before each place, the end included.
	before []int
	// always are the indices of the messages that are shown wherever the window is:
	// what the person asked first, and last, without which an answer would miss its
	// question.
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

// kept are those of the messages always shown that stand before a place.
func (v *windowView) kept(from int) []int {
	n := 0
	for n < len(v.always) && v.always[n] < from {
		n++
	}
	return v.always[:n]
}

// hidden is how many of the messages between two places are not shown if the window
// begins at the second.
func (v *windowView) hidden(after, from int) int {
	return from - after - (len(v.kept(from)) - len(v.kept(after)))
}

// size is how much a window that begins at a place shows.
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

// from is where the window begins: 0 if all fits, else the first place at which what
// is shown fits. A person's message is the better place, unless less than half would
// be shown for it. If nothing fits, it is the last place there is.
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

// request is a request for what is shown from a place on, with more instructions.
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

// boundaries are the places, but for the beginning, where a history can be cut: no
// call waits for its result there, and no reasoning for what it led to.
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

// noteHidden says that something is left out; the number is how many messages.
const noteHidden = "The conversation before this point is not shown: %d messages."

func hiddenNote(hidden int) []string {
	if hidden == 0 {
		return nil
	}
	return []string{fmt.Sprintf(noteHidden, hidden)}
}
