package responses

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
)

// TestImages: images of the provider's own tool come as parts. The model gets them back
// after the answer, without the reasoning that led to them; another model reads that there
// was one.
func TestImages(t *testing.T) {
	t.Parallel()
	m := testModel(t, map[string]any{"tools": []map[string]any{{"type": "image_generation", "size": "1024x1024"}}})
	image := `{"type":"image_generation_call","id":"ig_1","status":"completed","output_format":"webp","result":"AAAA"}`
	stream := done(0, `{"type":"reasoning","id":"rs_1","encrypted_content":"secret","summary":[]}`) + done(1, image) +
		done(2, `{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Here it is."}]}`) +
		terminal("completed", "")
	answer, reasoning := holdfast.Message{ID: "a", Role: holdfast.RoleAssistant}, []holdfast.Message{}
	err := m.client.Read(strings.NewReader(stream), func(d holdfast.Delta, _ error) bool {
		if d.Media != nil {
			answer.Parts = append(answer.Parts, *d.Media)
		}
		if d.Text != "" {
			answer.Parts = append(answer.Parts, holdfast.Part{Type: holdfast.PartText, Text: d.Text})
		}
		if d.ReasoningSecret != "" {
			reasoning = append(reasoning,
				holdfast.Message{ID: "r", Role: holdfast.RoleReasoning, EncryptedValue: d.ReasoningSecret})
		}
		return true
	}, m.parser)
	if err != nil || len(answer.Parts) != 2 || answer.Parts[0].Source.MIMEType != "image/webp" ||
		answer.Parts[0].Source.Value != "AAAA" {
		t.Fatalf("%+v, %v", answer.Parts, err)
	}
	req := &holdfast.ModelRequest{
		Messages: append(reasoning, answer, holdfast.Message{ID: "u", Role: holdfast.RoleUser, Text: "bluer"}),
	}
	body, _, err := m.body(req)
	want := `"input":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Here it is."}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"(You have made this in your last ` +
		`answer:)"},{"type":"input_image","detail":"auto","image_url":"data:image/webp;base64,AAAA"}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"bluer"}]}]`
	if err != nil || !strings.Contains(string(body.Bytes()), want) ||
		!strings.Contains(string(body.Bytes()), `"tools":[{"size":"1024x1024","type":"image_generation"}]`) {
		t.Errorf("%s, %v", body.Bytes(), err)
	}
	other, err := New(Options{Model: "m2", Key: modeltest.Key})
	if err != nil {
		t.Fatal(err)
	}
	body, left, err := other.body(req)
	if err != nil || len(left) > 0 || strings.Contains(string(body.Bytes()), "AAAA") ||
		!strings.Contains(string(body.Bytes()), "image of type image/webp") {
		t.Errorf("another model: %s, %v, %v", body.Bytes(), left, err)
	}
}

// TestOwnTools: an agent's tools are not parameters.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	for _, tools := range []any{"image_generation", []any{map[string]any{"type": "function", "name": "look"}},
		[]any{"image_generation"}, []any{map[string]any{}}} {
		if _, err := New(Options{Model: "m", Key: "k", Params: map[string]any{"tools": tools}}); err == nil ||
			!strings.Contains(err.Error(), "runs itself") {
			t.Errorf("%v: %v", tools, err)
		}
	}
	m := testModel(t, map[string]any{"tools": []any{map[string]any{"type": "image_generation"}}})
	body, _, err := m.body(&holdfast.ModelRequest{Tools: []holdfast.ToolSpec{{Name: "look"}}})
	if err != nil || !strings.Contains(string(body.Bytes()), `"strict":false},{"type":"image_generation"}]`) ||
		strings.Count(string(body.Bytes()), `"tools"`) != 1 {
		t.Errorf("%s, %v", body.Bytes(), err)
	}
}
