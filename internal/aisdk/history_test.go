package aisdk

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/threads"
)

// stored are messages as a thread has them.
func stored(messages ...string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for _, m := range messages {
			if !yield(json.RawMessage(m), nil) {
				return
			}
		}
	}
}

// TestHistory: a thread as UI messages.
func TestHistory(t *testing.T) {
	messages := stored(
		`{"id":"u1","role":"user","content":"hi","metadata":{"a":1}}`,
		`{"id":"m0","role":"reasoning","content":"hm"}`,
		`{"id":"m1","role":"assistant","content":"I see","toolCalls":[{"id":"c1","type":"function","function":`+
			`{"name":"look","arguments":"{\"at\":1}"}},{"id":"c2","type":"function","function":{"name":"look",`+
			`"arguments":""}},{"id":"c3","type":"function","function":{"name":"look","arguments":"{"}}]}`,
		`{"id":"r1","role":"tool","toolCallId":"c1","content":"{\"seen\":true}"}`,
		`{"id":"r2","role":"tool","toolCallId":"c2","content":"gone","metadata":{"holdfast":{"failed":true}}}`,
		`{"id":"r3","role":"tool","toolCallId":"c3","content":"The person did not allow this call.",`+
			`"metadata":{"holdfast":{"failed":true,"notRun":true}}}`,
		`{"id":"v1","role":"activity","activityType":"plan","content":{"steps":2}}`,
		`{"id":"m2","role":"assistant","content":"Done."}`,
		`{"id":"u2","role":"user","content":[{"type":"text","text":"this"},{"type":"image","source":{"type":"data",`+
			`"value":"iVBORw0KGgo=","mimeType":"image/png"},"metadata":{"filename":"a.png"}},{"type":"document",`+
			`"source":{"type":"file","value":"f","provider":"openai"}}]}`,
		`{"id":"m3","role":"assistant","content":"So","metadata":{"holdfast":{"partial":true,"failed":true}}}`,
		`{"id":"u3","role":"user","content":"pay"}`,
		`{"id":"m4","role":"assistant","toolCalls":[{"id":"c4","type":"function","function":{"name":"pay",`+
			`"arguments":"{}"}}]}`,
	)
	questions := []threads.Interrupt{
		{ID: "i1", Reason: holdfast.ReasonToolCall, ToolCallID: "c4", Message: "May it?",
			ResponseSchema: json.RawMessage(`{"properties":{"approved":{}}}`)},
		{ID: "i2", Reason: "input_required", Message: "Which?"},
	}
	var lines strings.Builder
	for ui, err := range History(messages, questions) {
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(ui, '\n'))
	}
	golden(t, "history.txt", lines.String())
}

// TestHistoryThatEnds: an error ends the history.
func TestHistoryThatEnds(t *testing.T) {
	gone := errors.New("gone")
	var got error
	for _, err := range History(func(yield func(json.RawMessage, error) bool) { yield(nil, gone) }, nil) {
		got = err
	}
	if !errors.Is(got, gone) {
		t.Errorf("%v", got)
	}
}

// TestUserMessage: the message that another answer is wanted to.
func TestUserMessage(t *testing.T) {
	messages := stored(`{"id":"u1","role":"user","content":"a"}`, `{"id":"m1","role":"assistant","content":"b"}`,
		`{"id":"u2","role":"user","content":"c"}`)
	for answer, want := range map[string]string{"": "u2", "answer-u1": "u1", "u2": "u2", "answer-u9": ""} {
		m, found, err := UserMessage(messages, answer)
		if err != nil || found != (want != "") || m.ID != want {
			t.Errorf("%q: %q %v %v", answer, m.ID, found, err)
		}
	}
}
