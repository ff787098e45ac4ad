package thread

import (
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// FuzzPlainDelta: a delta that is read without decoding it says what the decoder reads.
func FuzzPlainDelta(f *testing.F) {
	for _, kind := range []agui.Type{
		agui.TypeTextMessageContent, agui.TypeReasoningMessageContent, agui.TypeToolCallArgs,
	} {
		for _, text := range []string{"words ", "", `"`, `\`, "mé 🙂", "\xff", "a\nb", `","delta":"`} {
			f.Add(string(agui.AppendDelta(nil, kind, "msg_1", text)))
			f.Add(string(agui.AppendDelta(nil, kind, text, "words")))
		}
		f.Add(`{"type":"` + string(kind) + `","messageId":"m","delta":"a","timestamp":"1"}`)
		f.Add(`{"type":"` + string(kind) + `","messageId":"m","messageId":"n","delta":"a"}`)
		f.Add(`{"type":"` + string(kind) + `","messageId":"m","delta":"a` + "\n" + `"}`)
	}
	f.Fuzz(func(t *testing.T, data string) {
		kind := agui.TypeOf([]byte(data))
		id, text, plain := plainDelta(kind, []byte(data))
		if !plain || !kind.IsDelta() {
			return
		}
		ev, err := agui.DecodeEvent([]byte(data))
		if err != nil {
			return // no log has it
		}
		switch ev := ev.(type) {
		case agui.TextMessageContent:
			if ev.MessageID != id || ev.Delta != text {
				t.Errorf("%s is %q of %q", data, text, id)
			}
		case agui.ReasoningMessageContent:
			if ev.MessageID != id || ev.Delta != text {
				t.Errorf("%s is %q of %q", data, text, id)
			}
		case agui.ToolCallArgs:
			if ev.ToolCallID != id || ev.Delta != text {
				t.Errorf("%s is %q of %q", data, text, id)
			}
		default:
			t.Errorf("%s is no delta", data)
		}
	})
}
