package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// FuzzStream: no stream makes the reader panic or end twice, and it makes no difference
// where the network splits the stream.
func FuzzStream(f *testing.F) {
	f.Add([]byte(delta(`{"content":"x"}`) + finish("stop") + done))
	f.Add([]byte(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`) + done))
	f.Add([]byte("error: {\"message\":\"x\"}\n\n" + done))
	f.Add([]byte("event: error\ndata: x\n\n"))
	f.Add([]byte(delta(`{"tool_calls":[{"id":"a"},{"index":0,"function":{"arguments":"{}"}},{"index":0,"id":"b","function":{"name":"f"}}]}`) + finish("length")))
	f.Add([]byte(" [{\"error\":{}}]"))
	f.Add([]byte("data: {\r\ndata: }\r\n\r\n: c\ndata:[DONE]"))
	f.Add([]byte(sse(`{"error":{"message":"x","code":1e99}}`)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole := readAll(t, bytes.NewReader(stream))
		pieces := readAll(t, iotest.OneByteReader(bytes.NewReader(stream)))
		if whole != pieces {
			t.Errorf("in one piece:\n%s\nbyte by byte:\n%s", whole, pieces)
		}
	})
}

func readAll(t *testing.T, r io.Reader) string {
	var log strings.Builder
	finished := false
	m := &Model{client: &modelhttp.Client{Model: "m"}}
	err := m.client.Read(r, func(d holdfast.Delta, _ error) bool {
		if finished {
			t.Error("a delta came after the last one")
		}
		finished = d.Finish != ""
		call := ""
		if d.Call != nil {
			call = fmt.Sprint(*d.Call)
		}
		fmt.Fprintf(&log, "%q %q %s %s\n", d.Text, d.Reasoning, call, d.Finish)
		return true
	}, m.parser)
	if (err == nil) != finished {
		t.Errorf("finished %v with the error %v", finished, err)
	}
	fmt.Fprint(&log, err)
	return log.String()
}

// BenchmarkDelta compares our cost of a model's delta with just decoding its JSON into
// the least that holds its text. The bar is 1.5 x.
func BenchmarkDelta(b *testing.B) {
	line := delta(`{"role":"assistant","content":"some words"}`)
	b.Run("holdfast", func(b *testing.B) {
		b.ReportAllocs()
		m, told := &Model{client: &modelhttp.Client{Model: "m"}}, 0
		stream := io.LimitReader(&repeating{text: []byte(line)}, int64(b.N)*int64(len(line)))
		err := m.client.Read(stream, func(holdfast.Delta, error) bool { told++; return true }, m.parser)
		if told != b.N || !errors.Is(err, holdfast.ErrTruncated) {
			b.Errorf("%d deltas of %d, then %v", told, b.N, err)
		}
	})
	b.Run("decoding alone", func(b *testing.B) {
		b.ReportAllocs()
		data := []byte(strings.TrimSpace(strings.TrimPrefix(line, "data: ")))
		for b.Loop() {
			var v struct {
				Choices []struct {
					Delta struct {
						Content   string
						ToolCalls []struct {
							Index    int
							ID       string
							Function struct{ Name, Arguments string }
						} `json:"tool_calls"`
					}
					FinishReason string `json:"finish_reason"`
				}
			}
			if err := json.Unmarshal(data, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// repeating is an endless stream of the same text.
type repeating struct {
	text []byte
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
