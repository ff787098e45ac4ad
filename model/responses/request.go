package responses

// Writing a request: the conversation as a list of items, the tools and the parameters.

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/internal/prompt"
)

// body writes a request, and returns what the model cannot take of it. The same request
// always gives the same bytes, and the next one of the thread begins with them, up to the
// end of the last message of the history.
func (m *Model) body(req *holdfast.ModelRequest) (*modelhttp.Body, []modelhttp.LeftPart, error) {
	return m.write(req, false)
}

// write is body, or that without the model's earlier reasoning.
func (m *Model) write(req *holdfast.ModelRequest, bare bool) (*modelhttp.Body, []modelhttp.LeftPart, error) {
	b := modelhttp.NewBody(m.settings(req))
	all := tools(req.Tools)
	if req.ChosenTool == "" || len(all) > 1 { // else the request is for that tool alone
		all = append(all, m.builtin...)
	}
	if len(all) > 0 {
		b.Member("tools", all)
	}
	b.End(prompt.Tools)
	if text := strings.Join(req.Instructions, "\n\n"); text != "" {
		b.Member("instructions", text)
	}
	b.End(prompt.Instructions)
	w := &writer{client: m.client, req: req, bare: bare}
	w.write()
	b.Open(`"input":[`)
	for i, item := range w.items {
		if i == w.history {
			b.End(prompt.Messages)
		}
		b.Add(item)
	}
	if w.history == len(w.items) {
		b.End(prompt.Messages)
	}
	b.Close("]")
	if c := toolChoice(req); c != nil {
		b.Member("tool_choice", c)
	}
	written, err := m.client.Written(b)
	return written, w.left, err
}

// toolChoice returns which tools may be called, in the API's form; nil if that is left to the
// model. It stands last, because it is no part of what the provider caches.
func toolChoice(req *holdfast.ModelRequest) any {
	switch {
	case req.ToolChoice == "" || len(req.Tools) == 0:
		return nil
	case req.ChosenTool != "":
		return map[string]any{"type": "function", "name": req.ChosenTool}
	}
	return req.ToolChoice
}

// settings are the members of a request besides the prompt.
func (m *Model) settings(req *holdfast.ModelRequest) map[string]any {
	all := maps.Clone(m.client.Params)
	if all == nil {
		all = map[string]any{}
	}
	delete(all, "tools") // they stand beside the agent's
	if toolChoice(req) != nil {
		delete(all, "tool_choice")
	}
	all["model"], all["stream"], all["store"] = m.client.Model, true, false
	if _, set := all["include"]; !set {
		all["include"] = []string{"reasoning.encrypted_content"}
	}
	if _, set := all["prompt_cache_key"]; !set && req.Thread != "" {
		all["prompt_cache_key"] = modelhttp.CacheKey(req.Thread)
	}
	if req.Output != nil {
		all["text"] = m.formed(req.Output)
	}
	return all
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

// tools writes the tools.
func tools(specs []holdfast.ToolSpec) []any {
	list := make([]any, len(specs))
	for i, t := range modelhttp.Tools(specs) {
		list[i] = &tool{
			Type:        "function",
			Name:        t.Name,
			Description: t.Description,
			Parameters:  modelhttp.Parameters(&t),
		}
	}
	return list
}

// writer writes the items of a request.
type writer struct {
	client *modelhttp.Client
	req    *holdfast.ModelRequest
	items  []any
	// history is how many of the items the next request has in the same place.
	history int
	left    []modelhttp.LeftPart
	bare    bool // without reasoning
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

// write writes the conversation. Parts that may differ in the next request stand last, so that
// the provider's cache holds all before them.
func (w *writer) write() {
	list, stable := w.req.Messages, modelhttp.Stable(w.req, false)
	w.between(0, stable)
	w.history = len(w.items)
	w.between(stable, len(list))
	if len(w.items) == 0 {
		w.say(user, text(goOn)...)
	}
	if len(w.req.Context) > 0 {
		w.say(system, text(modelhttp.ContextText(w.req.Context))...)
	}
}

// between writes the messages from an index up to another.
func (w *writer) between(from, to int) {
	for i := from; i < to; i++ {
		switch m := &w.req.Messages[i]; m.Role {
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
				Type:      kindCall,
				CallID:    modelhttp.CallID(p.Call.ID),
				Name:      p.Call.Name,
				Arguments: string(modelhttp.Arguments(p.Call.Arguments)),
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
				w.items = append(w.items,
					&result{Type: kindResult, CallID: modelhttp.CallID(c.ID), Output: w.output(n, m)})
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

// contentOf writes the text or the parts of a message. Content that the model cannot take is
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
