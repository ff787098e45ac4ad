package agui_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// FuzzDecodeInput: no input makes it panic; accepted input means the same after our
// own encoding; refused input gets an error that is safe to show.
func FuzzDecodeInput(f *testing.F) {
	f.Add([]byte(`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user",` +
		`"content":[{"type":"text","text":"x"}]}` +
		`],"resume":[{"interruptId":"i","status":"resolved","payload":{"a":1}}]}`))
	f.Add([]byte(`{"threadId":"t","runId":"r","protocolVersion":"1.0","state":{"a":[1,2]},"messages":[{"id":"1",` +
		`"role":"assistant","toolCalls":[{"id":"c","function":{"name":"f","arguments":"{"}}]},{"id":"2",` +
		`"role":"tool","toolCallId":"c","content":"x"}],"tools":[{"name":"f"}],` +
		`"context":[{"description":"d","value":"v"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := agui.DecodeInput(body)
		if err != nil {
			var e *holdfast.Error
			if !errors.As(err, &e) || e.Code != codes.InvalidInput || e.Hint == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		encoded := in.AppendJSON(nil)
		if bytes.ContainsAny(encoded, "\r\n") || !json.Valid(encoded) || !utf8.Valid(encoded) {
			t.Fatalf("%q", encoded)
		}
		again, err := agui.DecodeInput(encoded)
		if err != nil {
			t.Fatalf("our own encoding is refused: %v\n%s", err, encoded)
		}
		if again.Hash() != in.Hash() {
			t.Fatalf("the hash changed:\n%s\n%s", encoded, again.AppendJSON(nil))
		}
	})
}

// FuzzDecodeEvent: decoding and encoding again is stable, one line, valid.
func FuzzDecodeEvent(f *testing.F) {
	for _, ev := range every() {
		f.Add(agui.Append(nil, ev))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := agui.DecodeEvent(data)
		if err != nil {
			return
		}
		first := agui.Append(nil, ev)
		if bytes.ContainsAny(first, "\r\n") || !json.Valid(first) || !utf8.Valid(first) {
			t.Fatalf("%q", first)
		}
		if legacy, keep := agui.DialectLegacy.Event(first); keep &&
			(!json.Valid(legacy) || bytes.ContainsAny(legacy, "\r\n")) {
			t.Fatalf("legacy: %q", legacy)
		}
		again, err := agui.DecodeEvent(first)
		if err != nil {
			t.Fatalf("our own encoding is refused: %v\n%s", err, first)
		}
		if second := agui.Append(nil, again); !bytes.Equal(first, second) {
			t.Fatalf("not stable:\n%s\n%s", first, second)
		}
	})
}

// FuzzString: encoding/json reads back the string that was written.
func FuzzString(f *testing.F) {
	f.Add("a\"\\\x00\u2028\xff🎉")
	f.Fuzz(func(t *testing.T, s string) {
		data := agui.Append(nil, agui.TextMessageContent{MessageID: "m", Delta: s})
		var m struct{ Delta string }
		if err := json.Unmarshal(data, &m); err != nil ||
			m.Delta != strings.ToValidUTF8(s, "\uFFFD") && utf8.ValidString(s) {
			t.Fatalf("%q came back as %q (%v)", s, m.Delta, err)
		}
	})
}

type plainContent struct {
	Type      string `json:"type"`
	MessageID string `json:"messageId"`
	Delta     string `json:"delta"`
}

// BenchmarkEncodeHot compares the append encoder with encoding/json on the
// event that is sent most.
func BenchmarkEncodeHot(b *testing.B) {
	const id, delta = "msg_7h2k9x3m5q", "some words "
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 256)
		for b.Loop() {
			buf = agui.Append(buf[:0], agui.TextMessageContent{MessageID: id, Delta: delta})
		}
	})
	b.Run("delta", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 256)
		for b.Loop() {
			buf = agui.AppendDelta(buf[:0], agui.TypeTextMessageContent, id, delta)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(plainContent{"TEXT_MESSAGE_CONTENT", id, delta}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// leanInput is the least that a server could decode: everything raw.
type leanInput struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	Messages []struct {
		ID         string          `json:"id"`
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCalls  json.RawMessage `json:"toolCalls"`
		ToolCallID string          `json:"toolCallId"`
	} `json:"messages"`
	Tools   json.RawMessage `json:"tools"`
	Context json.RawMessage `json:"context"`
	State   json.RawMessage `json:"state"`
}

func input200() []byte {
	var b strings.Builder
	b.WriteString(`{"threadId":"t","runId":"r","protocolVersion":"1.0","tools":[],"context":[],"state":{},"messages":[`)
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 22)
	for i := range 200 {
		if i > 0 {
			b.WriteByte(',')
		}
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, `{"id":"m%d","role":"user","content":%q}`, i, text)
		case 1:
			fmt.Fprintf(
				&b,
				`{"id":"m%d","role":"assistant","content":%q,"toolCalls":[{"id":"c%d","type":"function",`+
					`"function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
				i,
				text,
				i,
			)
		case 2:
			fmt.Fprintf(&b, `{"id":"m%d","role":"tool","toolCallId":"c%d","content":%q}`, i, i-1, text)
		case 3:
			fmt.Fprintf(&b, `{"id":"m%d","role":"assistant","content":%q}`, i, text)
		}
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// BenchmarkDecodeInput200 compares the decoder, with all its checks, with a lean
// decode that checks nothing.
func BenchmarkDecodeInput200(b *testing.B) {
	body := input200()
	b.Run("holdfast", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := agui.DecodeInput(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("lean", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var in leanInput
			if err := json.Unmarshal(body, &in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// FuzzExpandResult: a large result that a log refers to is sent as if it had been
// written in full.
func FuzzExpandResult(f *testing.F) {
	f.Add("m", "c", `plain`, `{"a":1}`)
	f.Add(`,"ref":"x`, `\`, `"`, ``)
	f.Fuzz(func(t *testing.T, message, call, content, metadata string) {
		text, err := json.Marshal(content)
		if err != nil {
			t.Skip()
		}
		e := agui.ToolCallResult{MessageID: message, ToolCallID: call, Content: text, Role: "tool"}
		if json.Valid([]byte(metadata)) {
			e.Metadata = json.RawMessage(metadata)
		}
		full := agui.Append(nil, e)
		ref := agui.Append(nil, e.Ref())
		if got := agui.ExpandResult(ref, text); string(got) != string(full) {
			t.Errorf("the reference %s is written out as\n%s, want\n%s", ref, got, full)
		}
		if id, ok := agui.RefOf(ref); !ok || id != mustString(t, ref) {
			t.Errorf("%s refers to %q, %v", ref, id, ok)
		}
		if _, ok := agui.RefOf(full); ok {
			t.Errorf("%s is not a reference", full)
		}
	})
}

// mustString returns the id as JSON keeps it: invalid UTF-8 becomes U+FFFD.
func mustString(t *testing.T, ref []byte) string {
	t.Helper()
	var m struct {
		MessageID string `json:"messageId"`
	}
	if err := json.Unmarshal(ref, &m); err != nil {
		t.Fatal(err)
	}
	return m.MessageID
}
