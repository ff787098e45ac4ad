package http

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/aisdk"
)

// BenchmarkTokens compares what a token of an answer costs from its record to the connection, for
// a client of AG-UI and for one of the AI SDK.
func BenchmarkTokens(b *testing.B) {
	const batch = 32
	const id = "msg_01JH8Q4Z5V6W7X8Y9Z0A1B2C3D"
	tokens := make([]agui.Frame, batch)
	for i := range tokens {
		tokens[i] = agui.Frame{ID: strconv.Itoa(100+i) + "-x7k2ab",
			Data: agui.AppendDelta(nil, agui.TypeTextMessageContent, id, " word")}
	}
	opened := []agui.Frame{{ID: "1-x7k2ab", Data: agui.Append(nil, agui.TextMessageStart{MessageID: id})}}
	for name, as := range map[string]func(*agui.Reply) *agui.Reply{
		"agui":  func(r *agui.Reply) *agui.Reply { return r },
		"aisdk": func(r *agui.Reply) *agui.Reply { return aisdk.Encode(r, aisdk.Options{Version: aisdk.V7}) },
	} {
		b.Run(name, func(b *testing.B) {
			w := httptest.NewRecorder()
			s := &sse{w: w}
			b.ReportAllocs()
			reply := as(&agui.Reply{Frames: func(yield func([]agui.Frame, error) bool) {
				if !yield(opened, nil) {
					return
				}
				for n := 0; n < b.N && yield(tokens, nil); n += batch {
				}
			}})
			for frames := range reply.Frames {
				if s.frames(frames) != nil || s.write() != nil {
					b.Fatal("it cannot be written")
				}
				w.Body.Reset()
			}
		})
	}
}
