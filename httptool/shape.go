package httptool

// The part of an answer that becomes the result of a call.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// shape is a [Result] that has been read.
type shape struct {
	selected []string
	template []piece // a name is a JSON pointer
	max      int64
}

func newShape(r Result) (*shape, error) {
	s := &shape{selected: r.Select, max: r.MaxBytes}
	if len(r.Select) > 0 && r.Template != "" {
		return nil, errors.New("result: it has both select and template: write one of them")
	}
	for i, p := range r.Select {
		if !isPointer(p) {
			return nil, fmt.Errorf(`result.select[%d]: %q must be a JSON pointer, like `+
				`/items/0/id, or "" for all of it`, i, p)
		}
	}
	for rest := r.Template; rest != ""; {
		before, after, found := strings.Cut(rest, "{/")
		if before != "" {
			s.template = append(s.template, piece{text: before})
		}
		if !found {
			break
		}
		pointer, after, closed := strings.Cut(after, "}")
		if !closed || !isPointer("/"+pointer) {
			return nil, errors.New("result.template: it has a {/ that begins no JSON pointer with a } behind it")
		}
		s.template = append(s.template, piece{name: "/" + pointer})
		rest = after
	}
	return s, nil
}

// isPointer reports whether a text is a JSON pointer (RFC 6901).
func isPointer(p string) bool {
	if p != "" && p[0] != '/' {
		return false
	}
	for i := range len(p) {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return false
		}
	}
	return true
}

// images are the types of images that models take.
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// result returns the result of a call that succeeded. It did so even if its answer cannot
// be shown, so a note says that, and no failure.
func (s *shape) result(a *answer, c *client) holdfast.ToolResult {
	kind := mediaType(a)
	switch {
	case len(a.body) == 0 && a.broken == nil:
		return holdfast.ToolResult{Text: "The service answered " + statusText(a.status) + " without content."}
	case a.broken != nil:
		return holdfast.ToolResult{
			Text: c.clean(a, s.note(a, "The answer broke off; this is its beginning.", plain(a))),
		}
	case slices.Contains(images, kind) && !a.cut:
		return holdfast.ToolResult{Parts: []holdfast.Part{
			{
				Type: holdfast.PartImage,
				Source: &holdfast.Source{
					Type:     holdfast.SourceData,
					MIMEType: kind,
					Value:    base64.StdEncoding.EncodeToString(a.body),
				},
			},
		}}
	case !isText(a):
		return holdfast.ToolResult{
			Text: s.note(a, fmt.Sprintf("The answer is no text: %s. It was left out.", describe(a, kind)), ""),
		}
	case len(s.selected) == 0 && len(s.template) == 0:
		if a.cut {
			return holdfast.ToolResult{
				Text: c.clean(a, s.note(a,
					fmt.Sprintf("The answer has more than %d bytes; this is its beginning.", s.max), plain(a))),
			}
		}
		return holdfast.ToolResult{Text: c.clean(a, plain(a))}
	case a.cut:
		return holdfast.ToolResult{
			Text: s.note(a, fmt.Sprintf("The answer has more than %d bytes, so nothing could be taken out of it.",
				s.max), ""),
		}
	}
	return holdfast.ToolResult{Text: c.clean(a, s.pick(a))}
}

// note returns a text that begins with a note about the answer.
func (s *shape) note(a *answer, note, text string) string {
	note = "[The service answered " + statusText(a.status) + ". " + note + "]"
	if text == "" {
		return note
	}
	return note + "\n" + text
}

// pick returns what is selected of an answer.
func (s *shape) pick(a *answer) string {
	body := json.RawMessage(a.body)
	if !json.Valid(body) {
		return s.note(a, "It is no JSON, so nothing could be taken out of it.", plain(a))
	}
	var b strings.Builder
	if len(s.template) > 0 {
		for _, p := range s.template {
			b.WriteString(p.text)
			if p.name != "" {
				b.WriteString(display(find(body, p.name)))
			}
		}
		return b.String()
	}
	if len(s.selected) == 1 {
		value := find(body, s.selected[0])
		if value == nil {
			return s.note(a, "It has no "+s.selected[0]+".", "")
		}
		return display(value)
	}
	b.WriteByte('{')
	for i, p := range s.selected {
		if i > 0 {
			b.WriteByte(',')
		}
		value := find(body, p)
		if value == nil {
			value = json.RawMessage("null")
		}
		b.Write(mustJSON(p))
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.String()
}

// display returns a value as a text: a string as it reads, anything else as it is written.
func display(value json.RawMessage) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// find returns what a JSON pointer finds, as it is written; nil if there is nothing. The
// text is valid JSON.
func find(raw json.RawMessage, pointer string) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if pointer == "" {
		return raw
	}
	token, rest, more := strings.Cut(pointer[1:], "/")
	if more {
		rest = "/" + rest
	}
	token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	switch raw[0] {
	case '{':
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil || object[token] == nil {
			return nil
		}
		return find(object[token], rest)
	case '[':
		var items []json.RawMessage
		i, err := strconv.Atoi(token)
		if err != nil || json.Unmarshal(raw, &items) != nil || i < 0 || i >= len(items) || strconv.Itoa(i) != token {
			return nil
		}
		return find(items[i], rest)
	}
	return nil
}

// mediaType returns the type of an answer, such as "application/json"; empty if it says
// none.
func mediaType(a *answer) string {
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	return kind
}

// isText reports whether an answer can be read as text, by its type or, if it says none
// that is known, by what is in it.
func isText(a *answer) bool {
	kind := mediaType(a)
	if major, _, _ := strings.Cut(kind, "/"); slices.Contains([]string{"image", "audio", "video", "font"}, major) &&
		kind != "image/svg+xml" {
		return false
	}
	body := a.body
	if a.cut || a.broken != nil { // its last character may be half of one
		body = trimHalf(body)
	}
	if bytes.IndexByte(body, 0) >= 0 {
		return false
	}
	// Texts in other encodings than UTF-8 are shown with their ASCII characters.
	return utf8.Valid(body) || strings.HasPrefix(kind, "text/")
}

// trimHalf returns a text without a character that is cut off at its end.
func trimHalf(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// plain returns the text of an answer; empty if it is no text.
func plain(a *answer) string {
	if !isText(a) {
		return ""
	}
	return strings.ToValidUTF8(string(bytes.TrimSpace(trimHalf(a.body))), "�")
}

// describe says what an answer is that is not shown.
func describe(a *answer, kind string) string {
	if kind == "" {
		kind = "of an unknown type"
	}
	if a.cut {
		return fmt.Sprintf("%s, more than %d bytes", kind, len(a.body))
	}
	return fmt.Sprintf("%s, %d bytes", kind, len(a.body))
}

// cutText bounds a text.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return string(trimHalf([]byte(s[:limit]))) + " […]"
}
