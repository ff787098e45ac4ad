package aisdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}

const r1, t1 = "r1", "t"

// log are events as records, from the number on.
func log(from int, events ...agui.Event) []agui.Frame {
	var frames []agui.Frame
	for i, ev := range events {
		frames = append(frames, agui.Frame{ID: strconv.Itoa(from+i) + "-a", Data: agui.Append(nil, ev)})
	}
	return frames
}

// prelude are events without records; a snapshot comes in pieces.
func prelude(events ...agui.Event) []agui.Frame {
	frames := log(0, events...)
	for i := range frames {
		frames[i].ID = ""
		if s, is := events[i].(agui.MessagesSnapshot); is {
			frames[i] = inPieces(frames[i], s)
		}
	}
	return frames
}

func inPieces(f agui.Frame, s agui.MessagesSnapshot) agui.Frame {
	f.Data, f.Pieces = nil, agui.MessagesSnapshotPieces(agui.DialectV1, func(yield func([]byte, error) bool) {
		for i := range s.Messages {
			if !yield(s.Messages[i].AppendJSON(nil), nil) {
				return
			}
		}
	})
	return f
}

func started() agui.Event { return agui.RunStarted{ThreadID: t1, RunID: r1, ProtocolVersion: "1.0"} }

func finished(o *agui.Outcome) agui.Event {
	in, out := int64(7), int64(3)
	return agui.RunFinished{ThreadID: t1, RunID: r1, Outcome: o, Usage: []holdfast.Usage{
		{Provider: "p", Model: "m", InputTokens: &in, OutputTokens: &out}, {Model: "n", InputTokens: &in},
	}}
}

func success() agui.Event { return finished(&agui.Outcome{Type: agui.OutcomeSuccess}) }

func saying(id string, words ...string) []agui.Event {
	events := []agui.Event{agui.TextMessageStart{MessageID: id, Role: "assistant"}}
	for _, w := range words {
		events = append(events, agui.TextMessageContent{MessageID: id, Delta: w})
	}
	return append(events, agui.TextMessageEnd{MessageID: id})
}

func thinking(id string, words ...string) []agui.Event {
	events := []agui.Event{agui.ReasoningStart{MessageID: id}, agui.ReasoningMessageStart{MessageID: id}}
	for _, w := range words {
		events = append(events, agui.ReasoningMessageContent{MessageID: id, Delta: w})
	}
	return append(events, agui.ReasoningMessageEnd{MessageID: id}, agui.ReasoningEnd{MessageID: id})
}

func calling(id, message, tool string, args ...string) []agui.Event {
	events := []agui.Event{agui.ToolCallStart{ToolCallID: id, ToolCallName: tool, ParentMessageID: message}}
	for _, a := range args {
		events = append(events, agui.ToolCallArgs{ToolCallID: id, Delta: a})
	}
	return append(events, agui.ToolCallEnd{ToolCallID: id})
}

func resulting(call, text, metadata string) agui.Event {
	ev := agui.ToolCallResult{MessageID: "res-" + call, ToolCallID: call, Content: quoted(text), Role: "tool"}
	ev.Metadata = json.RawMessage(metadata)
	return ev
}

func joined(parts ...any) []agui.Event {
	var all []agui.Event
	for _, p := range parts {
		switch p := p.(type) {
		case agui.Event:
			all = append(all, p)
		case []agui.Event:
			all = append(all, p...)
		}
	}
	return all
}

func snapshotOf(t *testing.T, messages ...string) agui.MessagesSnapshot {
	t.Helper()
	var s agui.MessagesSnapshot
	for _, raw := range messages {
		m, err := agui.DecodeMessage([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		s.Messages = append(s.Messages, m)
	}
	return s
}

// posted is what a client has posted.
func posted(t *testing.T, body string) *Post {
	t.Helper()
	p, err := Decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	asking = `{"id":"t","messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`

	answering = `{"id":"t","trigger":"submit-message","messageId":"answer-u1","messages":[` +
		`{"id":"u1","role":"user","parts":[{"type":"text","text":"hi"}]},{"id":"answer-u1",` +
		`"role":"assistant","parts":[` +
		`{"type":"tool-pay","toolCallId":"c1","state":"approval-responded","input":{},` +
		`"approval":{"id":"i1","approved":true}},` +
		`{"type":"tool-pay","toolCallId":"c2","state":"approval-responded","input":{},` +
		`"approval":{"id":"i2","approved":false,"reason":"too much"}}]}]}`

	userMessage1 = `{"id":"u1","role":"user","content":"hi"}`
)

// streams are streams, and what they are encoded with.
func streams(t *testing.T) map[string]struct {
	Options
	frames [][]agui.Frame
	err    error
} {
	t.Helper()
	type stream = struct {
		Options
		frames [][]agui.Frame
		err    error
	}
	of := func(o Options, frames ...[]agui.Frame) stream { return stream{Options: o, frames: frames} }
	v7, ask := Options{Version: V7}, posted(t, asking)
	in7 := Options{Version: V7, Post: ask}
	approval := json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"}}}`)
	asked := finished(&agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{
		{ID: "i1", Reason: holdfast.ReasonToolCall, ToolCallID: "c1", Message: "May it?", ResponseSchema: approval},
		{ID: "i2", Reason: "input_required", ToolCallID: "c1", Message: "Which one?"},
	}})
	whole := log(1, joined(started(), thinking("m0", "hm ", "<hm>"), saying("m1", "I ", "\"see\"\n", "it\\"),
		calling("c1", "m1", "look", `{"at": `, `"x"}`), calling("c2", "m1", "look"),
		resulting("c1", `{"seen": [1, 2]}`, ""), resulting("c2", "nothing", `{"holdfast":{"failed":true}}`),
		saying("m2", "Done."), success())...)
	taken := log(1, joined(started(), thinking("m0", "hm"), saying("m1", "I forg"), calling("c1", "m1", "look", `{`),
		agui.Custom{Name: "holdfast.retry", Value: json.RawMessage(`{"attempt":1}`)}, snapshotOf(t, userMessage1),
		agui.StateSnapshot{Snapshot: json.RawMessage(`{}`)}, saying("m2", "I know."), success())...)
	late := [][]agui.Frame{
		prelude(started(), snapshotOf(t, `{"id":"u0","role":"user","content":"old"}`,
			`{"id":"a0","role":"assistant","content":"older"}`, userMessage1,
			`{"id":"m0","role":"reasoning","content":"hm"}`,
			`{"id":"m1","role":"assistant","content":"I see","toolCalls":[{"id":"c1","type":"function",`+
				`"function":{"name":"look","arguments":"{\"at\":1}"}}]}`,
			`{"id":"res-c1","role":"tool","toolCallId":"c1","content":"seen"}`,
			`{"id":"m2","role":"assistant","content":"So f","toolCalls":[{"id":"c2","type":"function",`+
				`"function":{"name":"look","arguments":"{\"a"}},{"id":"c3","type":"function",`+
				`"function":{"name":"look","arguments":"{}"}}]}`),
			agui.StateSnapshot{Snapshot: json.RawMessage(`{"n":1}`)},
			agui.TextMessageStart{MessageID: "m2", Role: "assistant"},
			agui.ToolCallStart{ToolCallID: "c2", ToolCallName: "look", ParentMessageID: "m2"}),
		log(20, agui.TextMessageContent{MessageID: "m2", Delta: "ar"}, agui.TextMessageEnd{MessageID: "m2"},
			agui.ToolCallArgs{ToolCallID: "c2", Delta: `":2}`}, agui.ToolCallEnd{ToolCallID: "c2"},
			resulting("c2", "two", ""), resulting("c3", "three", ""), success()),
	}
	beside := log(1, started(), agui.StateSnapshot{Snapshot: json.RawMessage(`{"n":1}`)},
		agui.StateSnapshot{Snapshot: json.RawMessage(`{"n":1}`)},
		agui.ActivitySnapshot{MessageID: "v1", ActivityType: "plan", Content: json.RawMessage(`{"steps":2}`)},
		agui.ActivitySnapshot{MessageID: "v2", ActivityType: "holdfast.image",
			Content: json.RawMessage(`{"mimeType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}`)},
		agui.ActivitySnapshot{MessageID: "v3", ActivityType: "source",
			Content: json.RawMessage(`{"url":"https://a.example","title":"A"}`)},
		agui.ActivitySnapshot{MessageID: "v4", ActivityType: "source",
			Content: json.RawMessage(`{"title":"B","mediaType":"application/pdf","filename":"b.pdf"}`)},
		agui.StateSnapshot{Snapshot: json.RawMessage(`null`)},
		finished(&agui.Outcome{Type: agui.OutcomeCancelled}))
	working := log(1, started(),
		agui.ActivitySnapshot{MessageID: "v1", ActivityType: "bar", Content: json.RawMessage(`{"done":0,"of":2}`)},
		agui.StepStarted{StepName: "s"},
		agui.ActivityDelta{MessageID: "v1", ActivityType: "bar",
			Patch: json.RawMessage(`[{"op":"replace","path":"/done","value":1}]`)},
		agui.ActivityDelta{MessageID: "v9", ActivityType: "bar",
			Patch: json.RawMessage(`[{"op":"replace","path":"/done","value":1}]`)},
		agui.StepFinished{StepName: "s"},
		agui.ActivitySnapshot{MessageID: "v1", ActivityType: "bar", Content: json.RawMessage(`{"done":2}`)}, success())
	resumed := log(30, joined(started(), resulting("c1", "paid", ""),
		resulting("c2", "The person did not allow this call: too much", `{"holdfast":{"failed":true,"notRun":true}}`),
		resulting("c9", "of another answer", ""), saying("m5", "Paid."), success())...)
	return map[string]stream{
		"whole":           of(in7, whole[:3], whole[3:9], whole[9:]),
		"tail":            of(Options{Version: V7, Post: ask, After: "8-a"}, whole),
		"lost":            of(Options{Version: V7, Post: ask, After: "8-b"}, whole),
		"taken back":      of(in7, taken),
		"taken back in 6": of(Options{Version: V6, Post: ask}, taken),
		"late":            of(v7, late...),
		"beside":          of(v7, beside),
		"working":         of(v7, working),
		"asked":           of(in7, log(1, joined(started(), calling("c1", "m1", "pay", `{}`), asked)...)),
		"asked in 5": of(Options{Version: V5, Post: ask},
			log(1, joined(started(), calling("c1", "m1", "pay", `{}`), asked)...)),
		"answered":      of(Options{Version: V7, Post: posted(t, answering)}, resumed),
		"answered in 5": of(Options{Version: V5, Post: posted(t, answering)}, resumed),
		"pending": of(in7, log(1,
			joined(started(), calling("c1", "m1", "pick", `{"of":[1,2]}`),
				finished(&agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: []string{"c1"}}))...)),
		"rewritten": of(Options{Version: V7, Post: posted(t, `{"id":"t","messageId":"u1","messages":[{"id":"u1",`+
			`"role":"user","parts":[{"type":"text","text":"ho"}]}]}`)},
			log(1, joined(started(), snapshotOf(t), snapshotOf(t, `{"id":"msg_9","role":"user","content":"ho"}`),
				saying("m1", "Ho."), success())...)),
		"failed": of(in7, log(1, joined(started(), agui.TextMessageStart{MessageID: "m1"},
			agui.TextMessageContent{MessageID: "m1", Delta: "So"},
			agui.RunError{Message: "The model is overloaded.", Code: codes.ModelFailed})...)),
		"cut": {Options: in7, frames: [][]agui.Frame{whole[:9]},
			err: holdfast.Errorf(codes.StreamCut, "It ends.")},
	}
}

// encode returns a stream as it is written, without what only frames it.
func encode(t *testing.T, o Options, frames [][]agui.Frame, failure error) string {
	t.Helper()
	reply := Encode(&agui.Reply{ThreadID: t1, RunID: r1, Frames: func(yield func([]agui.Frame, error) bool) {
		for _, batch := range frames {
			if !yield(batch, nil) {
				return
			}
		}
		if failure != nil {
			yield(nil, failure)
		}
	}}, o)
	var out strings.Builder
	line := func(frames []agui.Frame) {
		for _, f := range frames {
			for _, ev := range events(f) {
				out.WriteString(ev + "\n")
				if _, data, _ := strings.Cut(ev, "\t"); data != "[DONE]" && !json.Valid([]byte(data)) {
					t.Errorf("%s is not JSON", data)
				}
			}
		}
	}
	for made, err := range reply.Frames {
		line(made)
		var public *holdfast.Error
		if errors.As(err, &public) {
			line(reply.Cut(public))
		}
	}
	return out.String()
}

// TestStreams: what a client is sent, chunk by chunk.
func TestStreams(t *testing.T) {
	for name, s := range streams(t) {
		t.Run(name, func(t *testing.T) {
			golden(t, strings.ReplaceAll(name, " ", "-")+".txt", encode(t, s.Options, s.frames, s.err))
		})
	}
}

// TestCutAnywhere: after any record, what follows is what was missing.
func TestCutAnywhere(t *testing.T) {
	s := streams(t)["whole"]
	lines := strings.SplitAfter(encode(t, s.Options, s.frames, nil), "\n")
	for i, line := range lines {
		id, _, _ := strings.Cut(line, "\t")
		if id == "" {
			continue
		}
		o := s.Options
		o.After = id
		if got, want := encode(t, o, s.frames, nil), strings.Join(lines[i+1:], ""); got != want {
			t.Errorf("after %s:\n%s\nwant\n%s", id, got, want)
		}
	}
}

// events are the events of a frame: their ids and their data.
func events(f agui.Frame) (all []string) {
	if !f.Framed {
		return []string{f.ID + "\t" + string(f.Data)}
	}
	for ev := range strings.SplitSeq(strings.TrimSuffix(string(f.Data), "\n\n"), "\n\n") {
		id, data, _ := strings.Cut(ev, "data: ")
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(id, "id: "), "\n")+"\t"+data)
	}
	return all
}

// TestTokens: a piece of a text takes no memory of its own.
func TestTokens(t *testing.T) {
	e, frames := tokens()
	if n := testing.AllocsPerRun(100, func() {
		e.out.reset()
		for i := range frames {
			if err := e.frame(&frames[i]); err != nil {
				t.Fatal(err)
			}
		}
		if sent := e.out.take(); bytes.Count(sent[0].Data, []byte("data: ")) != len(frames) {
			t.Fatal("chunks are missing")
		}
	}); n != 0 {
		t.Errorf("%d pieces take %v allocations", len(frames), n)
	}
}

// tokens returns an encoder in the middle of an answer, and a batch of its pieces.
func tokens() (*encoder, []agui.Frame) {
	e := newEncoder(Options{Version: V7, Post: &Post{last: "u1"}}, r1)
	e.apply(agui.TextMessageStart{MessageID: "msg_01JH8Q4Z5V6W7X8Y9Z0A1B2C3D", Role: "assistant"})
	e.said(quoted("msg_01JH8Q4Z5V6W7X8Y9Z0A1B2C3D"), quoted("The"), false)
	var frames []agui.Frame
	for i := range 32 {
		frames = append(frames, agui.Frame{ID: strconv.Itoa(100+i) + "-x7k2ab",
			Data: agui.AppendDelta(nil, agui.TypeTextMessageContent, "msg_01JH8Q4Z5V6W7X8Y9Z0A1B2C3D", " word")})
	}
	return e, frames
}

// BenchmarkToken compares what a token costs: its event, and the chunk that is made of it.
func BenchmarkToken(b *testing.B) {
	b.Run("agui", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for range b.N {
			buf = agui.AppendDelta(buf[:0], agui.TypeTextMessageContent, "msg_01JH8Q4Z5V6W7X8Y9Z0A1B2C3D", " word")
		}
	})
	b.Run("aisdk", func(b *testing.B) {
		e, frames := tokens()
		b.ReportAllocs()
		for n := 0; n < b.N; n += len(frames) {
			e.out.reset()
			for i := range frames {
				_ = e.frame(&frames[i]) // pieces of a text cannot fail
			}
			e.out.take()
		}
	})
}
