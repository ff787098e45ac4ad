package middleware

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-agents/holdfast"
)

// ModelLimit bounds the answer of each model call: maxAnswer is the size of all of it in
// bytes, which is text, reasoning, and names and arguments of calls; maxCalls is the number
// of its calls, and maxArguments the size of the arguments of one of them, in bytes. Without
// a positive maximum there is no such limit. A call of a model that says more is cancelled
// and ends with an error that another attempt cannot help.
func ModelLimit(maxAnswer, maxCalls, maxArguments int) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "holdfast.model_limit",
		Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					m := measured{
						maxAnswer:    maxAnswer,
						maxCalls:     maxCalls,
						maxArguments: maxArguments,
						calls:        map[int]*callSize{},
					}
					for d, err := range next(ctx, req) {
						if err == nil {
							err = m.add(&d)
						}
						if err != nil {
							yield(holdfast.Delta{}, err)
							return
						}
						if !yield(d, nil) {
							return
						}
					}
				}
			}
		},
	}
}

// perItem is what each piece of reasoning and each call counts besides its text, in bytes.
// It is about what their places in the stream and in the history take: a model that thinks
// one letter at a time would otherwise cost a hundred times what it says.
const perItem = 1 << 10

// measured is a model's answer so far.
type measured struct {
	maxAnswer, maxCalls, maxArguments int

	size     int               // of all of it
	count    int               // of its calls
	calls    map[int]*callSize // the last call of each index
	thinking bool              // a piece of reasoning is open
}

// callSize is a call so far: the provider's id, and the size of the arguments.
type callSize struct {
	id        string
	arguments int
}

// errTooMuch is the cause of a limit's error.
var errTooMuch = errors.New("the model's answer was cancelled: it reached a limit")

// add counts a delta, and returns an error if a limit is reached.
func (m *measured) add(d *holdfast.Delta) error {
	m.size += written(d.Text) + written(d.Reasoning) + written(d.ReasoningSecret)
	if (d.Reasoning != "" || d.ReasoningSecret != "") && !m.thinking {
		m.thinking = true
		m.size += perItem
	}
	if d.Text != "" || d.Call != nil {
		m.thinking = false
	}
	if d.Call != nil {
		if err := m.addCall(d.Call); err != nil {
			return err
		}
	}
	if m.maxAnswer > 0 && m.size > m.maxAnswer {
		return tooMuch(m.maxAnswer, "bytes in one answer", "maxAnswer")
	}
	if d.More { // another message follows
		m.size, m.count, m.thinking = 0, 0, false
		clear(m.calls)
	}
	return nil
}

// addCall counts a piece of a call. Another id at the same index is another call.
func (m *measured) addCall(d *holdfast.CallDelta) error {
	c := m.calls[d.Index]
	if c == nil || d.ID != "" && c.id != "" && d.ID != c.id {
		c = &callSize{id: d.ID}
		m.calls[d.Index] = c
		m.count++
		m.size += perItem
	}
	arguments := written(d.Arguments)
	c.arguments += arguments
	m.size += written(d.ID) + written(d.Name) + arguments + written(d.EncryptedValue)
	switch {
	case m.maxCalls > 0 && m.count > m.maxCalls:
		return tooMuch(m.maxCalls, "calls in one answer", "maxCalls")
	case m.maxArguments > 0 && c.arguments > m.maxArguments:
		return tooMuch(m.maxArguments, "bytes of arguments in one call", "maxArguments")
	}
	return nil
}

// written returns the size of a text as it is stored and sent, where a control character
// takes six bytes.
func written(text string) int {
	n := len(text)
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			n += len(`\u0000`) - 1
		}
	}
	return n
}

// tooMuch says which limit was reached, and who can raise it.
func tooMuch(limit int, what, name string) error {
	public := fmt.Sprintf("The model was stopped because it wrote more than %d %s. The server's operator can raise "+
		"%s in the agent's limits.", limit, what, name)
	return &holdfast.ModelError{Public: public, Err: errTooMuch}
}
