package middleware

import (
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// windowView is a history seen through a window.
type windowView struct {
	messages []holdfast.Message
	// before has, for each index including the end, how many bytes of messages precede it.
	before []int
	// users are the indices of the person's messages.
	users []int
}

func view(messages []holdfast.Message) *windowView {
	v := &windowView{messages: messages, before: make([]int, len(messages)+1)}
	for i := range messages {
		v.before[i+1] = v.before[i] + messageSize(&messages[i])
		if messages[i].Role == holdfast.RoleUser {
			v.users = append(v.users, i)
		}
	}
	return v
}

// place is where what is shown begins.
type place struct {
	// from is the index of the first message from which on all are shown.
	from int
	// keeps are the indices of earlier messages that are shown too, in order.
	keeps []int
}

func (p place) equal(o place) bool { return p.from == o.from && slices.Equal(p.keeps, o.keeps) }

// keeps returns the indices of the messages before an index that are still shown: the person's
// first messages, and the question of a turn that the index divides, because an answer needs
// its question. They depend on nothing that comes later.
func (v *windowView) keeps(from, first int) []int {
	before, _ := slices.BinarySearch(v.users, from)
	kept := v.users[:min(first, before):min(first, before)]
	if before > len(kept) && v.messages[from].Role != holdfast.RoleUser {
		kept = append(kept, v.users[before-1])
	}
	return kept
}

// shown returns the messages that are shown from a place on.
func (v *windowView) shown(p place) []holdfast.Message {
	out := make([]holdfast.Message, 0, len(p.keeps)+len(v.messages)-p.from)
	for _, i := range p.keeps {
		out = append(out, v.messages[i])
	}
	return append(out, v.messages[p.from:]...)
}

// size returns how much is shown from a place on.
func (v *windowView) size(p place) (messages, bytes int) {
	messages, bytes = len(v.messages)-p.from+len(p.keeps), v.before[len(v.messages)]-v.before[p.from]
	for _, i := range p.keeps {
		bytes += v.before[i+1] - v.before[i]
	}
	return messages, bytes
}

// bounds are how many messages and how many bytes are shown; 0 is no bound.
type bounds struct{ messages, bytes int }

func (b bounds) hold(messages, bytes int) bool {
	return (b.messages == 0 || messages <= b.messages) && (b.bytes == 0 || bytes <= b.bytes)
}

// within returns the bounds with another one on the bytes; 0 is none.
func (b bounds) within(bytes int) bounds {
	if bytes > 0 && (b.bytes == 0 || bytes < b.bytes) {
		b.bytes = bytes
	}
	return b
}

// half returns half of the bounds.
func (b bounds) half() bounds { return bounds{(b.messages + 1) / 2, (b.bytes + 1) / 2} }

// first returns the first place from which everything fits. One before a person's message
// is preferred, unless it would leave less than half of what could be shown. If nothing
// fits, it is the last place; without any place, everything is shown. first is how many of
// the person's first messages are shown wherever it is.
func (v *windowView) first(b bounds, first int) place {
	var fits, last place
	for _, i := range boundaries(v.messages) {
		last = place{i, v.keeps(i, first)}
		if !b.hold(v.size(last)) {
			continue
		}
		if fits.from == 0 {
			fits = last
		}
		if 2*(len(v.messages)-i) < len(v.messages)-fits.from {
			break
		}
		if v.messages[i].Role == holdfast.RoleUser {
			return last
		}
	}
	if fits.from > 0 {
		return fits
	}
	return last
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
