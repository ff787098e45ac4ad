package responses

// Writing a request: the conversation as a list of items, the tools and the parameters.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// body writes a request, and returns what the model cannot take of it. The same request
// always gives the same bytes.
func (m *Model) body(req *holdfast.ModelRequest) ([]byte, []modelhttp.LeftPart, error) {
	return m.write(req, false)
}

// write is body, or that without the model's earlier reasoning.
func (m *Model) write(req *holdfast.ModelRequest, bare bool) ([]byte, []modelhttp.LeftPart, error) {
	body := maps.Clone(m.client.Params)
	if body == nil {
		body = map[string]any{}
	}
	w := &writer{client: m.client, req: req, bare: bare}
	w.write()
	body["model"], body["stream"], body["store"], body["input"] = m.client.Model, true, false, w.items
	if _, set := body["include"]; !set {
		body["include"] = []string{"reasoning.encrypted_content"}
	}
	if _, set := body["prompt_cache_key"]; !set && req.Thread != "" {
		body["prompt_cache_key"] = cacheKey(req.Thread)
	}
	if text := strings.Join(req.Instructions, "\n\n"); text != "" {
		body["instructions"] = text
	}
	if all := append(tools(req.Tools), m.builtin...); len(all) > 0 {
		body["tools"] = all
	}
	if req.Output != nil {
		body["text"] = m.formed(req.Output)
	}
	b, err := m.client.Write(body)
	return b, w.left, err
}

// cacheKey is what the provider routes requests by, so that those of a thread find its
// cached prompt. It has at most 64 bytes, and says nothing about the thread.
func cacheKey(thread string) string {
	sum := sha256.Sum256([]byte(thread))
	return hex.EncodeToString(sum[:16])
}

// The kinds of items.
const (
	kindMessage   = "message"
	kindReasoning = "reasoning"
	kindCall      = "function_call"
	kindResult    = "function_call_output"
	kindImage     = "image_generation_call"
)

// message is an item in which somebody speaks.
type message struct {
	Type    string     `json:"type"`
	Role    string     `json:"role"`
	Content []*content `json:"content"`
}

// content is a part of a message, or of a result.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Detail   string `json:"detail,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileID   string `json:"file_id,omitempty"`
	FileURL  string `json:"file_url,omitempty"`
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// call is a tool call. It has no id of its own: with one, the provider would look for
// reasoning that may have been left out.
type call struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// result is the result of a call: a text, or parts.
type result struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	// Strict is sent even though it is false: the API's default is true, which refuses
	// many schemas.
	Strict bool `json:"strict"`
}

// tools writes the tools in the order of their names: a frontend may list its own in any
// order, and the cached prompt begins with the tools.
func tools(specs []holdfast.ToolSpec) []any {
	own := make([]*tool, len(specs))
	for i := range specs {
		own[i] = &tool{Type: "function", Name: specs[i].Name, Description: specs[i].Description, Parameters: modelhttp.Parameters(&specs[i])}
	}
	slices.SortStableFunc(own, func(a, b *tool) int { return cmp.Compare(a.Name, b.Name) })
	list := make([]any, len(own))
	for i := range own {
		list[i] = own[i]
	}
	return list
}

// writer writes the items of a request.
type writer struct {
	client *modelhttp.Client
	req    *holdfast.ModelRequest
	items  []any
	left   []modelhttp.LeftPart
	bare   bool // without reasoning
	// shown are the images of the answer that is being written.
	shown []*content
}

// goOn stands where the API needs an item and the conversation has none.
const goOn = "(Continue.)"

// The roles of messages.
const (
	system    = "system"
	user      = "user"
	assistant = "assistant"
)

// say adds a message, if it has content.
func (w *writer) say(role string, parts ...*content) {
	if len(parts) > 0 {
		w.items = append(w.items, &message{Type: kindMessage, Role: role, Content: parts})
	}
}

// write writes the conversation. What may be different in the next request stands last, so
// that the provider's cache holds all before it.
func (w *writer) write() {
	list := w.req.Messages
	for i := 0; i < len(list); i++ {
		switch m := &list[i]; m.Role {
		case holdfast.RoleSystem, holdfast.RoleDeveloper:
			w.say(system, w.contentOf(i, m)...)
		case holdfast.RoleUser:
			w.say(user, w.contentOf(i, m)...)
		case holdfast.RoleAssistant:
			w.said(i)
			i = w.results(i)
			w.showAgain()
		}
	}
	if len(w.items) == 0 {
		w.say(user, text(goOn)...)
	}
	if len(w.req.Context) > 0 {
		w.say(user, text(modelhttp.ContextText(w.req.Context))...)
	}
}

// said writes the assistant message with index i, with its reasoning where it was. The API
// refuses reasoning that leads to nothing.
func (w *writer) said(i int) {
	var reasoning []any
	for _, p := range w.client.Pieces(w.req.Messages, i) {
		switch {
		case p.Block != nil:
			if !w.bare && isReasoning(p.Block) {
				reasoning = append(reasoning, p.Block)
			}
			continue
		case p.Media != nil:
			w.again(p.Media) // which is no item, so the reasoning leads to nothing
		case p.Call != nil:
			w.items = append(append(w.items, reasoning...), &call{
				Type: kindCall, CallID: modelhttp.CallID(p.Call.ID), Name: p.Call.Name, Arguments: string(modelhttp.Arguments(p.Call.Arguments)),
			})
		default:
			w.items = append(w.items, reasoning...)
			w.say(assistant, &content{Type: "output_text", Text: p.Text})
		}
		reasoning = nil
	}
}

// isReasoning reports whether a stored block is one of reasoning: it may come from a
// client, who must not be able to write anything else with it.
func isReasoning(block json.RawMessage) bool {
	var b struct {
		Type      string `json:"type"`
		Encrypted string `json:"encrypted_content"`
	}
	return json.Unmarshal(block, &b) == nil && b.Type == kindReasoning && b.Encrypted != ""
}

// results writes the results of the calls of the message with index i, which follow it,
// in the calls' order. It returns the index of the last.
func (w *writer) results(i int) int {
	calls, end := w.req.Messages[i].Calls, i
	for end+1 < len(w.req.Messages) && w.req.Messages[end+1].Role == holdfast.RoleTool {
		end++
	}
	for _, c := range calls {
		for n := i + 1; n <= end; n++ {
			if m := &w.req.Messages[n]; m.CallID == c.ID {
				w.items = append(w.items, &result{Type: kindResult, CallID: modelhttp.CallID(c.ID), Output: w.output(n, m)})
				break
			}
		}
	}
	return end
}

// output writes the content of a result. Not every server takes parts, so a text is one.
func (w *writer) output(i int, m *holdfast.Message) any {
	if m.PlainText() == "" && m.Error != "" {
		return "Error: " + m.Error
	}
	if slices.ContainsFunc(m.Parts, func(p holdfast.Part) bool { return p.Type != holdfast.PartText }) {
		return w.contentOf(i, m)
	}
	return m.PlainText()
}

// text returns a text as content; none if it is empty.
func text(s string) []*content {
	if s == "" {
		return nil
	}
	return []*content{{Type: "input_text", Text: s}}
}

// contentOf writes the text or the parts of a message. What the model cannot take is
// replaced by a text that says so.
func (w *writer) contentOf(i int, m *holdfast.Message) []*content {
	if len(m.Parts) == 0 {
		return text(m.Text)
	}
	var list []*content
	for n := range m.Parts {
		p := &m.Parts[n]
		if p.Type == holdfast.PartText {
			list = append(list, text(p.Text)...)
			continue
		}
		c := media(p)
		if c == nil {
			c = &content{Type: "input_text", Text: modelhttp.LeftOut(p)}
			w.left = append(w.left, modelhttp.LeftPart{Message: i, Kind: modelhttp.KindOf(p)})
		}
		list = append(list, c)
	}
	return list
}
