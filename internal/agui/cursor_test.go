package agui_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// marked returns the events of frames as a client gets them that asked for cursors.
func marked(t testing.TB, frames ...agui.Frame) []string {
	t.Helper()
	before := slices.Clone(frames)
	reply := &agui.Reply{Frames: func(yield func([]agui.Frame, error) bool) { yield(frames, nil) }}
	var out []string
	for batch, err := range reply.WithCursors().Whole() {
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range batch {
			if f.ID != before[i].ID {
				t.Errorf("the id %q became %q", before[i].ID, f.ID)
			}
			out = append(out, string(f.Data))
		}
	}
	for i := range before {
		if !bytes.Equal(frames[i].Data, before[i].Data) || (frames[i].Pieces == nil) != (before[i].Pieces == nil) {
			t.Errorf("the frame that others get was changed: %s", frames[i].Data)
		}
	}
	return out
}

func pieces(list ...string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, p := range list {
			if !yield([]byte(p), nil) {
				return
			}
		}
	}
}

// TestCursorInMetadata: the cursor stands beside what an event's metadata has.
func TestCursorInMetadata(t *testing.T) {
	const cursor = `"metadata":{"holdfast":{"cursor":"7-ab"}}`
	for name, c := range map[string]struct {
		frame agui.Frame
		want  string
	}{
		"nothing else": {agui.Frame{ID: "7-ab", Data: []byte(`{"type":"TEXT_MESSAGE_CONTENT",` +
			`"messageId":"m","delta":"d"}`)},
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"d",` + cursor + `}`},
		"a prelude": {agui.Frame{Data: []byte(`{"type":"STATE_SNAPSHOT","snapshot":{}}`)},
			`{"type":"STATE_SNAPSHOT","snapshot":{}}`},
		"our own": {
			agui.Frame{ID: "7-ab", Data: []byte(`{"type":"RUN_STARTED","threadId":"t","runId":"r",` +
				`"metadata":{"holdfast":{"runId":"q"}}}`)},
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","metadata":{"holdfast":{"cursor":"7-ab","runId":"q"}}}`,
		},
		"somebody's": {
			agui.Frame{ID: "7-ab", Data: []byte(`{"type":"CUSTOM","name":"n","metadata":{"a\"b":1,` +
				`"holdfast":7},"value":null}`)},
			`{"type":"CUSTOM","name":"n","value":null,"metadata":{"a\"b":1,"holdfast":{"cursor":"7-ab"}}}`,
		},
		"metadata of a part": {
			agui.Frame{ID: "7-ab", Data: []byte(`{"type":"CUSTOM","name":"n","value":{"metadata":{"a":1}}}`)},
			`{"type":"CUSTOM","name":"n","value":{"metadata":{"a":1}},` + cursor + `}`,
		},
		"no object": {agui.Frame{ID: "7-ab", Data: []byte(`{"type":"CUSTOM","name":"n","value":1,"metadata":null}`)},
			`{"type":"CUSTOM","name":"n","value":1,` + cursor + `}`},
		"a snapshot in pieces": {
			agui.Frame{ID: "7-ab", Pieces: pieces(`{"type":"MESSAGES_SNAPSHOT","messages":[`,
				`{"id":"m","metadata":{"a":1}}`, `]}`)},
			`{"type":"MESSAGES_SNAPSHOT",` + cursor + `,"messages":[{"id":"m","metadata":{"a":1}}]}`,
		},
		"a large event": {
			agui.Frame{ID: "7-ab", Pieces: pieces(`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","content":{},` +
				`"metadata":{"holdfast":{"of":"a"}}}`)},
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","content":{},` +
				`"metadata":{"holdfast":{"cursor":"7-ab","of":"a"}}}`,
		},
	} {
		if got := marked(t, c.frame); got[0] != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got[0], c.want)
		}
	}
	broken := errors.New("gone")
	reply := &agui.Reply{Frames: func(yield func([]agui.Frame, error) bool) {
		yield([]agui.Frame{{ID: "7-ab", Pieces: func(yield func([]byte, error) bool) { yield(nil, broken) }}}, nil)
	}}
	for _, err := range reply.WithCursors().Whole() {
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
}

// TestCursorInEveryEvent: whatever the event, it differs in nothing but its metadata.
func TestCursorInEveryEvent(t *testing.T) {
	lines, err := os.ReadFile("testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(lines) {
		sameButCursor(t, bytes.TrimSpace(line))
	}
}

// sameButCursor checks an event in the package's own encoding.
func sameButCursor(t testing.TB, data []byte) {
	t.Helper()
	got := marked(t, agui.Frame{ID: `9-"\`, Data: data})[0]
	var with, without map[string]any
	if err := errors.Join(json.Unmarshal([]byte(got), &with), json.Unmarshal(data, &without)); err != nil {
		t.Fatalf("%v\n%s\n%s", err, data, got)
	}
	metadata, _ := with["metadata"].(map[string]any)
	own, _ := metadata["holdfast"].(map[string]any)
	if own["cursor"] != `9-"\` || bytes.ContainsAny([]byte(got), "\r\n") ||
		agui.TypeOf([]byte(got)) != agui.TypeOf(data) {
		t.Fatalf("%s\nbecame\n%s", data, got)
	}
	delete(own, "cursor")
	if before, _ := without["metadata"].(map[string]any); before["holdfast"] == nil {
		delete(metadata, "holdfast")
	} else if _, is := before["holdfast"].(map[string]any); !is {
		metadata["holdfast"] = before["holdfast"]
	}
	if len(metadata) == 0 && without["metadata"] == nil {
		delete(with, "metadata")
	}
	if !reflect.DeepEqual(with, without) {
		t.Fatalf("%s\nbecame\n%s", data, got)
	}
}

// FuzzCursorInMetadata: it holds for every event that the decoder takes.
func FuzzCursorInMetadata(f *testing.F) {
	f.Add([]byte(`{"type":"CUSTOM","name":"n","value":{"metadata":1},` +
		`"metadata":{"holdfast":{"cursor":"x"},"a<b":"\u2028"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := agui.DecodeEvent(data)
		if err != nil {
			return
		}
		encoded := agui.Append(nil, ev)
		if bytes.Contains(encoded, []byte(`"cursor"`)) {
			return // sameButCursor takes it for the one that was put in
		}
		sameButCursor(t, encoded)
	})
}

// BenchmarkCursorInMetadata is what it costs to put a cursor into a token, for those who ask
// for it.
func BenchmarkCursorInMetadata(b *testing.B) {
	frames := []agui.Frame{
		{
			ID:   "1057-x7k2ab",
			Data: agui.Append(nil, agui.TextMessageContent{MessageID: "msg_7h2k9x3m5q", Delta: "some words "}),
		},
	}
	reply := &agui.Reply{Frames: func(yield func([]agui.Frame, error) bool) {
		for b.Loop() {
			if !yield(frames, nil) {
				return
			}
		}
	}}
	b.ReportAllocs()
	for range reply.WithCursors().Frames {
	}
}
