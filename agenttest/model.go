package agenttest

// The scripted model: turns, which say what the model answers and how an answer ends,
// and a Model that plays them in order and remembers what it was asked.

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
)

// Turn is one answer of a [Model]: what it says, what it calls, how it ends.
type Turn struct {
	// Reasoning comes first, in one piece.
	Reasoning string
	// Text follows it, in one piece.
	Text string
	// Media are images and other media that it makes, after the text.
	Media []holdfast.Part
	// Calls are made together, in this order. A call without an ID gets the next one
	// of call_1, call_2 and so on.
	Calls []holdfast.ToolCall
	// Usage is what the model reports; nil reports nothing.
	Usage *holdfast.Usage
	// Finish is why the model stops; empty means tool_calls if there are Calls, else
	// stop.
	Finish holdfast.FinishReason
	// Truncated: the stream ends before the answer is complete. The server tries again
	// and gets the next turn.
	Truncated bool
	// Err ends the turn instead of Finish. A [*holdfast.ModelError] says whether the
	// server tries again; if it does, it gets the next turn.
	Err error
	// Do is called after everything was said but before the turn ends: sleep here for a
	// slow model, or call [Harness.Crash] for a process that dies.
	Do func(ctx context.Context, req *holdfast.ModelRequest)
}

// Text is a turn that says something and stops.
func Text(text string) Turn { return Turn{Text: text} }

// Call is a turn that calls a tool; the arguments are JSON.
func Call(tool, arguments string) Turn { return Turn{}.And(tool, arguments) }

// Fail is a turn that ends in an error.
func Fail(err error) Turn { return Turn{Err: err} }

// Truncate is a turn that breaks off after the text.
func Truncate(text string) Turn { return Turn{Text: text, Truncated: true} }

// And returns the turn with one more call, parallel to the others.
func (t Turn) And(tool, arguments string) Turn {
	t.Calls = append(slices.Clip(t.Calls), holdfast.ToolCall{Name: tool, Arguments: json.RawMessage(arguments)})
	return t
}

// Tokens returns the turn with a report of these token counts.
func (t Turn) Tokens(input, output int64) Turn {
	total := input + output
	t.Usage = &holdfast.Usage{InputTokens: &input, OutputTokens: &output, TotalTokens: &total}
	return t
}

// Model is a scripted [holdfast.Model]: each call gets the next turn, no matter who
// calls. It remembers what it was asked. If no turn is left, the call fails, and a
// [Harness] then fails the test. All methods may be called concurrently.
type Model struct {
	mu       sync.Mutex
	turns    []Turn
	next     int
	calls    int // how many calls were given an id
	requests []holdfast.ModelRequest
	lacks    error // why there was no turn
}

// Say makes a model that answers with these turns, one after another.
func Say(turns ...Turn) *Model { return &Model{turns: slices.Clone(turns)} }

// Add adds turns to the script.
func (m *Model) Add(turns ...Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns = append(m.turns, turns...)
}

// Requests returns what the model was asked, after all changes by middleware.
func (m *Model) Requests() []holdfast.ModelRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Left returns how many turns have not been used yet.
func (m *Model) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.turns) - m.next
}

// Stream implements [holdfast.Model].
func (m *Model) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		turn, err := m.take(req)
		if err != nil {
			yield(holdfast.Delta{}, &holdfast.ModelError{Public: err.Error(), Err: err})
			return
		}
		turn.play(ctx, req, yield)
	}
}

// take returns the next turn, with an id for each call.
func (m *Model) take(req *holdfast.ModelRequest) (Turn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := *req
	asked.Messages = slices.Clone(req.Messages)
	m.requests = append(m.requests, asked)
	if m.next >= len(m.turns) {
		m.lacks = fmt.Errorf("the script has no turn left: %d were asked for, it has %d (thread %s, "+
			"iteration %d, attempt %d)", len(m.requests), len(m.turns), req.Thread, req.Iteration, req.Attempt)
		return Turn{}, m.lacks
	}
	turn := m.turns[m.next]
	m.next++
	turn.Calls = slices.Clone(turn.Calls)
	for i := range turn.Calls {
		if turn.Calls[i].ID == "" {
			m.calls++
			turn.Calls[i].ID = fmt.Sprintf("call_%d", m.calls)
		}
	}
	return turn, nil
}

// ranOut says why a turn was missing; nil if none was.
func (m *Model) ranOut() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lacks
}

// play yields the turn.
func (t Turn) play(ctx context.Context, req *holdfast.ModelRequest, yield func(holdfast.Delta, error) bool) {
	for _, d := range t.deltas() {
		if !yield(d, nil) {
			return
		}
	}
	if t.Do != nil {
		t.Do(ctx, req)
	}
	switch {
	case t.Err != nil:
		yield(holdfast.Delta{}, t.Err)
	case t.Truncated:
	default:
		yield(holdfast.Delta{Finish: t.finish(), Usage: t.Usage}, nil)
	}
}

func (t Turn) deltas() []holdfast.Delta {
	var out []holdfast.Delta
	if t.Reasoning != "" {
		out = append(out, holdfast.Delta{Reasoning: t.Reasoning})
	}
	if t.Text != "" {
		out = append(out, holdfast.Delta{Text: t.Text})
	}
	for i := range t.Media {
		out = append(out, holdfast.Delta{Media: &t.Media[i]})
	}
	for i, c := range t.Calls {
		out = append(out, holdfast.Delta{Call: &holdfast.CallDelta{
			Index:          i,
			ID:             c.ID,
			Name:           c.Name,
			Arguments:      string(c.Arguments),
			EncryptedValue: c.EncryptedValue,
		}})
	}
	return out
}

func (t Turn) finish() holdfast.FinishReason {
	switch {
	case t.Finish != "":
		return t.Finish
	case len(t.Calls) > 0:
		return holdfast.FinishToolCalls
	}
	return holdfast.FinishStop
}
