package openai

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
)

func reader() *modeltest.Reader {
	m := &Model{client: &modelhttp.Client{Model: "m"}}
	return &modeltest.Reader{Client: m.client, Parser: m.parser, Ends: []string{"finish_reason", "[done]"}}
}

func FuzzStream(f *testing.F) {
	modeltest.Fuzz(
		f,
		conforming(),
		reader(),
		delta(
			`{"tool_calls":[{"id":"a"},{"index":0,"function":{"arguments":"{}"}},{"index":0,"id":"b","function":{"name":"f"}}]}`,
		)+finish(
			"length",
		),
		"error: {\"message\":\"x\"}\n\n"+done,
		"event: error\ndata: x\n\n",
		" [{\"error\":{}}]",
		"data: {\r\ndata: }\r\n\r\n: c\ndata:[DONE]",
		sse(`{"error":{"message":"x","code":1e99}}`),
	)
}

// BenchmarkDelta compares our cost of a model's delta with just decoding its JSON into
// the least that holds its text. The bar is 1.5 x.
func BenchmarkDelta(b *testing.B) {
	for name, line := range map[string]string{
		"text": delta(`{"role":"assistant","content":"some words"}`), "reasoning": delta(`{"reasoning_content":"some words"}`),
		"arguments": delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"some"}}]}`),
	} {
		b.Run(name+"/holdfast", func(b *testing.B) {
			b.ReportAllocs()
			m, told := &Model{client: &modelhttp.Client{Model: "m"}}, 0
			begun := delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`)
			stream := io.MultiReader(
				strings.NewReader(begun),
				io.LimitReader(&repeating{text: []byte(line)}, int64(b.N)*int64(len(line))),
			)
			err := m.client.Read(stream, func(holdfast.Delta, error) bool { told++; return true }, m.parser)
			if told != b.N+1 || !errors.Is(err, holdfast.ErrTruncated) {
				b.Errorf("%d deltas of %d, then %v", told, b.N, err)
			}
		})
		b.Run(name+"/decoding alone", func(b *testing.B) {
			b.ReportAllocs()
			data := []byte(strings.TrimSpace(strings.TrimPrefix(line, "data: ")))
			for b.Loop() {
				var v struct {
					Choices []struct {
						Delta struct {
							Content   string
							Reasoning string `json:"reasoning_content"`
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
