package agui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

var (
	started  = agui.RunStarted{ThreadID: "t", RunID: "r"}
	finished = agui.RunFinished{ThreadID: "t", RunID: "r"}
)

func question(ids ...string) agui.RunFinished {
	o := &agui.Outcome{Type: agui.OutcomeInterrupt}
	for _, id := range ids {
		o.Interrupts = append(o.Interrupts, agui.Interrupt{ID: id, Reason: "input_required"})
	}
	return agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: o}
}

// TestIllegalSequences: the last event of each list is refused.
func TestIllegalSequences(t *testing.T) {
	text := agui.TextMessageStart{MessageID: "m"}
	call := agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f"}
	patch := json.RawMessage(`[{"op":"add","path":"/a","value":1}]`)
	for name, events := range map[string][]agui.Event{
		"first event is not the run's start": {text},
		"nested run":                         {started, agui.RunStarted{ThreadID: "t", RunID: "r2"}},
		"run of another thread":              {started, finished, agui.RunStarted{ThreadID: "t2", RunID: "r2"}},
		"run without ids":                    {agui.RunStarted{ThreadID: "t"}},
		"end of another run":                 {started, agui.RunFinished{ThreadID: "t", RunID: "r2"}},
		"end of another thread":              {started, agui.RunFinished{ThreadID: "t2", RunID: "r"}},
		"event after the end":                {started, finished, text},
		"second end":                         {started, finished, finished},
		"end after an error":                 {started, agui.RunError{Message: "x"}, finished},
		"error after the end":                {started, finished, agui.RunError{Message: "late"}},
		"content without start":              {started, agui.TextMessageContent{MessageID: "m"}},
		"end without start":                  {started, agui.TextMessageEnd{MessageID: "m"}},
		"start of an open message":           {started, text, text},
		"message without an id":              {started, agui.TextMessageStart{}},
		"text message of a tool":             {started, agui.TextMessageStart{MessageID: "m", Role: "tool"}},
		"arguments without a call":           {started, agui.ToolCallArgs{ToolCallID: "c"}},
		"call without a name":                {started, agui.ToolCallStart{ToolCallID: "c"}},
		"result of an open call": {started, call,
			agui.ToolCallResult{MessageID: "m", ToolCallID: "c", Content: json.RawMessage(`""`)}},
		"reasoning content without start": {started, agui.ReasoningMessageContent{MessageID: "m"}},
		"reasoning span closed twice": {started, agui.ReasoningStart{MessageID: "m"},
			agui.ReasoningEnd{MessageID: "m"}, agui.ReasoningEnd{MessageID: "m"}},
		"step finished without start":     {started, agui.StepFinished{StepName: "s"}},
		"step started twice":              {started, agui.StepStarted{StepName: "s"}, agui.StepStarted{StepName: "s"}},
		"first chunk without an id":       {started, agui.TextMessageChunk{Delta: "x"}},
		"first tool chunk without a name": {started, agui.ToolCallChunk{ToolCallID: "c"}},
		"chunk with another role": {started, agui.TextMessageChunk{MessageID: "m", Role: "user"},
			agui.TextMessageChunk{MessageID: "m", Role: "assistant"}},
		"chunk with another tool": {started, agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "f"},
			agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "g"}},
		"chunk after a custom event": {started, agui.TextMessageChunk{MessageID: "m"}, agui.Custom{Name: "n"},
			agui.TextMessageChunk{Delta: "x"}},
		"chunk of a message that is open":  {started, text, agui.TextMessageChunk{MessageID: "m"}},
		"start of a message in chunk form": {started, agui.TextMessageChunk{MessageID: "m"}, text},
		"delta without a snapshot":         {started, agui.StateDelta{Delta: patch}},
		"unknown patch operation": {started, agui.StateSnapshot{},
			agui.StateDelta{Delta: json.RawMessage(`[{"op":"swap","path":"/a"}]`)}},
		"path that is not a pointer": {started, agui.StateSnapshot{},
			agui.StateDelta{Delta: json.RawMessage(`[{"op":"remove","path":"a"}]`)}},
		"snapshot over an open message": {started, text, agui.MessagesSnapshot{}},
		"interrupt without a question":  {started, question()},
		"two interrupts with one id":    {started, question("i", "i")},
		"unknown outcome": {started,
			agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: "maybe"}}},
		"custom event without a name":  {started, agui.Custom{}},
		"secret of an unknown subtype": {started, agui.ReasoningEncryptedValue{Subtype: "run", EntityID: "r"}},
		"subagent without a name":      {started, agui.SubagentStarted{SubagentRunID: "a"}},
		"subagent with an unknown parent": {started,
			agui.SubagentStarted{SubagentRunID: "a", Name: "n", ParentSubagentRunID: "b"}},
		"subagent ended without start": {started, agui.SubagentFinished{SubagentRunID: "a"}},
		"content attributed to somebody else": {started, agui.TextMessageStart{MessageID: "m", SubagentRunID: "a"},
			agui.TextMessageContent{MessageID: "m", SubagentRunID: "b"}},
		"message opened again by another": {started, agui.TextMessageStart{MessageID: "m", SubagentRunID: "a"},
			agui.TextMessageEnd{MessageID: "m", SubagentRunID: "a"}, text},
		"message opened again as another": {started, text, agui.TextMessageEnd{MessageID: "m"},
			agui.TextMessageStart{MessageID: "m", Role: "user"}},
		"call opened again as another": {started, call, agui.ToolCallEnd{ToolCallID: "c"},
			agui.ToolCallStart{ToolCallID: "c", ToolCallName: "g"}},
		"call of a user's message": {started, agui.TextMessageStart{MessageID: "m", Role: "user"},
			agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "m"}},
		"call of another's message": {started, text,
			agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "m", SubagentRunID: "a"}},
		"reasoning in another's span": {started, agui.ReasoningStart{MessageID: "m"},
			agui.ReasoningMessageStart{MessageID: "m", SubagentRunID: "a"}},
		"secret of another's message": {started, text,
			agui.ReasoningEncryptedValue{Subtype: "message", EntityID: "m", EncryptedValue: "e", SubagentRunID: "a"}},
		"text in an activity": {started,
			agui.ActivitySnapshot{MessageID: "m", ActivityType: "t", Content: json.RawMessage(`{}`)}, text},
		"activity over a message": {started, text,
			agui.ActivitySnapshot{MessageID: "m", ActivityType: "t", Content: json.RawMessage(`{}`)}},
		"activity that is a list": {started,
			agui.ActivitySnapshot{MessageID: "m", ActivityType: "t", Content: json.RawMessage(`[]`)}},
		"delta of a message as an activity": {started, text,
			agui.ActivityDelta{MessageID: "m", ActivityType: "t", Patch: patch}},
		"result with the id of a message": {started, text,
			agui.ToolCallResult{MessageID: "m", ToolCallID: "c", Content: json.RawMessage(`""`)}},
		"result without content": {started, agui.ToolCallResult{MessageID: "r", ToolCallID: "c"}},
		"chunk of another subagent": {started, agui.TextMessageChunk{MessageID: "m"},
			agui.TextMessageChunk{Delta: "x", SubagentRunID: "a"}},
		"chunk of a call with another parent": {started, agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "f"},
			agui.ToolCallChunk{ToolCallID: "c", ParentMessageID: "m"}},
		"chunk with an unknown role": {started, agui.TextMessageChunk{MessageID: "m", Role: "tool"}},
		"patch that is null": {started, agui.StateSnapshot{},
			agui.StateDelta{Delta: json.RawMessage(`null`)}},
		"patch without a value": {started, agui.StateSnapshot{},
			agui.StateDelta{Delta: json.RawMessage(`[{"op":"add","path":"/a"}]`)}},
		"patch that moves from nowhere": {started, agui.StateSnapshot{},
			agui.StateDelta{Delta: json.RawMessage(`[{"op":"move","path":"/a"}]`)}},
		"pointer with a bad escape": {started, agui.StateSnapshot{},
			agui.StateDelta{Delta: json.RawMessage(`[{"op":"remove","path":"/a~2"}]`)}},
		"snapshot that changes what it was": {started, text, agui.TextMessageEnd{MessageID: "m"},
			agui.MessagesSnapshot{Messages: []agui.Message{{ID: "m", Role: "reasoning"}}}},
		"content that lost its attribution": {started, agui.TextMessageStart{MessageID: "m", SubagentRunID: "a"},
			agui.TextMessageContent{MessageID: "m"}},
	} {
		var q agui.Sequencer
		for i, ev := range events {
			_, err := q.Next(ev)
			var refused *agui.SequenceError
			if last := i == len(events)-1; last != errors.As(err, &refused) {
				t.Errorf("%s: event %d %s: %v", name, i, agui.EventType(ev), err)
			}
		}
	}
}

// TestFinishClosesInOrder: everything open is closed before the run ends, the newest
// first.
func TestFinishClosesInOrder(t *testing.T) {
	var q agui.Sequencer
	var sent []agui.Event
	for _, ev := range []agui.Event{
		started, agui.StepStarted{StepName: "s"}, agui.ReasoningStart{MessageID: "x"},
		agui.ReasoningMessageStart{MessageID: "x"},
		agui.TextMessageStart{MessageID: "m"}, agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f"},
	} {
		if _, err := q.Next(ev); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, ev)
	}
	if open := q.Reopen(); len(open) != 5 || agui.EventType(open[4]) != agui.TypeToolCallStart {
		t.Errorf("reopen: %v", open)
	}
	before, err := q.Next(finished)
	if err != nil {
		t.Fatal(err)
	}
	var types []agui.Type
	for _, ev := range before {
		types = append(types, agui.EventType(ev))
	}
	want := []agui.Type{
		agui.TypeToolCallEnd,
		agui.TypeTextMessageEnd,
		agui.TypeReasoningMessageEnd,
		agui.TypeReasoningEnd,
		agui.TypeStepFinished,
	}
	if !slices.Equal(types, want) {
		t.Errorf("closed as %v, want %v", types, want)
	}
	if err := agui.Verify(slices.Values(append(append(sent, before...), finished))); err != nil {
		t.Error(err)
	}
}

// TestStepsGoOn: a step goes on while an answer in it is taken back.
func TestStepsGoOn(t *testing.T) {
	var q agui.Sequencer
	next := func(ev agui.Event) error {
		_, err := q.Next(ev)
		return err
	}
	for _, ev := range []agui.Event{
		started, agui.StepStarted{StepName: "a"}, agui.TextMessageStart{MessageID: "m"},
		agui.StepStarted{StepName: "b"},
	} {
		if err := next(ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := next(agui.MessagesRef{}); err == nil {
		t.Error("a snapshot may come within a message")
	}
	if closed := q.CloseContent(); len(closed) != 1 || agui.EventType(closed[0]) != agui.TypeTextMessageEnd {
		t.Errorf("closed: %v", closed)
	}
	if err := next(agui.MessagesRef{}); err != nil || !slices.Equal(q.Steps(), []string{"a", "b"}) {
		t.Errorf("%v, open: %q", err, q.Steps())
	}
	if err := next(agui.StepFinished{StepName: "a"}); err != nil || !slices.Equal(q.Steps(), []string{"b"}) {
		t.Errorf("%v, open: %q", err, q.Steps())
	}
}

// TestTakenBackAnswer: after a snapshot without an answer, the ids of that answer are
// free, even for a call of another message.
func TestTakenBackAnswer(t *testing.T) {
	for _, snapshot := range []agui.Event{agui.MessagesRef{Leaf: "u"}, agui.MessagesSnapshot{}} {
		var q agui.Sequencer
		for _, ev := range []agui.Event{
			started, agui.TextMessageStart{MessageID: "m"}, agui.TextMessageEnd{MessageID: "m"},
			agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "m"},
			agui.ToolCallEnd{ToolCallID: "c"},
			agui.ToolCallResult{MessageID: "r", ToolCallID: "c", Content: json.RawMessage(`""`)},
			snapshot,
			agui.ToolCallStart{ToolCallID: "c", ToolCallName: "g", ParentMessageID: "n"},
			agui.ToolCallEnd{ToolCallID: "c"},
			agui.ToolCallResult{MessageID: "r", ToolCallID: "c", Content: json.RawMessage(`""`)}, finished,
		} {
			if _, err := q.Next(ev); err != nil {
				t.Errorf("%T: %v", snapshot, err)
			}
		}
	}
}

// TestReopenChunk: a reader who joins in the middle of a chunk item gets its first
// chunk again; without it the next chunk would fail the run.
func TestReopenChunk(t *testing.T) {
	var q agui.Sequencer
	for _, ev := range []agui.Event{started, agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "f", Delta: "{"},
		agui.ToolCallChunk{Delta: "}"}} {
		if _, err := q.Next(ev); err != nil {
			t.Fatal(err)
		}
	}
	open := q.Reopen()
	if len(open) != 1 || string(agui.Append(nil,
		open[0])) != `{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f"}` {
		t.Errorf("%v", open)
	}
}

// TestAssembleAsTheClient: order, attribution and content are as in the official
// client.
func TestAssembleAsTheClient(t *testing.T) {
	var a agui.Assembler
	for _, ev := range []agui.Event{
		agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "m", SubagentRunID: "s"},
		agui.TextMessageStart{MessageID: "m", SubagentRunID: "s"},
		agui.TextMessageChunk{MessageID: "n", Delta: "a"}, agui.TextMessageChunk{Delta: "b"},
		agui.ReasoningEncryptedValue{Subtype: "message", EntityID: "c", EncryptedValue: "e"},
		agui.ToolCallResult{MessageID: "r", ToolCallID: "c", Content: json.RawMessage(`"x"`)},
	} {
		a.Apply(ev)
	}
	var got []byte
	for _, m := range a.Messages() {
		got = append(m.AppendJSON(got), '\n')
	}
	want := `{"id":"m","role":"assistant",` +
		`"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}],"subagentRunId":"s"}
{"id":"r","role":"tool","content":"x","toolCallId":"c"}
{"id":"n","role":"assistant","content":"ab"}
`
	if string(got) != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestVerifyRefuses(t *testing.T) {
	text := agui.TextMessageStart{MessageID: "m", SubagentRunID: "a"}
	for name, events := range map[string][]agui.Event{
		"nothing":          {},
		"no end":           {started},
		"open at the end":  {started, text, finished},
		"late error":       {started, finished, agui.RunError{Message: "x"}},
		"another run":      {started, agui.RunFinished{ThreadID: "t", RunID: "r2"}},
		"double interrupt": {started, question("i", "i")},
		"no interrupt":     {started, question()},
		"another subagent": {started, text, agui.TextMessageEnd{MessageID: "m", SubagentRunID: "b"}, finished},
		"another's step": {started, agui.StepStarted{StepName: "s"},
			agui.StepFinished{StepName: "s", SubagentRunID: "a"}, finished},
		"result while open": {started, agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f"},
			agui.ToolCallResult{MessageID: "m", ToolCallID: "c"}},
		"delta of no state": {started, agui.StateDelta{}, finished},
		"another's chunk": {started, agui.TextMessageChunk{MessageID: "m"},
			agui.TextMessageChunk{SubagentRunID: "a"}, finished},
		"chunk after custom": {started, agui.TextMessageChunk{MessageID: "m"}, agui.Custom{Name: "n"},
			agui.TextMessageChunk{}, finished},
	} {
		if err := agui.Verify(slices.Values(events)); err == nil {
			t.Errorf("%s passed", name)
		}
	}
}

func TestReopeningAppends(t *testing.T) {
	var a agui.Assembler
	for _, ev := range []agui.Event{
		agui.TextMessageStart{MessageID: "m"}, agui.TextMessageContent{MessageID: "m", Delta: "a"},
		agui.TextMessageEnd{MessageID: "m"},
		agui.TextMessageStart{MessageID: "m"}, agui.TextMessageContent{MessageID: "m", Delta: "b"},
		agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "m"},
		agui.ToolCallArgs{ToolCallID: "c", Delta: "{"},
		agui.ToolCallStart{ToolCallID: "d", ToolCallName: "g"},
	} {
		a.Apply(ev)
	}
	var got []byte
	for _, m := range a.Messages() {
		got = append(m.AppendJSON(got), '\n')
	}
	want := `{"id":"m","role":"assistant","content":"ab",` +
		`"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}
{"id":"d","role":"assistant","toolCalls":[{"id":"d","type":"function","function":{"name":"g","arguments":""}}]}
`
	if string(got) != want {
		t.Errorf("got:\n%s", got)
	}
}

// program turns bytes into events, most of them in the wrong place.
func program(code []byte) []agui.Event {
	id := func(b byte) string { return string('a' + rune(b%3)) }
	agent := func(b byte) string { return []string{"", "", "a"}[b%3] }
	var out []agui.Event
	for i := 0; i+1 < len(code); i += 2 {
		x := code[i+1]
		out = append(out, []agui.Event{
			agui.RunStarted{ThreadID: "t", RunID: id(x)},
			agui.RunFinished{ThreadID: "t", RunID: id(x)},
			agui.RunError{Message: "x"},
			agui.StepStarted{StepName: id(x), SubagentRunID: agent(x >> 4)},
			agui.StepFinished{StepName: id(x), SubagentRunID: agent(x >> 4)},
			agui.TextMessageStart{MessageID: id(x), SubagentRunID: agent(x >> 4)},
			agui.TextMessageContent{MessageID: id(x), Delta: "d", SubagentRunID: agent(x >> 4)},
			agui.TextMessageEnd{MessageID: id(x), SubagentRunID: agent(x >> 4)},
			agui.TextMessageChunk{MessageID: []string{"", id(x)}[x>>7], Delta: "d"},
			agui.ToolCallStart{ToolCallID: id(x), ToolCallName: "f"},
			agui.ToolCallArgs{ToolCallID: id(x), Delta: "{"},
			agui.ToolCallEnd{ToolCallID: id(x)},
			agui.ToolCallChunk{ToolCallID: []string{"", id(x)}[x>>7], ToolCallName: []string{"", "f", "g"}[x%3]},
			agui.ToolCallResult{MessageID: "r" + id(x), ToolCallID: id(x), Content: json.RawMessage(`""`)},
			agui.ReasoningStart{MessageID: id(x)},
			agui.ReasoningEnd{MessageID: id(x)},
			agui.ReasoningMessageStart{MessageID: id(x)},
			agui.ReasoningMessageContent{MessageID: id(x), Delta: "d"},
			agui.ReasoningMessageEnd{MessageID: id(x)},
			agui.ReasoningMessageChunk{MessageID: []string{"", id(x)}[x>>7], Delta: "d"},
			agui.ReasoningEncryptedValue{Subtype: "message", EntityID: id(x), EncryptedValue: "e"},
			agui.StateSnapshot{Snapshot: json.RawMessage(`{}`)},
			agui.StateDelta{Delta: json.RawMessage(`[]`)},
			agui.MessagesSnapshot{},
			agui.ActivitySnapshot{MessageID: id(x), ActivityType: "t", Content: json.RawMessage(`{}`)},
			agui.SubagentStarted{SubagentRunID: id(x), Name: "n", ParentSubagentRunID: []string{"", "a", "b"}[x>>4%3]},
			agui.SubagentFinished{SubagentRunID: id(x)},
			agui.SubagentError{SubagentRunID: id(x), Message: "x"},
			agui.Raw{Event: json.RawMessage(`1`)},
			agui.Custom{Name: "n", Value: json.RawMessage(`1`)},
		}[int(code[i])%30])
	}
	return out
}

// FuzzSequencer: whatever events it is given, those it accepts form a legal stream.
func FuzzSequencer(f *testing.F) {
	f.Add([]byte{0, 0, 5, 0, 6, 0, 7, 0, 1, 0})
	f.Add([]byte{0, 0, 25, 0, 5, 32, 9, 1, 26, 0, 1, 0})
	f.Add([]byte{0, 1, 8, 128, 8, 0, 29, 0, 8, 0, 12, 129, 2, 0, 0, 2})
	f.Fuzz(func(t *testing.T, code []byte) {
		var q agui.Sequencer
		var sent []agui.Event
		run := ""
		for _, ev := range append([]agui.Event{agui.RunStarted{ThreadID: "t", RunID: "a"}}, program(code)...) {
			open := fmt.Sprint(q.Reopen())
			before, err := q.Next(ev)
			if err != nil {
				if fmt.Sprint(q.Reopen()) != open {
					t.Fatalf("the refused %s left a trace", agui.EventType(ev))
				}
				continue
			}
			sent = append(append(sent, before...), ev)
			if s, ok := ev.(agui.RunStarted); ok {
				run = s.RunID
			}
		}
		if q.Running() {
			before, err := q.Next(agui.RunFinished{ThreadID: "t", RunID: run})
			if err != nil {
				t.Fatal(err)
			}
			sent = append(append(sent, before...), agui.RunFinished{ThreadID: "t", RunID: run})
		}
		if err := agui.Verify(slices.Values(sent)); err != nil {
			t.Fatalf("%v\n%v", err, sent)
		}
	})
}

// FuzzDelta: the hot path decides as Next does.
func FuzzDelta(f *testing.F) {
	f.Add([]byte{0, 0, 5, 0}, uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, code []byte, kind, id uint8) {
		var a, b agui.Sequencer
		for _, ev := range program(code) {
			_, _ = a.Next(ev)
			_, _ = b.Next(ev)
		}
		name := string('a' + rune(id%3))
		ev := []agui.Event{agui.TextMessageContent{MessageID: name}, agui.ToolCallArgs{ToolCallID: name},
			agui.ReasoningMessageContent{MessageID: name}}[kind%3]
		_, want := a.Next(ev)
		if got := b.Delta(agui.EventType(ev), name); (got == nil) != (want == nil) {
			t.Fatalf("Delta says %v, Next says %v", got, want)
		}
	})
}
