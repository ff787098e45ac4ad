package agui_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// all returns the elements of a list, and then the error, if there is one.
func all(list [][]byte, err error) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// TestSnapshotPieces: in pieces, a snapshot has the bytes that it has as a whole, in every
// dialect; one that cannot be made to its end says so.
func TestSnapshotPieces(t *testing.T) {
	messages := [][]byte{
		[]byte(`{"id":"1","role":"user","content":[{"type":"text","id":"p","text":"a"},{"type":"image",` +
			`"source":{"type":"file","value":"f"}}]}`),
		[]byte(`{"id":"2","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f",` +
			`"arguments":"{}"}}],"metadata":{"a":1},"subagentRunId":"s"}`),
		[]byte(`{"id":"3","role":"tool","content":[{"type":"text","text":"é\u2028"}],"toolCallId":"c"}`),
		[]byte(`{"id":"4","role":"activity","content":{"a":[1]},"activityType":"x"}`),
	}
	for _, dialect := range []agui.Dialect{agui.DialectV1, agui.DialectLegacy} {
		for n := range len(messages) + 1 {
			want, _ := dialect.Event(agui.AppendMessagesSnapshot(nil, agui.Base{}, messages[:n]))
			var got []byte
			for piece, err := range agui.MessagesSnapshotPieces(dialect, all(messages[:n], nil)) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, piece...)
			}
			if string(got) != string(want) {
				t.Errorf("dialect %d:\n got %s\nwant %s", dialect, got, want)
			}
		}
	}
	gone := errors.New("gone")
	reply := &agui.Reply{Frames: func(yield func([]agui.Frame, error) bool) {
		yield(
			[]agui.Frame{
				{ID: "1-x", Data: []byte(`{}`)},
				{Pieces: agui.MessagesSnapshotPieces(agui.DialectV1, all(messages, nil))},
			},
			nil,
		)
		yield([]agui.Frame{{Pieces: agui.MessagesSnapshotPieces(agui.DialectV1, all(messages, gone))}}, nil)
	}}
	var whole []agui.Frame
	var last error
	for frames, err := range reply.Whole() {
		whole, last = append(whole, frames...), err
	}
	if len(whole) != 2 || string(whole[1].Data) != string(agui.AppendMessagesSnapshot(nil, agui.Base{}, messages)) ||
		!errors.Is(last, gone) {
		t.Errorf("%d frames, then %v", len(whole), last)
	}
	if !slices.ContainsFunc(whole, func(f agui.Frame) bool { return f.ID == "1-x" && string(f.Data) == "{}" }) {
		t.Errorf("%+v", whole)
	}
}
