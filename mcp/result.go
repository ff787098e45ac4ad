package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// Results: what a server has answered becomes parts of a tool's result. Nothing of it is
// fetched, and content of a type that is not known is named, because the work is done.

// callResult is the result of a call, of whichever type.
type callResult struct {
	Type       string            `json:"resultType"`
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
	IsError    bool              `json:"isError"`
}

// content is a piece of content, of whichever type.
type content struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Data        string          `json:"data"`
	MIMEType    string          `json:"mimeType"`
	URI         string          `json:"uri"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Resource    *resource       `json:"resource"`
	Annotations json.RawMessage `json:"annotations"`
}

// resource is the content of a resource.
type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     string  `json:"blob"`
}

// maxParts bounds the pieces of content of a result.
const maxParts = 1000

// resultOf returns the result of a call of the tool that was completed; limit bounds it.
func resultOf(tool string, raw json.RawMessage, limit int) (holdfast.ToolResult, error) {
	unreadable := func(format string, args ...any) (holdfast.ToolResult, error) {
		text := fmt.Sprintf(format, args...)
		return holdfast.ToolResult{}, holdfast.Errorf(codeAnswer,
			"%s was called and has answered, but its answer cannot be used: %s.", tool, text)
	}
	if len(raw) > limit {
		return unreadable("it has %d bytes, and %d are allowed", len(raw), limit)
	}
	var r callResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return unreadable("it is no result of a tool")
	}
	if r.Type != "" && r.Type != "complete" {
		return unreadable("it is of the unknown type %q", shorten(r.Type, 50))
	}
	var parts []holdfast.Part
	for _, raw := range r.Content[:min(len(r.Content), maxParts)] {
		parts = append(parts, part(raw))
	}
	if more := len(r.Content) - maxParts; more > 0 {
		parts = append(parts, named(fmt.Sprintf("%d more pieces of content, which are left out", more), "left_out",
			nil))
	}
	if structured := bytes.TrimSpace(r.Structured); len(structured) > 0 && !repeats(parts, structured) {
		parts = append(parts, holdfast.Part{Type: holdfast.PartText, Text: string(structured),
			Metadata: about("structuredContent", nil)})
	}
	if len(parts) == 1 && parts[0].Type == holdfast.PartText {
		return holdfast.ToolResult{Text: parts[0].Text, Failed: r.IsError}, nil
	}
	return holdfast.ToolResult{Parts: parts, Failed: r.IsError}, nil
}

// repeats reports whether one of the parts is the same JSON as text: servers add it for
// clients that do not know structured content.
func repeats(parts []holdfast.Part, structured []byte) bool {
	want, ok := exactly(structured)
	for _, p := range parts {
		if got, same := exactly([]byte(p.Text)); p.Type == holdfast.PartText && ok && same &&
			reflect.DeepEqual(got, want) {
			return true
		}
	}
	return false
}

// exactly decodes JSON without changing its numbers.
func exactly(text []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v) == nil && !d.More()
}

// about returns a part's metadata: what it was in the server's answer.
func about(kind string, more map[string]any) json.RawMessage {
	m := map[string]any{"type": kind}
	for name, v := range more {
		if v != "" {
			m[name] = v
		}
	}
	data, err := json.Marshal(map[string]any{"mcp": m})
	if err != nil {
		return nil
	}
	return data
}

// part returns a piece of content as a part.
func part(raw json.RawMessage) holdfast.Part {
	var c content
	if err := json.Unmarshal(raw, &c); err != nil {
		return named("a piece of content that cannot be read", "unknown", nil)
	}
	data := func(kind holdfast.PartType) holdfast.Part {
		if !holdsData(c.Data, c.MIMEType, string(kind)) {
			return named("content of the type \""+string(kind)+"\", which cannot be read", "unknown",
				map[string]any{"contentType": string(kind)})
		}
		return holdfast.Part{
			Type:   kind,
			Source: &holdfast.Source{Type: holdfast.SourceData, Value: c.Data, MIMEType: c.MIMEType},
		}
	}
	switch {
	case c.Type == "text":
		return holdfast.Part{Type: holdfast.PartText, Text: c.Text}
	case c.Type == "image":
		return data(holdfast.PartImage)
	case c.Type == "audio":
		return data(holdfast.PartAudio)
	case c.Type == "resource_link":
		return link(&c)
	case c.Type == "resource" && c.Resource != nil:
		return embedded(c.Resource)
	}
	return named(fmt.Sprintf("content of the type %q, which cannot be shown", shorten(c.Type, 50)), "unknown",
		map[string]any{"contentType": shorten(c.Type, 50)})
}

// mimeType is what the type of a file may be.
var mimeType = regexp.MustCompile(`^[a-zA-Z]+/[A-Za-z0-9][A-Za-z0-9.+-]{0,126}$`)

// holdsData reports whether a file is one of the type that it is said to be of. A provider
// of models would refuse it otherwise, and with it every further request of the thread.
func holdsData(data, mime, kind string) bool {
	_, err := base64.StdEncoding.DecodeString(data)
	return err == nil && data != "" && (mimeType.MatchString(mime) || mime == "" && kind == "") &&
		(kind == "" || strings.HasPrefix(strings.ToLower(mime), kind+"/"))
}

// named returns a part that stands for something which is not there.
func named(what, kind string, more map[string]any) holdfast.Part {
	return holdfast.Part{Type: holdfast.PartText, Text: "[" + what + "]", Metadata: about(kind, more)}
}

// link returns the link to a resource, as text: nobody fetches it on a model's word.
func link(c *content) holdfast.Part {
	text := "[a resource: " + c.URI
	for _, s := range []string{c.Name, c.Title, c.MIMEType, c.Description} {
		if s != "" {
			text += "; " + s
		}
	}
	return holdfast.Part{Type: holdfast.PartText, Text: text + "]", Metadata: about("resource_link", map[string]any{
		"uri":         c.URI,
		"name":        c.Name,
		"title":       c.Title,
		"mimeType":    c.MIMEType,
		"description": c.Description,
	})}
}

// embedded returns a resource that came with the result.
func embedded(r *resource) holdfast.Part {
	p := holdfast.Part{Metadata: about("resource", map[string]any{"uri": r.URI, "mimeType": r.MIMEType})}
	if r.Text != nil {
		p.Type, p.Text = holdfast.PartText, *r.Text
		return p
	}
	if !holdsData(r.Blob, r.MIMEType, "") {
		return link(&content{URI: r.URI, MIMEType: r.MIMEType, Description: "its content cannot be read"})
	}
	p.Source = &holdfast.Source{Type: holdfast.SourceData, Value: r.Blob, MIMEType: r.MIMEType}
	kind, _, _ := strings.Cut(r.MIMEType, "/")
	switch kind {
	case "image":
		p.Type = holdfast.PartImage
	case "audio":
		p.Type = holdfast.PartAudio
	case "video":
		p.Type = holdfast.PartVideo
	default:
		p.Type = holdfast.PartDocument
	}
	return p
}
