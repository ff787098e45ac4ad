package loop

import (
	"github.com/holdfast-agents/holdfast"
)

// The words of a try after one that broke off. A model that dies in the middle of a sentence
// often dies there again, and people would see the sentence begin each time. So what a try has
// shown stays on the screen while the same model is asked again, and the next one's words wait
// until there are more of them. Only then is the old beginning taken back.

// heldBack is what a try has received and not shown. The nil one holds nothing back.
type heldBack struct {
	past  int // it waits until the try has received more bytes than that
	limit int // or until so many wait
	cost  int
	// deltas wait, and behind them words that follow each other: text or reasoning.
	deltas          []holdfast.Delta
	text, reasoning []byte
}

// deltaCost is about how many bytes a delta takes besides its content.
const deltaCost = 128

// bytesOf returns the size of what a delta holds.
func bytesOf(d *holdfast.Delta) int {
	n := len(d.Text) + len(d.Reasoning) + len(d.ReasoningSecret) + len(d.Beside)
	if d.Call != nil {
		n += len(d.Call.Name) + len(d.Call.Arguments) + len(d.Call.EncryptedValue)
	}
	if d.Media != nil && d.Media.Source != nil {
		n += len(d.Media.Source.Value)
	}
	return n
}

// holds keeps a delta of a try that has received so many bytes, and returns false if nothing
// waits any longer.
func (h *heldBack) holds(d *holdfast.Delta, received int) bool {
	if h == nil || received > h.past || h.cost > h.limit || d.Finish != "" || d.More ||
		d.Call != nil && d.Call.Own != nil { // what has begun is shown at once
		return false
	}
	h.cost += bytesOf(d)
	switch *d {
	case holdfast.Delta{Text: d.Text}:
		h.join(len(h.reasoning) > 0)
		h.text = append(h.text, d.Text...)
	case holdfast.Delta{Reasoning: d.Reasoning}:
		h.join(len(h.text) > 0)
		h.reasoning = append(h.reasoning, d.Reasoning...)
	default:
		h.join(true)
		h.cost += deltaCost
		own := *d
		if d.Call != nil { // the model may write the next one over it
			call := *d.Call
			own.Call = &call
		}
		h.deltas = append(h.deltas, own)
	}
	return true
}

// join makes one delta of the words that follow each other, if other things follow them.
func (h *heldBack) join(others bool) {
	if others && len(h.text)+len(h.reasoning) > 0 {
		h.deltas = append(h.deltas, holdfast.Delta{Text: string(h.text), Reasoning: string(h.reasoning)})
		h.text, h.reasoning = nil, nil
		h.cost += deltaCost
	}
}

// release returns what waits, in order.
func (h *heldBack) release() []holdfast.Delta {
	h.join(true)
	return h.deltas
}
