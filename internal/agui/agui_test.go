package agui_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ptr[T any](v T) *T { return &v }

// every returns one event of each of the 31 types with every member set.
func every() []agui.Event {
	base := agui.Base{
		Timestamp: 1700000000000,
		RawEvent:  json.RawMessage(`{"a":1}`),
		Metadata:  json.RawMessage(`{"k":null}`),
	}
	usage := []holdfast.Usage{
		{Provider: "p", Model: "m", InputTokens: ptr(int64(1)), OutputTokens: ptr(int64(2)), TotalTokens: ptr(int64(3)),
			ReasoningTokens: ptr(int64(0)), CachedInput: ptr(int64(4)), CacheWriteInput: ptr(int64(5))},
	}
	patch := json.RawMessage(`[{"op":"replace","path":"/a","value":null}]`)
	user := agui.FromDomain(holdfast.Message{ID: "m", Role: holdfast.RoleUser, Text: "hi"})
	return []agui.Event{
		agui.RunStarted{
			Base:            base,
			ThreadID:        "t",
			RunID:           "r",
			ProtocolVersion: "1.0",
			ParentRunID:     "p",
			Input:           json.RawMessage(`{"threadId":"t","runId":"r","messages":[]}`),
		},
		agui.RunFinished{
			Base:     base,
			ThreadID: "t",
			RunID:    "r",
			Result:   json.RawMessage(`7`),
			Usage:    usage,
			Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{
				{
					ID:             "i",
					Reason:         "input_required",
					Message:        "q",
					ToolCallID:     "c",
					ResponseSchema: json.RawMessage(`{"type":"object"}`),
					ExpiresAt:      "2026-01-01T00:00:00Z",
					Metadata:       json.RawMessage(`{"x":1}`),
					SubagentRunID:  "s",
				},
			}},
		},
		agui.RunError{Base: base, Message: "no", Code: "c", Usage: usage},
		agui.StepStarted{Base: base, StepName: "s", SubagentRunID: "a"},
		agui.StepFinished{Base: base, StepName: "s", SubagentRunID: "a"},
		agui.TextMessageStart{Base: base, MessageID: "m", Role: "assistant", Name: "n", SubagentRunID: "a"},
		agui.TextMessageContent{Base: base, MessageID: "m", Delta: "d", SubagentRunID: "a"},
		agui.TextMessageEnd{Base: base, MessageID: "m", SubagentRunID: "a"},
		agui.TextMessageChunk{Base: base, MessageID: "m", Role: "user", Delta: "d", Name: "n", SubagentRunID: "a"},
		agui.ToolCallStart{Base: base, ToolCallID: "c", ToolCallName: "n", ParentMessageID: "m", SubagentRunID: "a"},
		agui.ToolCallArgs{Base: base, ToolCallID: "c", Delta: "{", SubagentRunID: "a"},
		agui.ToolCallEnd{Base: base, ToolCallID: "c", SubagentRunID: "a"},
		agui.ToolCallChunk{
			Base:            base,
			ToolCallID:      "c",
			ToolCallName:    "n",
			ParentMessageID: "m",
			Delta:           "{}",
			SubagentRunID:   "a",
		},
		agui.ToolCallResult{
			Base:          base,
			MessageID:     "m",
			ToolCallID:    "c",
			Content:       json.RawMessage(`[{"type":"text","text":"x"}]`),
			Role:          "tool",
			SubagentRunID: "a",
		},
		agui.StateSnapshot{Base: base, Snapshot: json.RawMessage(`null`), SubagentRunID: "a"},
		agui.StateDelta{Base: base, Delta: patch, SubagentRunID: "a"},
		agui.MessagesSnapshot{Base: base, Messages: []agui.Message{user}},
		agui.ActivitySnapshot{
			Base:          base,
			MessageID:     "m",
			ActivityType:  "t",
			Content:       json.RawMessage(`{}`),
			Replace:       ptr(false),
			SubagentRunID: "a",
		},
		agui.ActivityDelta{Base: base, MessageID: "m", ActivityType: "t", Patch: patch, SubagentRunID: "a"},
		agui.ReasoningStart{Base: base, MessageID: "m", SubagentRunID: "a"},
		agui.ReasoningEnd{Base: base, MessageID: "m", SubagentRunID: "a"},
		agui.ReasoningMessageStart{Base: base, MessageID: "m", SubagentRunID: "a"},
		agui.ReasoningMessageContent{Base: base, MessageID: "m", Delta: "d", SubagentRunID: "a"},
		agui.ReasoningMessageEnd{Base: base, MessageID: "m", SubagentRunID: "a"},
		agui.ReasoningMessageChunk{Base: base, MessageID: "m", Delta: "d", SubagentRunID: "a"},
		agui.ReasoningEncryptedValue{
			Base:           base,
			Subtype:        "message",
			EntityID:       "m",
			EncryptedValue: "e",
			SubagentRunID:  "a",
		},
		agui.SubagentStarted{
			Base:                base,
			SubagentRunID:       "a",
			Name:                "n",
			Description:         "d",
			ParentSubagentRunID: "p",
			ParentToolCallID:    "c",
			ParentMessageID:     "m",
		},
		agui.SubagentFinished{
			Base:          base,
			SubagentRunID: "a",
			Result:        json.RawMessage(`{}`),
			Outcome:       json.RawMessage(`{"type":"success"}`),
		},
		agui.SubagentError{Base: base, SubagentRunID: "a", Message: "no", Code: "c"},
		agui.Raw{Base: base, Event: json.RawMessage(`{"x":1}`), Source: "s", SubagentRunID: "a"},
		agui.Custom{Base: base, Name: "n", Value: json.RawMessage(`null`), SubagentRunID: "a"},
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; what goes over the wire has changed. Rewrite it with -update if that is "+
			"meant.\n got:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestGoldenEvents(t *testing.T) {
	var out []byte
	seen := map[agui.Type]bool{}
	for _, ev := range every() {
		out = agui.Append(out, ev)
		out = append(out, '\n')
		seen[agui.EventType(ev)] = true
	}
	if len(seen) != 31 {
		t.Errorf("%d types, want the 31 of AG-UI 1.0", len(seen))
	}
	golden(t, "events.jsonl", out)
}

func TestRoundTrip(t *testing.T) {
	for _, ev := range every() {
		data := agui.Append(nil, ev)
		if got := agui.TypeOf(data); got != agui.EventType(ev) {
			t.Errorf("TypeOf(%s) = %s", data, got)
		}
		back, err := agui.DecodeEvent(data)
		if err != nil {
			t.Errorf("%s: %v", data, err)
			continue
		}
		if again := agui.Append(nil, back); !bytes.Equal(again, data) || agui.EventType(back) != agui.EventType(ev) {
			t.Errorf("decode and encode changed it:\n%s\n%s", data, again)
		}
	}
}

// TestOptionalMembersAreOmitted: in AG-UI 1.0 an absent member is never null.
func TestOptionalMembersAreOmitted(t *testing.T) {
	for _, ev := range every() {
		zero := reflect.Zero(reflect.TypeOf(ev)).Interface().(agui.Event)
		data := agui.Append(nil, zero)
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for name, v := range m {
			payload := name == "snapshot" || name == "value" || name == "event" || name == "content" ||
				name == "delta" || name == "patch"
			if v == nil && !payload {
				t.Errorf("%s: %s is null", agui.EventType(ev), name)
			}
		}
	}
}

// TestOneLine: whatever an event contains, it stays one line of valid UTF-8.
func TestOneLine(t *testing.T) {
	nasty := "a\r\nb\u2028c\x00\x1b<&>\"\\ \xff\xfe 🎉"
	events := []agui.Event{
		agui.TextMessageContent{MessageID: "m", Delta: nasty},
		agui.Custom{Name: nasty, Value: json.RawMessage("{\n \"a\":\r\n 1 }")},
		agui.StateSnapshot{Snapshot: json.RawMessage("[1,\n2]")},
		agui.ToolCallArgs{ToolCallID: nasty, Delta: nasty},
	}
	for _, ev := range events {
		data := agui.Append(nil, ev)
		if bytes.ContainsAny(data, "\r\n") || !utf8.Valid(data) || !json.Valid(data) {
			t.Errorf("%q", data)
		}
		if bytes.Contains(data, []byte(`\u003c`)) {
			t.Errorf("HTML is escaped: %s", data)
		}
	}
}

func TestDecodeEventRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"unknown type":     `{"type":"META_EVENT"}`,
		"no type":          `{}`,
		"float timestamp":  `{"type":"RUN_STARTED","threadId":"t","runId":"r","timestamp":1.5}`,
		"numeric id":       `{"type":"TEXT_MESSAGE_START","messageId":1}`,
		"custom, no value": `{"type":"CUSTOM","name":"n"}`,
		"empty interrupts": `{"type":"RUN_FINISHED","threadId":"t","runId":"r",` +
			`"outcome":{"type":"interrupt","interrupts":[]}}`,
		"outcome of an array": `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":[]}`,
		"result of a number":  `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":1}`,
		"cut":                 `{"type":"RUN_STARTED"`,
	} {
		if ev, err := agui.DecodeEvent([]byte(data)); err == nil {
			t.Errorf("%s: decoded as %#v", name, ev)
		}
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	messages := []holdfast.Message{
		{ID: "1", Role: holdfast.RoleUser, Text: "hello", Name: "bo", Metadata: json.RawMessage(`{"a":1}`)},
		{ID: "2", Role: holdfast.RoleUser, Parts: []holdfast.Part{
			{Type: holdfast.PartText, Text: "look", ID: "p1"},
			{
				Type:     holdfast.PartImage,
				Source:   &holdfast.Source{Type: holdfast.SourceData, Value: "aGk=", MIMEType: "image/png"},
				Metadata: json.RawMessage(`{"w":1}`),
			},
			{
				Type:   holdfast.PartDocument,
				Source: &holdfast.Source{Type: holdfast.SourceFile, Value: "file-1", Provider: "openai"},
			},
		}},
		{
			ID:    "3",
			Role:  holdfast.RoleAssistant,
			Calls: []holdfast.ToolCall{{ID: "c", Name: "f", Arguments: json.RawMessage(`{"a":`), EncryptedValue: "e"}},
		},
		{ID: "4", Role: holdfast.RoleAssistant, Text: ""},
		{ID: "5", Role: holdfast.RoleTool, CallID: "c", Text: "42", Error: "no"},
		{ID: "6", Role: holdfast.RoleReasoning, Text: "hm", EncryptedValue: "s"},
		{ID: "7", Role: holdfast.RoleSystem, Text: "be brief"},
	}
	var out []byte
	for _, want := range messages {
		wire := agui.FromDomain(want)
		data := wire.AppendJSON(nil)
		out = append(append(out, data...), '\n')
		back, err := agui.DecodeMessage(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := back.Domain()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v (%v)\nwant %+v", data, got, err, want)
		}
	}
	golden(t, "messages.jsonl", out)
}

func TestRetiredBinaryPart(t *testing.T) {
	m, err := agui.DecodeMessage([]byte(`{"id":"1","role":"user","content":[{"type":"binary",` +
		`"mimeType":"image/png","data":"aGk="},` +
		`{"type":"hologram"},{"type":"text","text":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	d, err := m.Domain()
	if err != nil || len(d.Parts) != 2 || d.Parts[0].Type != holdfast.PartImage ||
		d.Parts[0].Source.Type != holdfast.SourceData {
		t.Errorf("%+v %v", d.Parts, err)
	}
}

func TestDecodeInputIsLenient(t *testing.T) {
	in, err := agui.DecodeInput([]byte(`{"threadId":"t","runId":"r","extra":1,
		"state":null,"tools":null,"context":null,"forwardedProps":null,"parentRunId":null,
		"messages":[
			{"id":"1","role":"user","content":"hi","name":null,"unknown":[]},
			{"id":"2","role":"assistant","content":null,
				"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	if in.State != nil || in.ForwardedProps != nil || len(in.Messages) != 2 || in.Messages[1].Content != nil {
		t.Errorf("%+v", in)
	}
	other, err := agui.DecodeInput([]byte(`{"runId":"r", "threadId":"t", ` +
		`"messages":[{"role":"user","id":"1","content":"hi"},{"id":"2","role":"assistant",` +
		`"toolCalls":[{"id":"c","function":{"name":"f","arguments":"{"}}]}]}`))
	if err != nil || other.Hash() != in.Hash() {
		t.Errorf("the same input hashes differently: %v", err)
	}
}

func TestDecodeInputNamesThePlace(t *testing.T) {
	for rest, field := range map[string]string{
		`,"messages":[{"id":7,"role":"user","content":"secret"}]`:                      "messages[0].id",
		`,"messages":[{"id":"1","role":"user","content":"a"},{"id":"2","role":"elf"}]`: "messages[1].role",
		`,"messages":[{"id":"1","role":"user","content":[{"type":"image"}]}]`:          "messages[0].content",
		`,"messages":[],"tools":[{"description":"d"}]`:                                 "tools[0].name",
		`,"messages":[],"resume":[{"interruptId":"","status":"resolved"}]`:             "resume[0].interruptId",
		``: "messages",
		`,"messages":[{"id":"1","role":"user","content":"a"},{"id":"2","role":7}]`: "messages[1].role",
		`,"messages":[{"id":"1","role":"user","content":"a","metadata":[]}]`:       "messages[0].metadata",
		`,"parentRunId":"a\u0000","messages":[]`:                                   "parentRunId",
		`,"protocolVersion":"1","messages":[]`:                                     "protocolVersion",
	} {
		body := `{"threadId":"t","runId":"r"` + rest + `}`
		_, err := agui.DecodeInput([]byte(body))
		e := holdfast.AsError(err)
		if err == nil || e.Code != codes.InvalidInput || e.Details["field"] != field {
			t.Errorf("%s\n got %v at %v, want %s", body, err, e, field)
		}
		if err != nil && strings.Contains(e.Message+e.Hint, "secret") {
			t.Errorf("the error repeats what was sent: %v", err)
		}
	}
}

func TestLegacyDialect(t *testing.T) {
	cases := []struct {
		ev   agui.Event
		want string
	}{
		{
			agui.RunFinished{
				ThreadID: "t",
				RunID:    "r",
				Outcome:  &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: []string{"c"}},
			},
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
		},
		{
			agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}},
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
		},
		{
			agui.RunFinished{
				ThreadID: "t",
				RunID:    "r",
				Outcome: &agui.Outcome{
					Type:       agui.OutcomeInterrupt,
					Interrupts: []agui.Interrupt{{ID: "i", Reason: "q"}},
				},
			},
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt",` +
				`"interrupts":[{"id":"i","reason":"q"}]}}`,
		},
		{
			agui.ToolCallResult{
				MessageID:  "m",
				ToolCallID: "c",
				Content:    json.RawMessage(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`),
			},
			`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"ab"}`,
		},
		{agui.SubagentStarted{SubagentRunID: "a", Name: "n"}, ""},
		{
			agui.TextMessageContent{MessageID: "m", Delta: "d"},
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"d"}`,
		},
		{agui.MessagesSnapshot{Messages: []agui.Message{
			agui.FromDomain(holdfast.Message{
				ID:   "1",
				Role: holdfast.RoleUser,
				Parts: []holdfast.Part{
					{Type: holdfast.PartText, ID: "p", Text: "x"},
					{Type: holdfast.PartImage, Source: &holdfast.Source{Type: holdfast.SourceFile, Value: "f"}},
				},
			}),
			agui.FromDomain(holdfast.Message{
				ID:     "2",
				Role:   holdfast.RoleTool,
				CallID: "c",
				Parts:  []holdfast.Part{{Type: holdfast.PartText, Text: "y"}},
			}),
		}}, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":[{"type":"text","text":"x"}]},` +
			`{"id":"2","role":"tool","content":"y","toolCallId":"c"}]}`},
	}
	for _, c := range cases {
		data, keep := agui.DialectLegacy.Event(agui.Append(nil, c.ev))
		if keep != (c.want != "") || string(data) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", agui.EventType(c.ev), data, c.want)
		}
	}
}

// TestLegacyAttribution: subagents are removed together with everything that names
// one, and steps are removed entirely, because their names would collide.
func TestLegacyAttribution(t *testing.T) {
	input := json.RawMessage(`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"tool","toolCallId":"c",` +
		`"content":[{"type":"text","text":"y"}]}]}`)
	for _, c := range []struct {
		ev   agui.Event
		want string
	}{
		{agui.TextMessageStart{MessageID: "m", SubagentRunID: "a"}, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`},
		{agui.StepStarted{StepName: "s", SubagentRunID: "a"}, ""},
		{agui.StepStarted{Base: agui.Base{Metadata: json.RawMessage(`{"subagentRunId":"x"}`)}, StepName: "s"},
			`{"type":"STEP_STARTED","stepName":"s","metadata":{"subagentRunId":"x"}}`},
		{agui.ToolCallResult{MessageID: "m", ToolCallID: "c", Content: json.RawMessage(`"x"`), SubagentRunID: "a"},
			`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"x"}`},
		{question("i"), `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt",` +
			`"interrupts":[{"id":"i","reason":"input_required"}]}}`},
		{agui.RunStarted{ThreadID: "t", RunID: "r", Input: input},
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r",` +
				`"messages":[{"id":"1","role":"tool","content":"y","toolCallId":"c"}],"tools":[],"context":[]}}`},
	} {
		data, keep := agui.DialectLegacy.Event(agui.Append(nil, c.ev))
		if keep != (c.want != "") || keep && string(data) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", agui.EventType(c.ev), data, c.want)
		}
	}
}

// TestEncodeNeverFailsAClient: invalid values that a program passes by mistake are
// left out or emptied, because a client would fail the whole run over them.
func TestEncodeNeverFailsAClient(t *testing.T) {
	minus := int64(-1)
	for _, c := range []struct{ got, want string }{
		{string(agui.Append(nil, agui.Custom{Base: agui.Base{RawEvent: json.RawMessage("null"),
			Metadata: json.RawMessage("[]")},
			Name: "n", Value: json.RawMessage("{")})),
			`{"type":"CUSTOM","name":"n","value":null}`},
		{string(agui.Append(nil, agui.ToolCallResult{MessageID: "m", ToolCallID: "c", Content: json.RawMessage("{}")})),
			`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":""}`},
		{string(agui.Append(nil, agui.RunError{Message: "x", Usage: []holdfast.Usage{{InputTokens: &minus}}})),
			`{"type":"RUN_ERROR","message":"x","usage":[{}]}`},
		{message(agui.Message{ID: "1", Role: "tool", Name: "n", ActivityType: "t"}), `{"id":"1","role":"tool",` +
			`"content":"","toolCallId":""}`},
		{message(agui.Message{ID: "1", Role: "activity", EncryptedValue: "e"}), `{"id":"1","role":"activity",` +
			`"content":{},"activityType":""}`},
		{message(agui.Message{ID: "1", Role: "reasoning", Name: "n", Metadata: json.RawMessage("1")}),
			`{"id":"1","role":"reasoning","content":""}`},
	} {
		if c.got != c.want {
			t.Errorf("got %s\nwant %s", c.got, c.want)
		}
	}
}

func message(m agui.Message) string { return string(m.AppendJSON(nil)) }

// TestPartsAreWrittenAnew: parts are encoded again, so that what clients warn about
// does not come back to them.
func TestPartsAreWrittenAnew(t *testing.T) {
	const named = `[{"type":"image","source":{"type":"url","value":"u","mimeType":"image/png"},` +
		`"metadata":{"filename":"f"}}]`
	const bare = `[{"type":"image","source":{"type":"url","value":"v"}}]`
	for content, want := range map[string]string{
		`[{"type":"binary","mimeType":"image/png","url":"u","filename":"f"}]`:         named,
		`[{"type":"text","text":"x","extra":1},{"type":"hologram"}]`:                  `[{"type":"text","text":"x"}]`,
		`[{"type":"image","source":{"type":"later","value":"v"}}]`:                    `[]`,
		`[{"type":"image","source":{"type":"url","value":"v","provider":"p","x":1}}]`: bare,
		`[{"type":"binary","mimeType":"image/png"}]`:                                  "",
		`[{"type":"image","source":{"type":"url"}}]`:                                  "",
		`[{}]`:   "",
		`[null]`: "",
	} {
		in, err := agui.DecodeInput([]byte(`{"threadId":"t","runId":"r","messages":[{"id":"1",` +
			`"role":"user","content":` + content + `}]}`))
		if (err == nil) != (want != "") || err == nil && string(in.Messages[0].Content) != want {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestRefs(t *testing.T) {
	for _, ev := range []agui.Event{agui.MessagesRef{Leaf: "m"}, agui.StateRef{}} {
		data := agui.Append(nil, ev)
		if _, ok := agui.RefOf(data); !ok || agui.TypeOf(data) != agui.EventType(ev) {
			t.Errorf("%s", data)
		}
	}
	if _, ok := agui.RefOf(agui.Append(nil, agui.StateSnapshot{Snapshot: json.RawMessage(`{"ref":"x"}`)})); ok {
		t.Error("a snapshot is taken for a reference")
	}
}

// TestAppendDelta: the short way writes what the long one does.
func TestAppendDelta(t *testing.T) {
	for _, ev := range []agui.Event{
		agui.TextMessageContent{MessageID: "a\"b", Delta: "c\n"},
		agui.ReasoningMessageContent{MessageID: "a\"b", Delta: "c\n"},
		agui.ToolCallArgs{ToolCallID: "a\"b", Delta: "c\n"},
	} {
		want := agui.Append(nil, ev)
		if got := agui.AppendDelta(nil, agui.EventType(ev), "a\"b", "c\n"); !bytes.Equal(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if got := agui.TypeOf(agui.AppendDelta(nil, "NONSENSE", "a", "b")); got != agui.TypeToolCallArgs {
		t.Errorf("what is no piece of a text became %s", got)
	}
}

// TestHotEncodeDoesNotAllocate is a promise of the package.
func TestHotEncodeDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 1024)
	for name, f := range map[string]func(){
		"text": func() {
			buf = agui.Append(buf[:0], agui.TextMessageContent{MessageID: "msg_1",
				Delta: "some words"})
		},
		"arguments": func() { buf = agui.Append(buf[:0], agui.ToolCallArgs{ToolCallID: "call_1", Delta: `{"a":`}) },
		"reasoning": func() {
			buf = agui.Append(buf[:0], agui.ReasoningMessageContent{MessageID: "msg_1", Delta: "hm"})
		},
		"delta":  func() { buf = agui.AppendDelta(buf[:0], agui.TypeToolCallArgs, "call_1", `{"a":`) },
		"legacy": func() { _, _ = agui.DialectLegacy.Event(buf) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
