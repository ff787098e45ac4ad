package tanstack

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

func historyOf(messages ...string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, m := range messages {
			if !yield([]byte(m), nil) {
				return
			}
		}
	}
}

const (
	asking = `{"id":"a","role":"assistant","toolCalls":[` +
		`{"id":"c1","type":"function","function":{"name":"pay","arguments":"{\"n\":1}"}},` +
		`{"id":"c2","type":"function","function":{"name":"pick","arguments":"{"}}]}`
	approve = `{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}`
)

// questions are an approval, and a question about nothing.
func questions() []agui.Interrupt {
	return []agui.Interrupt{
		{ID: "q1", Reason: "tool_call", ToolCallID: "c1", ResponseSchema: json.RawMessage(approve),
			Metadata: json.RawMessage(`{"rule":"r"}`)},
		{ID: "q2", Reason: "input_required"},
	}
}

// end is what a page is sent of the end of a run that has left this open.
func end(t *testing.T, ev agui.RunFinished, open func() (*Open, error)) (sent []string) {
	t.Helper()
	reply := &agui.Reply{RunID: "r", Frames: func(yield func([]agui.Frame, error) bool) {
		_ = yield(nil, nil) && yield([]agui.Frame{
			{ID: "1", Data: agui.Append(nil, agui.RunStarted{ThreadID: "t", RunID: "r"})},
			{ID: "2", Data: agui.Append(nil, ev)},
		}, nil)
	}}
	for frames, err := range Encode(reply, open).Frames {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			sent = append(sent, f.ID+" "+string(f.Data))
		}
	}
	return sent
}

// TestEncode: the end of a run tells the client what it is to do, in its own words, and keeps its place in the log.
func TestEncode(t *testing.T) {
	finished := agui.RunFinished{ThreadID: "t", RunID: "shown", Outcome: &agui.Outcome{
		Type: agui.OutcomeInterrupt, Interrupts: questions(),
	}}
	open := &Open{Run: "r", Questions: questions(), Calls: []string{"c2", "gone"}, History: historyOf(asking)}
	sent := end(t, finished, func() (*Open, error) { return open, nil })
	want := []string{
		`1 {"type":"RUN_STARTED","threadId":"t","runId":"r"}`,
		` {"type":"CUSTOM","name":"tool-input-available","value":{"toolCallId":"c2","toolName":"pick","input":{}}}`,
		`2 {"type":"RUN_FINISHED","threadId":"t","runId":"shown","outcome":{"type":"interrupt","interrupts":[` +
			`{"id":"q1","reason":"approval_required","toolCallId":"c1","responseSchema":` + approve +
			`,"metadata":{"input":{"n":1},"kind":"approval","rule":"r","tanstack:interruptBinding":{"v":1,` +
			`"kind":"generic","interruptId":"q1","interruptedRunId":"shown","generation":0,` +
			`"responseSchemaHash":"sha256:HASH"},"toolName":"pay"}},` +
			`{"id":"q2","reason":"input_required","metadata":{"tanstack:interruptBinding":{"v":1,` +
			`"kind":"generic","interruptId":"q2","interruptedRunId":"shown","generation":0}}}]}}`,
	}
	hash, _ := schemaHash(json.RawMessage(approve))
	if got := strings.Join(sent, "\n"); got != strings.ReplaceAll(strings.Join(want, "\n"), "sha256:HASH", hash) {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	for name, open := range map[string]func() (*Open, error){
		"of another run":  func() (*Open, error) { return &Open{Run: "r2", Questions: questions()}, nil },
		"nothing":         func() (*Open, error) { return &Open{Run: "r"}, nil },
		"cannot be found": func() (*Open, error) { return nil, errors.New("gone") },
	} {
		if got := end(t, finished, open); len(got) != 2 || strings.Contains(got[1], "tanstack") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestOpen: a page that is loaded again is told the same, and the call that waits shows it.
func TestOpen(t *testing.T) {
	open := &Open{Run: "r", Questions: questions(), History: historyOf(asking)}
	var shown []string
	for m, err := range open.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(m))
	}
	if got := strings.Join(shown, ""); !strings.Contains(got,
		`"name":"pay","arguments":"{\"n\":1}","state":"approval-requested",`+
			`"approval":{"id":"q1","needsApproval":true}`) ||
		!strings.Contains(got, `"name":"pick","arguments":"{","state":"input-complete"}`) {
		t.Error(got)
	}
	if got := open.Bound(); got[0].Reason != "approval_required" || open.Questions[0].Reason != "tool_call" {
		t.Errorf("%+v", got)
	}
}

// TestSchemaHash: a schema has the hash that the client makes of it, with JavaScript's order of names and its way of
// writing numbers and strings.
func TestSchemaHash(t *testing.T) {
	for schema, want := range map[string]string{
		`{"b":[1, 1.50, 1e21, 1e-7, -0, true, null],"a":{}}`:                `{"a":{},"b":[1,1.5,1e+21,1e-7,0,true,null]}`,
		"{\"\uFFFD\":1,\"\U0001F600\":\"<\u2028\u2029\\b\\u001f>\",\"\":2}": "{\"\":2,\"\U0001F600\":\"<\u2028\u2029\\b\\u001f>\",\"\uFFFD\":1}",
	} {
		var v any
		if err := json.Unmarshal([]byte(schema), &v); err != nil {
			t.Fatal(err)
		}
		if got := string(canonical(nil, v)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// Of digestInterruptJson in @tanstack/ai 0.33.
	if got, ok := schemaHash(json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"}}}`)); !ok ||
		got != "sha256:cf02c74d30b5aa436d45f581780e03fe2aef4b97d233bef3acdef4d9ca1176d1" {
		t.Error(got)
	}
	if _, ok := schemaHash(json.RawMessage(`{`)); ok {
		t.Error("what is no JSON has a hash")
	}
}
