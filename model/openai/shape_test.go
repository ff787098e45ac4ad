package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// FuzzShape: an answer is the same whether the shape of its events is used or every
// event is decoded.
func FuzzShape(f *testing.F) {
	f.Add(`{"choices":[{"delta":{"content":"`, `"}}]}`, "one", "two", `thr\u0065e`)
	f.Add(`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"`,
		`"},"finish_reason":null}],"usage":null}`, "assistant", "a", "ä")
	f.Add(`{"x":{"content":"one"},"choices":[{"delta":{"content" : "`, `"}}]}`, "one", "two", "three")
	f.Add(`{"choices":[{"delta":{"content":"`, `","refusal":"no"}}]}`, "one", "\xff", `"`)
	f.Add(`{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"`, `"}}]}`, "one", "two", "")
	f.Add(`{"choices":[{"finish_reason":"`, `","delta":{"content":"x"}}]}`, "x", "stop", "length")
	f.Fuzz(func(t *testing.T, before, after, one, two, three string) {
		var stream strings.Builder
		for _, text := range []string{one, two, one, three, two} {
			fmt.Fprintf(&stream, "data: %s%s%s\n\n", before, text, after)
		}
		stream.WriteString(done)
		fast, slow := sayings(stream.String(), 0), sayings(stream.String(), maxLearned)
		if fast != slow {
			t.Errorf("by its shape:\n%s\ndecoded:\n%s", fast, slow)
		}
	})
}

// sayings reads a stream whose shape has already been learned that many times.
func sayings(stream string, learned int) string {
	var log strings.Builder
	m := &Model{client: &modelhttp.Client{Model: "m"}}
	fmt.Fprint(&log, m.client.Read(strings.NewReader(stream), func(d holdfast.Delta, _ error) bool {
		call := holdfast.CallDelta{Index: -1}
		if d.Call != nil {
			call = *d.Call
		}
		fmt.Fprintf(&log, "%q %q %v %s\n", d.Text, d.Reasoning, call, d.Finish)
		return true
	}, func(a *modelhttp.Answer) modelhttp.Parser {
		return &answer{Answer: a, model: m, shape: shape{learned: learned}}
	}))
	return log.String()
}

// TestShapeIsUsed: after two events of the same kind nothing is decoded.
func TestShapeIsUsed(t *testing.T) {
	t.Parallel()
	var s shape
	c := chunk{Choices: []choice{{Delta: piece{Content: "hi"}}}}
	s.learn([]byte(`{"choices":[{"delta":{"content":"hi"}}]}`), &c)
	if text, ok := s.text([]byte(`{"choices":[{"delta":{"content":"there"}}]}`)); !ok || text != "there" {
		t.Errorf("%q, %v", text, ok)
	}
	for _, other := range []string{`{"choices":[{"delta":{"content":"a\n"}}]}`,
		`{"choices":[{"delta":{"content":"a","x":"b"}}]}`, `{"choices":[{"delta":{"content":""}}]}`} {
		if text, ok := s.text([]byte(other)); ok {
			t.Errorf("%s was taken for %q", other, text)
		}
	}
}
