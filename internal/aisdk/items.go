package aisdk

// The items of an answer: texts, reasoning, calls and their results, and what stands beside them.

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
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

func kindOf(reasoning bool) string {
	if reasoning {
		return partReasoning
	}
	return partText
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

// failureOf returns the text of a result that is an error's; said is what its message says.
func failureOf(content json.RawMessage, said string, mark thread.ResultMark) (text string, failed bool) {
	if said != "" {
		return said, true
	}
	if !mark.Failed {
		return "", false
	}
	if json.Unmarshal(content, &text) != nil {
		text = string(content)
	}
	return text, true
}

// denied reports whether a call was not made because a person did not want it.
func denied(text string, mark thread.ResultMark) bool {
	return mark.NotRun && (text == thread.TextDeclined || strings.HasPrefix(text, "The person did not allow this call"))
}

// shared shows the shared state, if there is any and the client does not show it.
func (e *encoder) shared(state json.RawMessage) {
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
	if e.begun {
		e.shown = append(e.shown, id)
	}
	for _, m := range beside(id, kind, content) {
		if m.Data == nil { // it cannot be shown twice
			if e.files[id] {
				continue
			}
			e.files[id] = true
		}
		raw := encoded(m)
		e.out.text = append(e.out.text, raw...)
		e.out.end()
	}
}

// besides is a part of a UI message that is no text and no call. Its chunk is the same.
type besides struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	SourceID  string          `json:"sourceId,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	URL       string          `json:"url,omitempty"`
	Title     string          `json:"title,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// activitySource is the type of activities that name a source of an answer.
const activitySource = "source"

// madeByModel are the types of activities that are what a model has made besides text.
var madeByModel = map[string]bool{
	"holdfast.image": true, "holdfast.audio": true, "holdfast.video": true, "holdfast.document": true,
}

// beside returns the part that shows an activity; none for a picture that is left out.
func beside(id, kind string, content json.RawMessage) []besides {
	var said struct {
		URL       string `json:"url"`
		MIMEType  string `json:"mimeType"`
		MediaType string `json:"mediaType"`
		Title     string `json:"title"`
		Filename  string `json:"filename"`
		LeftOut   int    `json:"leftOut"`
	}
	known := json.Unmarshal(content, &said) == nil
	switch {
	case known && said.LeftOut > 0 && madeByModel[kind]:
		return nil
	case known && said.URL != "" && madeByModel[kind]:
		return []besides{{Type: partFile, MediaType: said.MIMEType, URL: said.URL}}
	case known && kind == activitySource && said.URL != "":
		return []besides{{Type: "source-url", SourceID: id, URL: said.URL, Title: said.Title}}
	case known && kind == activitySource && said.Title != "" && said.MediaType != "":
		return []besides{{
			Type:      "source-document",
			SourceID:  id,
			MediaType: said.MediaType,
			Title:     said.Title,
			Filename:  said.Filename,
		}}
	}
	if len(content) == 0 {
		content = json.RawMessage("{}")
	}
	return []besides{{Type: "data-activity", ID: id, Data: encoded(struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}{kind, content})}}
}

// usageOf is what an answer has cost, in the words of the AI SDK.
type usageOf struct {
	InputTokens       *int64 `json:"inputTokens,omitempty"`
	OutputTokens      *int64 `json:"outputTokens,omitempty"`
	TotalTokens       *int64 `json:"totalTokens,omitempty"`
	ReasoningTokens   *int64 `json:"reasoningTokens,omitempty"`
	CachedInputTokens *int64 `json:"cachedInputTokens,omitempty"`
}

// sumOf adds up what all models of a run have cost; nil if nobody knows.
func sumOf(usage []holdfast.Usage) *usageOf {
	if len(usage) == 0 {
		return nil
	}
	sum := &usageOf{}
	for i := range usage {
		u := &usage[i]
		for _, pair := range [][2]**int64{
			{&sum.InputTokens, &u.InputTokens},
			{&sum.OutputTokens, &u.OutputTokens},
			{&sum.TotalTokens, &u.TotalTokens},
			{&sum.ReasoningTokens, &u.ReasoningTokens},
			{&sum.CachedInputTokens, &u.CachedInput},
		} {
			to, from := pair[0], *pair[1]
			switch {
			case from == nil:
			case *to == nil:
				n := *from
				*to = &n
			default:
				**to += *from
			}
		}
	}
	return sum
}

// questionOf returns a question that is no approval, as a page shows it.
func questionOf(q *agui.Interrupt) []byte {
	return encoded(threads.Interrupt{
		ID:             q.ID,
		Reason:         q.Reason,
		Message:        q.Message,
		ToolCallID:     q.ToolCallID,
		ResponseSchema: q.ResponseSchema,
		ExpiresAt:      q.ExpiresAt,
		Metadata:       q.Metadata,
	})
}
