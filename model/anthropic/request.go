package anthropic

// Writing a request: the conversation as blocks in messages of alternating roles, the
// tools, the parameters, and the marks up to which the provider caches the prompt.

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/internal/prompt"
)

// body writes a request, and returns what the model cannot take of it. The same request
// always gives the same bytes, and the next one of the thread begins with them, up to the
// end of the last message of the history and but for the marks.
func (m *Model) body(req *holdfast.ModelRequest) (*modelhttp.Body, []modelhttp.LeftPart, error) {
	return m.write(req, whole)
}

// write is body with more or less of the earlier thinking.
func (m *Model) write(req *holdfast.ModelRequest, t thoughts) (*modelhttp.Body, []modelhttp.LeftPart, error) {
	if toolChoice(req) != nil && req.ToolChoice != noTool {
		t = bare // the API refuses to think before a call that must be made
	}
	w := &writer{client: m.client, req: req, bare: t == bare}
	w.conversation()
	end := w.end
	system, tools := system(req), tools(req.Tools)
	if m.client.Params["cache_control"] == nil {
		w.mark(system, tools)
	}
	w.volatile(len(req.History()))
	b := modelhttp.NewBody(m.settings(req, t))
	if len(tools) > 0 {
		b.Open(`"tools":[`)
		for _, tool := range tools {
			add(b, tool, tool.Cache)
		}
		b.Close("]")
	}
	b.End(prompt.Tools)
	if len(system) > 0 {
		b.Open(`"system":[`)
		for _, c := range system {
			add(b, c, c.Cache)
		}
		b.Close("]")
	}
	b.End(prompt.Instructions)
	b.Open(`"messages":[`)
	for i, m := range w.messages {
		b.Open(`{"role":"` + m.Role + `","content":[`)
		for n, c := range m.Content {
			add(b, c, c.Cache)
			if (place{i, n}) == end {
				b.End(prompt.Messages)
			}
		}
		b.Close("]}")
	}
	b.Close("]")
	if c := toolChoice(req); c != nil {
		b.Member("tool_choice", c)
	}
	written, err := m.client.Written(b)
	return written, w.left, err
}

// noTool is the choice that the API knows under this name, too.
const noTool = "none"

// toolChoice returns which tools may be called, in the API's form; nil if that is left to the
// model. With another choice the provider caches the tools and the instructions only.
func toolChoice(req *holdfast.ModelRequest) any {
	switch {
	case req.ToolChoice == "" || len(req.Tools) == 0:
		return nil
	case req.ChosenTool != "":
		return map[string]any{"type": "tool", "name": req.ChosenTool}
	case req.ToolChoice == noTool:
		return map[string]any{"type": noTool}
	}
	return map[string]any{"type": "any"}
}

// add writes an element of a list, with its mark if it has one.
func add(b *modelhttp.Body, v any, c *cache) {
	if c == nil {
		b.Add(v)
		return
	}
	b.AddMarked(v, "cache_control", c)
}

// settings are the members of a request besides the prompt.
func (m *Model) settings(req *holdfast.ModelRequest, t thoughts) map[string]any {
	all := maps.Clone(m.client.Params)
	if all == nil {
		all = map[string]any{}
	}
	all["model"], all["stream"] = m.client.Model, true
	if all["max_tokens"] == nil {
		all["max_tokens"] = DefaultMaxTokens
	}
	t.set(all)
	if toolChoice(req) != nil {
		delete(all, "tool_choice")
		if req.ToolChoice != noTool && (all["thinking"] != nil || m.binds.Load()) {
			all["thinking"] = map[string]any{"type": "disabled"}
		}
	}
	if req.Output != nil {
		all["output_config"] = m.formed(req.Output)
	}
	return all
}

// The roles of messages.
const (
	user      = "user"
	assistant = "assistant"
)

// message is a message in the API's form.
type message struct {
	Role    string
	Content []*content
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
	// Cache is a mark, which is written with the block.
	Cache *cache `json:"-"`
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
	Cache       *cache          `json:"-"`
}

// tools writes the tools.
func tools(specs []holdfast.ToolSpec) []*tool {
	list := make([]*tool, len(specs))
	for i, t := range modelhttp.Tools(specs) {
		list[i] = &tool{Name: t.Name, Description: t.Description, Schema: modelhttp.Parameters(&t)}
	}
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
	// blocks counts those of the conversation. The next request has the first stable of them
	// in the same place, up to end; words were before the newest words of the user among those.
	blocks, stable, words int
	end                   place
}

// conversation writes the history, and in front of the newest words of the user the frontend's
// context.
func (w *writer) conversation() {
	stable := modelhttp.Stable(w.req, true)
	w.between(0, stable)
	w.begin()
	w.stable, w.end = w.blocks, w.last()
	words := w.words
	if len(w.req.Context) > 0 {
		w.add(user, &content{Type: blockText, Text: modelhttp.ContextText(w.req.Context)})
	}
	w.between(stable, len(w.req.History()))
	w.words = words
	if stable == len(w.req.History()) {
		w.stable = w.blocks // nothing stands behind it that could move
	}
}

// add adds blocks to the conversation. Roles must alternate, so neighbours of one role are
// one message.
func (w *writer) add(role string, blocks ...*content) {
	if len(blocks) == 0 {
		return
	}
	w.blocks += len(blocks)
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

// between writes the messages from an index up to another.
func (w *writer) between(from, to int) {
	for i := from; i < to; i++ {
		switch m := &w.req.Messages[i]; m.Role {
		case holdfast.RoleSystem, holdfast.RoleDeveloper, holdfast.RoleUser:
			if m.Role == holdfast.RoleUser {
				w.words = w.blocks
			}
			w.add(user, w.contentOf(i, m)...)
		case holdfast.RoleAssistant:
			w.add(assistant, w.said(i)...)
			i = w.results(i)
		}
	}
}

// begin puts a message of the user before a conversation that begins with an answer.
func (w *writer) begin() {
	if len(w.messages) > 0 && w.messages[0].Role == assistant {
		w.messages = append([]*message{{Role: user, Content: []*content{{Type: blockText, Text: beginsEarlier}}}},
			w.messages...)
		w.blocks, w.words = w.blocks+1, w.words+1
	}
}

// place is that of a block among the messages.
type place struct{ message, block int }

// last returns the place of the last block so far.
func (w *writer) last() place {
	if len(w.messages) == 0 {
		return place{-1, -1}
	}
	last := len(w.messages) - 1
	return place{last, len(w.messages[last].Content) - 1}
}

// said writes the assistant message with index i, with its thinking where it was. The API
// refuses thinking that leads to nothing.
func (w *writer) said(i int) []*content {
	var blocks []*content
	for _, p := range w.client.Pieces(w.req.Messages, i) {
		switch {
		case p.Block != nil:
			if !w.bare && isThinking(p.Block) {
				blocks = append(blocks, &content{thinking: p.Block})
			}
		case p.Call != nil:
			blocks = append(blocks, &content{
				Type:  blockToolUse,
				ID:    modelhttp.CallID(p.Call.ID),
				Name:  p.Call.Name,
				Input: modelhttp.Arguments(p.Call.Arguments),
			})
		case p.Media != nil:
			blocks = append(blocks, &content{Type: blockText, Text: modelhttp.LeftOut(p.Media)})
		case !blank(p.Text):
			blocks = append(blocks, &content{Type: blockText, Text: p.Text})
		}
	}
	for len(blocks) > 0 && blocks[len(blocks)-1].thinking != nil {
		blocks = blocks[:len(blocks)-1]
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
				w.add(user, &content{
					Type:   "tool_result",
					CallID: modelhttp.CallID(call.ID),
					Result: w.resultOf(n, m),
					Failed: m.Error != "",
				})
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

// contentOf writes the text or the parts of a message. Content that the model cannot take is
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

// volatile adds what may be different in the next request: the messages from an index on,
// and what only stands in for a message. It is behind the last mark, so that it does not
// empty the cache.
func (w *writer) volatile(from int) {
	said := len(w.messages)
	asked := said > 0 && w.messages[said-1].Role == user
	w.between(from, len(w.req.Messages))
	n := len(w.messages)
	if n == 0 || w.messages[n-1].Role == assistant || !asked && modelhttp.OnlyState(w.req) {
		w.add(user, &content{Type: blockText, Text: goOn})
	}
}
