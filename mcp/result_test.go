package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestResult: what becomes of a server's answer.
func TestResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, want string }{
		{`{"content":[{"type":"text","text":"a"}]}`, `text "a"`},
		{`{"content":[]}`, ``},
		{`{}`, ``},
		{`{"structuredContent":{"n":9007199254740993}}`, `text "{\"n\":9007199254740993}"`},
		{`{"content":[{"type":"text","text":"{\"n\": 1.0}"}],"structuredContent":{"n":1.0}}`, `text "{\"n\": 1.0}"`},
		{
			`{"content":[{"type":"text","text":"{\"n\": 2}"}],"structuredContent":{"n":1}}`,
			`text "{\"n\": 2}", text "{\"n\":1}"`,
		},
		{
			`{"content":[{"type":"text","text":"9007199254740992"}],"structuredContent":9007199254740993}`,
			`text "9007199254740992", text "9007199254740993"`,
		},
		{`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`, `image AAAA image/png`},
		{
			`{"content":[{"type":"resource","resource":{"uri":"x","blob":"AAAA","mimeType":"video/mp4"}}]}`,
			`video AAAA video/mp4`,
		},
		{
			`{"content":[{"type":"resource","resource":{"uri":"x","blob":"AAAA","mimeType":"image/png"}}]}`,
			`image AAAA image/png`,
		},
		{`{"content":[{"type":"resource","resource":{"uri":"x","blob":"AAAA"}}]}`, `document AAAA `},
		{`{"content":[{"type":"resource","resource":{"uri":"x","text":""}}]}`, ``},
		{`{"content":[{"type":"resource"}]}`, `text "[content of the type \"resource\", which cannot be shown]"`},
		{`{"content":[7]}`, `text "[a piece of content that cannot be read]"`},
		{
			`{"content":[{"type":"resource_link","uri":"file:///a","name":"n","description":"d"}]}`,
			`text "[a resource: file:///a; n; d]"`,
		},
		{`{"resultType":"task"}`, `error`},
		{`[]`, `error`},
		{`{"content":7}`, `error`},
		{`{"content":[{"type":"text","text":"` + strings.Repeat("x", 1000) + `"}]}`, `error`},
	} {
		r, err := resultOf("work", json.RawMessage(c.raw), 1000)
		if got := described(r, err); got != c.want {
			t.Errorf("%.100s\ngot  %s\nwant %s", c.raw, got, c.want)
		}
	}
}

// described returns a result in one line.
func described(r holdfast.ToolResult, err error) string {
	if err != nil {
		return "error"
	}
	parts := r.Parts
	if r.Text != "" {
		parts = []holdfast.Part{{Type: holdfast.PartText, Text: r.Text}}
	}
	var said []string
	for _, p := range parts {
		text := string(p.Type)
		if p.Source != nil {
			text += " " + p.Source.Value + " " + p.Source.MIMEType
		} else {
			quoted, _ := json.Marshal(p.Text)
			text += " " + string(quoted)
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

// FuzzResult: any answer becomes a result or an error.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"image"},7,{"type":"resource","resource":{}}],` +
		`"structuredContent":[1e999],"isError":true}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := resultOf("work", raw, 1<<20)
		if err != nil && (r.Text != "" || r.Parts != nil) {
			t.Fatalf("both %+v and %v", r, err)
		}
	})
}

// FuzzSchema: any schema of a server is refused or becomes the same JSON, whichever order its
// members had.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},` +
		`"b":{"const":9007199254740993}}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, err := canonical(raw)
		if err != nil {
			return
		}
		again, err := canonical(text)
		if err != nil || string(again) != string(text) {
			t.Fatalf("%s becomes %s, %v", text, again, err)
		}
		_, _ = paramHeaders(text)
	})
}
