package anthropic

// Writing a request: the conversation as blocks in messages of alternating roles, the
// tools, the parameters, and the marks up to which the provider caches the prompt.

import (
	"cmp"
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
	return m.write(req, whole)
}

// write is body with more or less of the earlier thinking.
func (m *Model) write(req *holdfast.ModelRequest, t thoughts) ([]byte, []modelhttp.LeftPart, error) {
	body := maps.Clone(m.client.Params)
	if body == nil {
		body = map[string]any{}
	}
	w := &writer{client: m.client, req: req, bare: t == bare}
	w.write()
	system, tools := system(req), tools(req.Tools)
	if body["cache_control"] == nil {
		mark(system, tools, w.messages)
	}
	w.volatile()
	t.set(body)
	body["model"], body["stream"], body["messages"] = m.client.Model, true, w.messages
	if body["max_tokens"] == nil {
		body["max_tokens"] = DefaultMaxTokens
	}
	if len(system) > 0 {
		body["system"] = system
	}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	if req.Output != nil {
		body["output_config"] = m.formed(req.Output)
	}
	b, err := m.client.Write(body)
	return b, w.left, err
}

// The roles of messages.
const (
	user      = "user"
	assistant = "assistant"
)

// message is a message in the API's form.
type message struct {
	Role    string     `json:"role"`
	Content []*content `json:"content"`
}

// content is a block of a message, of the system text, or a tool's result.
type content struct {
	Type   string  `json:"type,omitempty"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`
	// ID, Name and Input are those of a call.
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// CallID, Result and Failed are those of a result.
	CallID string     `json:"tool_use_id,omitempty"`
	Result []*content `json:"content,omitempty"`
	Failed bool       `json:"is_error,omitempty"`
	Cache  *cache     `json:"cache_control,omitempty"`
	// thinking is a block that is sent as it is.
	thinking json.RawMessage
}

// MarshalJSON writes a block.
func (c *content) MarshalJSON() ([]byte, error) {
	if c.thinking != nil {
		return c.thinking, nil
	}
	type plain content
	return json.Marshal((*plain)(c))
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
	FileID    string `json:"file_id,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cache          `json:"cache_control,omitempty"`
}

// tools writes the tools in the order of their names: a frontend may list its own in any
// order, and the cached prompt begins with the tools.
func tools(specs []holdfast.ToolSpec) []*tool {
	list := make([]*tool, len(specs))
	for i := range specs {
		list[i] = &tool{Name: specs[i].Name, Description: specs[i].Description, Schema: modelhttp.Parameters(&specs[i])}
	}
	slices.SortStableFunc(list, func(a, b *tool) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func system(req *holdfast.ModelRequest) []*content {
	var list []*content
	for _, text := range req.Instructions {
		if !blank(text) {
			list = append(list, &content{Type: blockText, Text: text})
		}
	}
	return list
}

// blank texts are refused by the API.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// writer writes the messages of a request.
type writer struct {
	client   *modelhttp.Client
	req      *holdfast.ModelRequest
	messages []*message
	left     []modelhttp.LeftPart
	bare     bool // without thinking
}

// add adds blocks to the conversation. Roles must alternate, so neighbours of one role are
// one message.
func (w *writer) add(role string, blocks ...*content) {
	if len(blocks) == 0 {
		return
	}
	if n := len(w.messages); n > 0 && w.messages[n-1].Role == role {
		w.messages[n-1].Content = append(w.messages[n-1].Content, blocks...)
		return
	}
	w.messages = append(w.messages, &message{Role: role, Content: blocks})
}

// Texts that stand where the API needs a user's message and the conversation has none.
const (
	beginsEarlier = "(The conversation begins earlier.)"
	goOn          = "(Continue.)"
)

// write writes the conversation.
func (w *writer) write() {
	list := w.req.Messages
	for i := 0; i < len(list); i++ {
		switch m := &list[i]; m.Role {
		case holdfast.RoleSystem, holdfast.RoleDeveloper, holdfast.RoleUser:
			w.add(user, w.contentOf(i, m)...)
		case holdfast.RoleAssistant:
			w.add(assistant, w.said(i)...)
			i = w.results(i)
		}
	}
	if len(w.messages) > 0 && w.messages[0].Role == assistant {
		w.messages = append([]*message{{Role: user, Content: []*content{{Type: blockText, Text: beginsEarlier}}}}, w.messages...)
	}
	if n := len(w.messages); n == 0 || w.messages[n-1].Role == assistant {
		w.add(user, &content{Type: blockText, Text: goOn})
	}
}

// said writes the assistant message with index i, with its thinking where it was.
func (w *writer) said(i int) []*content {
	var blocks []*content
	for _, p := range w.client.Pieces(w.req.Messages, i) {
		switch {
		case p.Block != nil:
			if !w.bare && isThinking(p.Block) {
				blocks = append(blocks, &content{thinking: p.Block})
			}
		case p.Call != nil:
			blocks = append(blocks, &content{Type: blockToolUse, ID: modelhttp.CallID(p.Call.ID), Name: p.Call.Name, Input: modelhttp.Arguments(p.Call.Arguments)})
		case p.Media != nil:
			blocks = append(blocks, &content{Type: blockText, Text: modelhttp.LeftOut(p.Media)})
		case !blank(p.Text):
			blocks = append(blocks, &content{Type: blockText, Text: p.Text})
		}
	}
	return blocks
}

// isThinking reports whether a stored block is one of thinking: it may come from a client,
// who must not be able to write anything else with it.
func isThinking(block json.RawMessage) bool {
	var b struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(block, &b) == nil && (b.Type == blockThinking || b.Type == blockRedacted)
}

// results writes the results of the calls of the message with index i, which follow it,
// in the calls' order. It returns the index of the last.
func (w *writer) results(i int) int {
	calls, end := w.req.Messages[i].Calls, i
	for end+1 < len(w.req.Messages) && w.req.Messages[end+1].Role == holdfast.RoleTool {
		end++
	}
	for _, call := range calls {
		for n := i + 1; n <= end; n++ {
			if m := &w.req.Messages[n]; m.CallID == call.ID {
				w.add(user, &content{Type: "tool_result", CallID: modelhttp.CallID(call.ID), Result: w.resultOf(n, m), Failed: m.Error != ""})
				break
			}
		}
	}
	return end
}

// resultOf writes the content of a result.
func (w *writer) resultOf(i int, m *holdfast.Message) []*content {
	if m.PlainText() == "" && m.Error != "" {
		return []*content{{Type: blockText, Text: "Error: " + m.Error}}
	}
	return w.contentOf(i, m)
}

// contentOf writes the text or the parts of a message. What the model cannot take is
// replaced by a text that says so.
func (w *writer) contentOf(i int, m *holdfast.Message) []*content {
	if len(m.Parts) == 0 {
		if blank(m.Text) {
			return nil
		}
		return []*content{{Type: blockText, Text: m.Text}}
	}
	var blocks []*content
	for n := range m.Parts {
		p := &m.Parts[n]
		switch block := part(p); {
		case block != nil:
			blocks = append(blocks, block)
		case p.Type != holdfast.PartText:
			blocks = append(blocks, &content{Type: blockText, Text: modelhttp.LeftOut(p)})
			w.left = append(w.left, modelhttp.LeftPart{Message: i, Kind: modelhttp.KindOf(p)})
		}
	}
	return blocks
}

// volatile adds what may be different in the next request: it stands behind the last mark,
// so that it does not empty the cache.
func (w *writer) volatile() {
	if len(w.req.Context) > 0 {
		w.add(user, &content{Type: blockText, Text: modelhttp.ContextText(w.req.Context)})
	}
}
