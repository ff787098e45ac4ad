package openai

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// TestAdd: a message is written as encoding/json writes it, whatever it has.
func TestAdd(t *testing.T) {
	call := func(extra json.RawMessage) wireCall {
		return wireCall{ID: "c<1>", Type: "function", Function: wireFunction{Name: "f", Arguments: `{"a":"&"}`},
			Extra: extra}
	}
	for _, w := range []wireMessage{
		{},
		{Role: "user", Content: "a \"text\"\n", Name: "Ann"},
		{Role: "tool", Content: "", ToolCallID: "c"},
		{Role: "assistant", ToolCalls: []wireCall{call(nil), call(nil)}},
		{Role: "assistant", Content: "x", ToolCalls: []wireCall{call(json.RawMessage(`{"of": "theirs"}`))}},
		{Role: "user", Content: []map[string]any{{"type": "text", "text": "<"}}},
	} {
		want, got := modelhttp.NewBody(nil), modelhttp.NewBody(nil)
		want.Add(w)
		add(got, &w)
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("got %s, want %s", got.Bytes(), want.Bytes())
		}
	}
}
