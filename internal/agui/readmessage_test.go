package agui

import (
	"encoding/json"
	"reflect"
	"testing"
)

// messagesToRead are messages as this package writes them, and as others might.
var messagesToRead = []string{
	`{"id":"m1","role":"user","content":"Hello"}`,
	`{"id":"m1","role":"user","content":"a \"b\" \\ \/ \n\t\r\b\f \u00e9 \ud83d\ude00 é","name":"A\u00e9"}`,
	`{"id":"m1","role":"user","content":[{"type":"text","text":"a"},{"type":"image",` +
		`"source":{"type":"url","value":"u"}}]}`,
	`{"id":"m1","role":"assistant","content":"x","toolCalls":[{"id":"c1","type":"function","function":{"name":"look",` +
		`"arguments":"{\"q\":\"a\\nb\"}"},"metadata":{"a":[1]}},{"id":"c2","type":"function","function":{}}]}`,
	`{"id":"m1","role":"tool","content":"x","toolCallId":"c1","error":"e","encryptedValue":"s",` +
		`"metadata":{"holdfast":{}}}`,
	`{"id":"m1","role":"activity","activityType":"a.b","content":{"x":1.5e3,"y":[true,null]},"subagentRunId":"r"}`,
	` { "id" : "m1" , "role":"robot","content":null,"metadata":null,"toolCalls":null,"name":null } `,
	`{"id":"m1","toolCalls":[]}`, `{}`, `null`,
	// These are left to encoding/json, or refused.
	`{"id":"a","id":"b"}`, `{"id":"","id":"b","role":"user","role":""}`, `{"ID":"a","Role":"user"}`, `{"i\u0064":"a"}`,
	`{"content":1,"content":2}`, `{"toolCalls":[],"toolCalls":[{"id":"a"}]}`, `{"toolCalls":[{"id":"a","id":"b"}]}`,
	`{"toolCalls":[{"function":{"name":"a"},"function":{"arguments":"b"}}]}`, `{"toolCalls":[null,{"ID":"x"}]}`,
	`{"id":1}`, `{"name":{}}`, `{"toolCalls":{}}`, `{"toolCalls":[1]}`, `{"id":"a"`, `{"id":"a",}`, `{"id":"a"}x`,
	`{"id" "a"}`,
	`{"id":"a` + "\x01" + `"}`, `{"id":"a` + "\xff" + `"}`, `{"id":"\ud800"}`, `{"id":"\x"}`, `{"content":tru}`, `[]`,
	``, `"a"`,
	`{"more":{"a":1,"a":2},"id":"x"}`, `{"metadata":{"a":1,"a":2},"id":"x"}`,
}

// readsAsJSON compares what is read from a message with what encoding/json reads from it.
func readsAsJSON(t *testing.T, data string) {
	t.Helper()
	var want Message
	err := json.Unmarshal([]byte(data), &want)
	want.normalize()
	got, err2 := DecodeMessage([]byte(data))
	if (err == nil) != (err2 == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as\n%+v, %v, want\n%+v, %v", data, got, err2, want, err)
	}
	if err != nil || len(got.Content) == 0 || got.Content[0] != '"' {
		return
	}
	var text string
	if err := json.Unmarshal(got.Content, &text); err != nil {
		t.Fatalf("%s: the content is no JSON: %v", data, err)
	}
	if d, err := got.Domain(); err != nil || d.Text != text {
		t.Errorf("%s says %q, %v, want %q", data, d.Text, err, text)
	}
}

// TestReadMessages: messages are read as encoding/json reads them, also those of others.
func TestReadMessages(t *testing.T) {
	for _, data := range messagesToRead {
		readsAsJSON(t, data)
	}
	written := Message{ID: "m", Role: "assistant", Content: json.RawMessage(`"Some\nwords"`), Metadata: importedMark,
		ToolCalls: []ToolCall{{ID: "c", Function: Function{Name: "f", Arguments: `{"a":1}`}}}}
	if _, ok := readPlain(written.AppendJSON(nil)); !ok {
		t.Error("a message that this package has written is left to encoding/json")
	}
}

// TestReadingAllocates: a plain message takes an allocation for its id, and one for its text.
func TestReadingAllocates(t *testing.T) {
	data := []byte(`{"id":"message_1","role":"user","content":"Some words of a person.\nThen others."}`)
	if n := testing.AllocsPerRun(100, func() {
		m, err := DecodeStored(data)
		if d, err2 := m.Domain(); err != nil || err2 != nil || d.Text == "" {
			t.Fatal(err, err2)
		}
	}); n > 2 {
		t.Errorf("%.0f allocations, more than 2", n)
	}
}

// FuzzReadMessage: see TestReadMessages.
func FuzzReadMessage(f *testing.F) {
	for _, data := range messagesToRead {
		f.Add(data)
	}
	f.Fuzz(readsAsJSON)
}

// BenchmarkReadMessage: a message of a history, as a run needs it.
func BenchmarkReadMessage(b *testing.B) {
	data := []byte(`{"id":"message_00000001","role":"user","content":"several words several words several words ` +
		`several words several words several words several words several words several words several words several ` +
		`words several words several words several words "}`)
	b.ReportAllocs()
	for b.Loop() {
		m, err := DecodeStored(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Domain(); err != nil {
			b.Fatal(err)
		}
	}
}
