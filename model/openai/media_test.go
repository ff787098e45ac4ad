package openai

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

func painter(t *testing.T, name string) *Model {
	t.Helper()
	m, err := New(Options{Model: name, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestImages: images that gateways have beside the text come as parts. The model gets them
// back after the answer and its results; another model reads that there was one.
func TestImages(t *testing.T) {
	t.Parallel()
	stream := delta(`{"content":"Here: "}`) +
		delta(`{"content":"","images":[{"type":"image_url","index":0,`+
			`"image_url":{"url":"data:image/webp;base64,AAAA"}}]}`) +
		delta(`{"images":[{"type":"image_url","image_url":{"url":"https://a.example/b.png"}}]}`) + finish("stop") + done
	m, other := painter(t, "m1"), painter(t, "m2")
	answer := holdfast.Message{
		ID:    "a",
		Role:  holdfast.RoleAssistant,
		Calls: []holdfast.ToolCall{{ID: "c1", Name: "look"}},
	}
	err := m.client.Read(strings.NewReader(stream), func(d holdfast.Delta, _ error) bool {
		if d.Text != "" {
			answer.Parts = append(answer.Parts, holdfast.Part{Type: holdfast.PartText, Text: d.Text})
		}
		if d.Media != nil {
			answer.Parts = append(answer.Parts, *d.Media)
		}
		return true
	}, m.parser)
	if err != nil || len(answer.Parts) != 3 || answer.Parts[1].Source.MIMEType != "image/webp" ||
		answer.Parts[1].Source.Value != "AAAA" || answer.Parts[2].Source.Type != holdfast.SourceURL {
		t.Fatalf("%+v, %v", answer.Parts, err)
	}
	req := &holdfast.ModelRequest{
		Messages: []holdfast.Message{
			answer,
			{ID: "t", Role: holdfast.RoleTool, CallID: "c1", Text: "seen"},
			{ID: "u", Role: holdfast.RoleUser, Text: "bluer"},
		},
	}
	body, err := m.body(req)
	want := `{"role":"tool","content":"seen","tool_call_id":"c1"},{"role":"user","content":[{"text":"(You have made ` +
		`this in your last answer:)","type":"text"},` +
		`{"image_url":{"url":"data:image/webp;base64,AAAA"},"type":"image_url"},` +
		`{"image_url":{"url":"https://a.example/b.png"},"type":"image_url"}]},{"role":"user","content":"bluer"}`
	if err != nil || !strings.Contains(string(body.Bytes()), want) {
		t.Errorf("%s, %v", body.Bytes(), err)
	}
	body, err = other.body(req)
	if err != nil || strings.Contains(string(body.Bytes()), "AAAA") ||
		!strings.Contains(string(body.Bytes()), `"content":"Here: \n(The message has content that this model cannot `+
			`take: image of type image/webp.)`) {
		t.Errorf("another model: %s, %v", body.Bytes(), err)
	}
	if left := leftOut(req.Messages); len(left) > 0 {
		t.Errorf("it is told: %v", left)
	}
}

// TestImagesNotTaken: of an image that the model has made and that the API does not take back,
// it reads that there was one.
func TestImagesNotTaken(t *testing.T) {
	t.Parallel()
	m := painter(t, "m1")
	own := holdfast.Part{
		Type:           holdfast.PartImage,
		EncryptedValue: m.client.Seal(0, 0),
		Source:         &holdfast.Source{Type: holdfast.SourceData, MIMEType: "image/svg+xml", Value: "AAAA"},
	}
	body, err := m.body(&holdfast.ModelRequest{
		Messages: []holdfast.Message{{ID: "a", Role: holdfast.RoleAssistant, Parts: []holdfast.Part{own}}},
	})
	if err != nil || !strings.Contains(string(body.Bytes()), "cannot take: image of type image/svg+xml.)") {
		t.Errorf("%s, %v", body.Bytes(), err)
	}
}
