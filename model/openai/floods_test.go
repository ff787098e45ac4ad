package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestFloods: what a provider sends and the server never passes on is bounded here, since
// nobody else can see it.
func TestFloods(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("x", 1<<16)
	for name, chunk := range map[string]string{
		"arguments without a name": delta(`{"tool_calls":[{"index":0,"function":{"arguments":"` + piece + `"}}]}`),
		"calls without a name":     delta(`{"tool_calls":[{"index":%d,"id":"c%[1]d","function":{"arguments":""}}]}`),
		"ids without a name":       delta(`{"tool_calls":[{"index":%d,"id":"` + piece + `%[1]d","function":{}}]}`),
		"a line without an end":    "data: " + piece,
		"an event without an end":  "data: " + piece + "\n",
	} {
		sent := 0
		m := served(t, func(w http.ResponseWriter, r *http.Request) {
			for n := 0; sent < 64<<20 && r.Context().Err() == nil; n++ {
				text := chunk
				if strings.Contains(chunk, "%") {
					text = fmt.Sprintf(chunk, n)
				}
				if name == "a line without an end" && n > 0 {
					text = piece
				}
				written, err := io.WriteString(w, text)
				if sent += written; err != nil {
					return
				}
			}
		})
		got := ask(t.Context(), t, m)
		if got.err == nil || got.err.Retryable || !strings.Contains(got.err.Public, "sent too much") {
			t.Errorf("%s: %+v", name, got.err)
		}
	}
}

// TestLongModelName: the provider's name of the model is stored with the usage.
func TestLongModelName(t *testing.T) {
	t.Parallel()
	m := served(t, says(`data: {"model":"`+strings.Repeat("é", 1000)+
		`","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"total_tokens":1}}`+"\n\n"+done))
	got := ask(t.Context(), t, m)
	if !strings.Contains(got.usage, strings.Repeat("é", 128)) || strings.Contains(got.usage, strings.Repeat("é", 129)) {
		t.Errorf("%+v", got)
	}
}

// TestLongIDs: an id of a call that OpenAI would refuse is sent as a shorter one, in the
// call and in its result.
func TestLongIDs(t *testing.T) {
	t.Parallel()
	m, err := New(Options{Model: "m", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for id, short := range map[string]bool{"toolu_1": false, strings.Repeat("x", 40): false,
		strings.Repeat("x", 41): true} {
		body, err := m.body(&holdfast.ModelRequest{Messages: []holdfast.Message{
			{
				Role:  holdfast.RoleAssistant,
				Calls: []holdfast.ToolCall{{ID: id, Name: "f"}},
			},
			{Role: holdfast.RoleTool, CallID: id, Text: "x"},
		}})
		var sent struct {
			Messages []struct {
				Calls []struct{ ID string } `json:"tool_calls"`
				ID    string                `json:"tool_call_id"`
			}
		}
		if err := errors.Join(err, json.Unmarshal(body.Bytes(), &sent)); err != nil || len(sent.Messages) != 2 ||
			len(sent.Messages[0].Calls) != 1 {
			t.Fatalf("%s: %v", id, err)
		}
		if got := sent.Messages[1].ID; got != sent.Messages[0].Calls[0].ID || len(got) > 40 || (got == id) == short {
			t.Errorf("%s is sent as %s", id, body.Bytes())
		}
	}
}
