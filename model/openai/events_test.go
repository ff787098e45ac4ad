package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-agents/holdfast"
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
	a := &answer{model: &Model{name: "m"}, cancel: func() {}, yield: func(d holdfast.Delta, _ error) bool {
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
	}}
	a.body = bufio.NewReaderSize(r, readBuffer)
	defer a.close()
	err := a.read()
	if (err == nil) != finished {
		t.Errorf("finished %v with the error %v", finished, err)
	}
	fmt.Fprint(&log, err)
	return log.String()
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader("data: "), endlessReader{})
	if _, err := newEvents(endless).next(); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v", err)
	}
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// BenchmarkDelta compares our cost of a model's delta with just decoding its JSON into
// the least that holds its text. The bar is 1.5 x.
func BenchmarkDelta(b *testing.B) {
	line := delta(`{"role":"assistant","content":"some words"}`)
	b.Run("holdfast", func(b *testing.B) {
		b.ReportAllocs()
		a := &answer{model: &Model{name: "m"}, cancel: func() {}, yield: func(holdfast.Delta, error) bool { return true }}
		e := newEvents(&repeating{text: []byte(line)})
		for b.Loop() {
			ev, err := e.next()
			if err != nil {
				b.Fatal(err)
			}
			if err := a.take(ev); err != nil {
				b.Fatal(err)
			}
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
