package aisdk

// The items of an answer: texts, reasoning, calls and their results, and what stands beside them.

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// opened notes a text or reasoning. It is shown with its first words.
func (e *encoder) opened(message string, reasoning bool) *item {
	id := quoted(message)
	if it := e.find(id, reasoning); it != nil {
		it.again = false
		return it
	}
	e.within(message, reasoning)
	it := &item{id: id, name: message, reasoning: reasoning}
	e.open = append(e.open, it)
	return it
}

// find returns an open item; nil if it is not open. The one that was opened last is nearly always
// meant.
func (e *encoder) find(id []byte, reasoning bool) *item {
	for i := len(e.open) - 1; i >= 0; i-- {
		if e.open[i].reasoning == reasoning && bytes.Equal(e.open[i].id, id) {
			return e.open[i]
		}
	}
	return nil
}

// said adds a piece of an open text or reasoning. Both strings are JSON.
func (e *encoder) said(id, delta []byte, reasoning bool) {
	it := e.find(id, reasoning)
	if it == nil {
		return // another's than the assistant's
	}
	if !it.begun {
		if len(delta) == len(`""`) {
			return
		}
		it.begin()
		e.out.of(kindOf(reasoning)+"-start", it.id)
	}
	e.goesOn = it
	e.out.piece(it.chunk, delta)
}

// begin notes that the item is shown.
func (it *item) begin() {
	it.begun = true
	event, chunk := textHead, textDelta
	if it.reasoning {
		event, chunk = reasoningHead, reasoningDelta
	}
	it.event = slices.Concat([]byte(event), it.id, []byte(deltaMember))
	it.chunk = slices.Concat([]byte(chunk), it.id, []byte(deltaMember))
}

// closed ends a text or reasoning.
func (e *encoder) closed(message string, reasoning bool) {
	for i, it := range e.open {
		if it.name == message && it.reasoning == reasoning {
			e.close(it)
			e.open = append(e.open[:i], e.open[i+1:]...)
			return
		}
	}
}

func (e *encoder) close(it *item) {
	e.goesOn = nil
	if it.begun {
		e.out.of(kindOf(it.reasoning)+"-end", it.id)
	}
}

// closeAll ends what is open.
func (e *encoder) closeAll() {
	for _, it := range e.open {
		e.close(it)
	}
	e.open = nil
}

// called begins a call.
func (e *encoder) called(ev agui.ToolCallStart) {
	if c := e.shownCalls[ev.ToolCallID]; c != nil {
		c.again = false // it is shown already, and goes on
		return
	}
	message := ev.ParentMessageID
	if message == "" {
		message = ev.ToolCallID
	}
	e.within(message, false)
	e.shownCalls[ev.ToolCallID] = &call{name: ev.ToolCallName}
	e.step.calls = append(e.step.calls, ev.ToolCallID)
	e.out.with("tool-input-start", member{"toolCallId", quoted(ev.ToolCallID)},
		member{"toolName", quoted(ev.ToolCallName)})
}

// args adds a piece of a call's arguments. Both strings are JSON.
func (e *encoder) args(id, delta []byte) {
	var name, piece string
	if json.Unmarshal(id, &name) != nil || json.Unmarshal(delta, &piece) != nil {
		return
	}
	c := e.shownCalls[name]
	if c == nil || c.ended || piece == "" {
		return
	}
	c.input = append(c.input, piece...)
	e.out.with("tool-input-delta", member{"toolCallId", id}, member{"inputTextDelta", delta})
}

// made ends a call's arguments.
func (e *encoder) made(id string) {
	c := e.shownCalls[id]
	if c == nil || c.ended {
		return
	}
	c.ended = true
	input := json.RawMessage(bytes.TrimSpace(c.input))
	c.input = nil
	var line bytes.Buffer
	switch {
	case len(input) == 0:
		input = json.RawMessage("{}")
	case json.Compact(&line, input) != nil:
		e.out.with("tool-input-error", member{"toolCallId", quoted(id)}, member{"toolName", quoted(c.name)},
			member{"input", quoted(string(input))}, member{"errorText", quoted("The arguments are not JSON.")})
		return
	default:
		input = line.Bytes()
	}
	e.out.with("tool-input-available", member{"toolCallId", quoted(id)}, member{"toolName", quoted(c.name)},
		member{"input", input})
}

// result shows what came of a call. A client that does not show the call, because another answer
// made it, fails on it.
func (e *encoder) result(id string, content json.RawMessage, mark thread.ResultMark) {
	if e.shownCalls[id] == nil && !e.Rest {
		return
	}
	e.start()
	e.made(id)
	e.sealed = e.begun
	switch text, failed := failureOf(content, "", mark); {
	case !failed:
		e.out.with("tool-output-available", member{"toolCallId", quoted(id)}, member{"output", outputOf(content)})
	case denied(text, mark) && e.Version > V5:
		e.out.with("tool-output-denied", member{"toolCallId", quoted(id)})
	default:
		e.out.with("tool-output-error", member{"toolCallId", quoted(id)}, member{"errorText", quoted(text)})
	}
}

// shared shows the shared state, if there is any and the client does not show it.
func (e *encoder) shared(state json.RawMessage) {
	e.document = state
	if empty := string(state) == "null" || string(state) == "{}"; empty && e.state == nil ||
		bytes.Equal(state, e.state) {
		return
	}
	e.state = state
	e.start()
	e.out.with("data-state", member{"id", quoted("state")}, member{"data", state})
}

// activity shows an activity; a picture or a sound that a model has made is a file.
func (e *encoder) activity(id, kind string, content json.RawMessage) {
	e.start()
	if e.begun && e.activities[id] == nil {
		e.shown = append(e.shown, id)
	}
	for _, m := range beside(id, kind, content) {
		if m.Data == nil { // it cannot be shown twice
			if e.files[id] {
				continue
			}
			e.files[id] = true
		} else {
			e.activities[id] = content
		}
		e.out.text = append(e.out.text, encoded(m)...)
		e.out.end()
	}
}

// activityChanged shows an activity again, unless the client does not show it.
func (e *encoder) activityChanged(ev agui.ActivityDelta) {
	content, shown := e.activities[ev.MessageID]
	if !shown {
		return
	}
	change := thread.ActivityChange{Of: ev.MessageID, Patch: ev.Patch}
	if content, err := change.Apply(content); err == nil {
		e.activity(ev.MessageID, ev.ActivityType, content)
	}
}
