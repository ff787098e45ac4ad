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
		delta(`{"tool_calls":[{"id":"a"},{"index":0,"function":{"arguments":"{}"}},{"index":0,"id":"b",`+
			`"function":{"name":"f"}}]}`)+finish("length"),
		"error: {\"message\":\"x\"}\n\n"+done,
		"event: error\ndata: x\n\n",
		" [{\"error\":{}}]",
		"data: {\r\ndata: }\r\n\r\n: c\ndata:[DONE]",
		sse(`{"error":{"message":"x","code":1e99}}`),
	)
}

// benchDeltas are what providers send for a word, by what it is.
var benchDeltas = map[string]string{
	"text":      delta(`{"role":"assistant","content":"some words"}`),
	"reasoning": delta(`{"reasoning_content":"some words"}`),
	"arguments": delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"some"}}]}`),
}

// told reads n of these.
func told(tb testing.TB, name, line string, n int) {
	tb.Helper()
	m, count := &Model{client: &modelhttp.Client{Model: "m"}}, 0
	begun := delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`)
	stream := io.MultiReader(strings.NewReader(begun),
		io.LimitReader(&repeating{text: []byte(line)}, int64(n)*int64(len(line))))
	err := m.client.Read(stream, func(holdfast.Delta, error) bool { count++; return true }, m.parser)
	if count != n+1 || !errors.Is(err, holdfast.ErrTruncated) {
		tb.Errorf("%d deltas of %d, then %v", count, n, err)
	}
}

// TestDeltasAllocate: how often memory is allocated for a delta, which is the same on every
// machine.
func TestDeltasAllocate(t *testing.T) {
	most := map[string]float64{"text": 1, "reasoning": 11, "arguments": 19}
	for name, line := range benchDeltas {
		n := testing.AllocsPerRun(5, func() { told(t, name, line, 1000) }) / 1000
		if n > most[name]+0.5 {
			t.Errorf("%s: %.1f allocations, at most %v", name, n, most[name])
		}
	}
}

// BenchmarkDelta compares our cost of a model's delta with just decoding its JSON into
// the least that holds its text. The bar is 1.5 x.
func BenchmarkDelta(b *testing.B) {
	for name, line := range benchDeltas {
		b.Run(name+"/holdfast", func(b *testing.B) {
			b.ReportAllocs()
			told(b, name, line, b.N)
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
