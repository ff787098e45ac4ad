package remote

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// TestWords: words are read without decoding exactly where decoding would say the same.
func TestWords(t *testing.T) {
	w := &words{}
	w.learn(`m"1`)
	for data, want := range map[string]string{
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m\"1","delta":"one"}`:                "one",
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m\"1","delta":"ä"}`:                  "ä",
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m\"1","delta":""}`:                   "",
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m\"1","delta":"a\nb"}`:               "-",
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m\"1","delta":"a","delta":"b"}`:      "-",
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"a"}`:                    "-",
		"{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\\\"1\",\"delta\":\"\xff\"}": "-",
	} {
		got, ok := w.read([]byte(data))
		if ok != (want != "-") || ok && got != want {
			t.Errorf("%s: %q %v", data, got, ok)
		}
		if ev, err := agui.DecodeEvent([]byte(data)); ok && (err != nil || ev.(agui.TextMessageContent).Delta != got) {
			t.Errorf("%s is decoded as %v, %v", data, ev, err)
		}
	}
}

// BenchmarkDelta reads a token of an agent; compare BenchmarkDelta in model/openai.
func BenchmarkDelta(b *testing.B) {
	a, err := New(Options{URL: "http://localhost"})
	if err != nil {
		b.Fatal(err)
	}
	line := `data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":" token"}` + "\n\n"
	b.ReportAllocs()
	b.ResetTimer()
	err = a.client.Read(strings.NewReader(strings.Repeat(line, b.N)), func(holdfast.Delta, error) bool { return true },
		func(answer *modelhttp.Answer) modelhttp.Parser {
			return newStream(answer, a, &holdfast.ModelRequest{}, &input{})
		})
	if err == nil {
		b.Fatal("a run without its end is complete")
	}
}
