package gemini

// Writing a request: the conversation as parts in contents of alternating roles, the tools and
// the parameters. Parts that may differ in the next request stand last.

import (
	"encoding/json"
	"maps"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/internal/prompt"
)

// body writes a request, and returns what the model cannot take of it. The same request
// always gives the same bytes, and the next one of the thread begins with them, up to the
// end of the last message of the history or, if there are facts of the frontend, up to those.
func (m *Model) body(req *holdfast.ModelRequest) (*modelhttp.Body, []modelhttp.LeftPart, error) {
	return m.write(req, false)
}

// write is body, or that without the model's earlier signatures.
func (m *Model) write(req *holdfast.ModelRequest, bare bool) (*modelhttp.Body, []modelhttp.LeftPart, error) {
	w := &writer{client: m.client, req: req, bare: bare}
	stable := modelhttp.Stable(req, true)
	w.between(0, stable)
	w.begin()
	end := w.end()
	w.volatile(stable)
	b := modelhttp.NewBody(m.settings(req))
	if len(req.Tools) > 0 {
		m.client.Tools(b, "tools", req.Tools, func() any {
			return []any{map[string]any{"functionDeclarations": tools(req.Tools)}}
		})
	}
	b.End(prompt.Tools)
	if system := system(req); len(system) > 0 {
		b.Member("systemInstruction", map[string]any{"parts": system})
	}
	b.End(prompt.Instructions)
	b.Open(`"contents":[`)
	for i, c := range w.contents {
		b.Open(`{"role":"` + c.Role + `","parts":[`)
		for n, p := range c.Parts {
			b.Add(p)
			if (place{i, n}) == end {
				b.End(prompt.Messages)
			}
		}
		b.Close("]}")
	}
	b.Close("]")
	if c := toolChoice(req); c != nil {
		all, _ := m.client.Params[toolConfig].(map[string]any)
		if all = maps.Clone(all); all == nil {
			all = map[string]any{}
		}
		all["functionCallingConfig"] = c
		b.Member(toolConfig, all)
	}
	written, err := m.client.Written(b)
	return written, w.left, err
}

// settings are the members of a request besides the prompt.
func (m *Model) settings(req *holdfast.ModelRequest) map[string]any {
	all := maps.Clone(m.client.Params)
	if toolChoice(req) != nil {
		delete(all, toolConfig)
	}
	if req.Output != nil {
		if all == nil {
			all = map[string]any{}
		}
		all["generationConfig"] = m.formed(req.Output)
	}
	return all
}

// toolConfig is the member that says how tools may be called.
const toolConfig = "toolConfig"

// toolChoice returns which tools may be called, in the API's form; nil if that is left to the
// model. It stands last, because it is no part of what the provider caches.
func toolChoice(req *holdfast.ModelRequest) map[string]any {
	switch {
	case req.ToolChoice == "" || len(req.Tools) == 0:
		return nil
	case req.ChosenTool != "":
		return map[string]any{"mode": "ANY", "allowedFunctionNames": []string{req.ChosenTool}}
	case req.ToolChoice == "none":
		return map[string]any{"mode": "NONE"}
	}
	return map[string]any{"mode": "ANY"}
}

// The roles of contents.
const (
	roleUser  = "user"
	roleModel = "model"
)

// content is a message in the API's form.
type content struct {
	Role  string
	Parts []*part
}

// part is a part of a content, or of a tool's result.
type part struct {
	// Text is not nil for a text, which may be empty if there is a signature.
	Text      *string   `json:"text,omitempty"`
	Thought   bool      `json:"thought,omitempty"`
	Data      *data     `json:"inlineData,omitempty"`
	File      *file     `json:"fileData,omitempty"`
	Call      *call     `json:"functionCall,omitempty"`
	Response  *response `json:"functionResponse,omitempty"`
	Signature string    `json:"thoughtSignature,omitempty"`
}

type data struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

type file struct {
	MIMEType string `json:"mimeType,omitempty"`
	URI      string `json:"fileUri"`
}

type call struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type response struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
	Parts    []*part           `json:"parts,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// tools writes the tools.
func tools(specs []holdfast.ToolSpec) []*tool {
	list := make([]*tool, len(specs))
	for i, t := range modelhttp.Tools(specs) {
		list[i] = &tool{Name: t.Name, Description: t.Description, Schema: subset(modelhttp.Parameters(&t))}
	}
	return list
}

func textPart(text string) *part { return &part{Text: &text} }

func system(req *holdfast.ModelRequest) []*part {
	var list []*part
	for _, text := range req.Instructions {
		if text != "" {
			list = append(list, textPart(text))
		}
	}
	return list
}

// writer writes the contents of a request.
type writer struct {
	client   *modelhttp.Client
	req      *holdfast.ModelRequest
	contents []*content
	left     []modelhttp.LeftPart
	bare     bool // without signatures
}

// add adds parts to the conversation. Roles alternate, so neighbours of one role are one
// content.
func (w *writer) add(role string, parts ...*part) {
	if len(parts) == 0 {
		return
	}
	if n := len(w.contents); n > 0 && w.contents[n-1].Role == role {
		w.contents[n-1].Parts = append(w.contents[n-1].Parts, parts...)
		return
	}
	w.contents = append(w.contents, &content{Role: role, Parts: parts})
}

// Texts that stand where the API needs a user's content and the conversation has none.
const (
	beginsEarlier = "(The conversation begins earlier.)"
	goOn          = "(Continue.)"
)

// between writes the messages from an index up to another.
func (w *writer) between(from, to int) {
	for i := from; i < to; i++ {
		switch m := &w.req.Messages[i]; m.Role {
		case holdfast.RoleSystem, holdfast.RoleDeveloper, holdfast.RoleUser:
			w.add(roleUser, w.partsOf(i, m)...)
		case holdfast.RoleAssistant:
			w.add(roleModel, w.said(i)...)
			i = w.results(i)
		}
	}
}

// begin puts a content of the user before a conversation that begins with an answer.
func (w *writer) begin() {
	if len(w.contents) > 0 && w.contents[0].Role == roleModel {
		w.contents = append([]*content{{Role: roleUser, Parts: []*part{textPart(beginsEarlier)}}}, w.contents...)
	}
}

// place is that of a part among the contents.
type place struct{ content, part int }

// end returns the place of the last part so far.
func (w *writer) end() place {
	if len(w.contents) == 0 {
		return place{-1, -1}
	}
	last := len(w.contents) - 1
	return place{last, len(w.contents[last].Parts) - 1}
}

// volatile adds what may be different in the next request, or stand in another place: the
// frontend's context, the messages from an index on, and what only stands in for a message.
func (w *writer) volatile(from int) {
	if len(w.req.Context) > 0 {
		w.add(roleUser, textPart(modelhttp.ContextText(w.req.Context)))
	}
	w.between(from, len(w.req.History()))
	said := len(w.contents)
	asked := said > 0 && w.contents[said-1].Role == roleUser
	w.between(len(w.req.History()), len(w.req.Messages))
	n := len(w.contents)
	if n == 0 || w.contents[n-1].Role == roleModel || !asked && modelhttp.OnlyState(w.req) {
		w.add(roleUser, textPart(goOn))
	}
}

// standIn is the signature of a call that another model has made: without any, the API
// refuses the conversation.
const standIn = "skip_thought_signature_validator"

// said writes the assistant message with index i, with its signatures where they were.
func (w *writer) said(i int) []*part {
	var parts []*part
	var next signed // what signs the text that follows
	calls := 0
	for _, p := range w.client.Pieces(w.req.Messages, i) {
		switch {
		case p.Block != nil:
			var s signed
			if w.bare || json.Unmarshal(p.Block, &s) != nil || s.Signature == "" {
				continue
			}
			if s.Text > 0 {
				next = s
				continue
			}
			signed := textPart("")
			signed.Thought, signed.Signature = s.Thought, s.Signature
			parts = append(parts, signed)
		case p.Call != nil:
			parts = append(parts, w.call(p.Call, calls == 0))
			calls++
			next = signed{}
		case p.Media != nil:
			parts = append(parts, w.made(p.Media))
		default:
			parts = append(parts, texts(p.Text, next)...)
			next = signed{}
		}
	}
	return parts
}

// texts writes a text whose beginning may be signed. If a middleware has changed the
// text so that this beginning is none, it goes without the signature.
func texts(text string, by signed) []*part {
	if by.Text == 0 || by.Text > len(text) || by.Text < len(text) && !utf8.RuneStart(text[by.Text]) {
		return []*part{textPart(text)}
	}
	first := textPart(text[:by.Text])
	first.Signature = by.Signature
	if by.Text == len(text) {
		return []*part{first}
	}
	return []*part{first, textPart(text[by.Text:])}
}

// call writes a call. The first of an answer must have a signature, unless this model gave
// it without one.
func (w *writer) call(c *holdfast.ToolCall, first bool) *part {
	p := &part{Call: &call{ID: modelhttp.CallID(c.ID), Name: c.Name, Args: modelhttp.Arguments(c.Arguments)}}
	blocks := w.client.Unseal(c.EncryptedValue)
	var s signed
	if len(blocks) > 0 && !w.bare && json.Unmarshal(blocks[0], &s) == nil {
		p.Signature = s.Signature
	} else if first {
		p.Signature = standIn
	}
	return p
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
				w.add(roleUser, &part{Response: w.resultOf(n, m, &call)})
				break
			}
		}
	}
	return end
}

// resultOf writes a result: its text, or its error, and its parts.
func (w *writer) resultOf(i int, m *holdfast.Message, c *holdfast.ToolCall) *response {
	r := &response{ID: modelhttp.CallID(c.ID), Name: c.Name}
	text := m.PlainText()
	for n := range m.Parts {
		p := &m.Parts[n]
		if p.Type == holdfast.PartText {
			continue
		}
		if taken := resultPart(w.client.Model, p); taken != nil {
			r.Parts = append(r.Parts, taken)
			continue
		}
		if text != "" {
			text += "\n"
		}
		text += modelhttp.LeftOut(p)
		w.left = append(w.left, modelhttp.LeftPart{Message: i, Kind: modelhttp.KindOf(p)})
	}
	switch {
	case m.Error == "":
		r.Response = map[string]string{"output": text}
	case text == "":
		r.Response = map[string]string{"error": m.Error}
	default:
		r.Response = map[string]string{"error": text}
	}
	return r
}

// partsOf writes the text or the parts of a message. Content that the model cannot take is
// replaced by a text that says so.
func (w *writer) partsOf(i int, m *holdfast.Message) []*part {
	if len(m.Parts) == 0 {
		if m.Text == "" {
			return nil
		}
		return []*part{textPart(m.Text)}
	}
	var parts []*part
	for n := range m.Parts {
		p := &m.Parts[n]
		switch taken := partIn(p); {
		case taken != nil:
			parts = append(parts, taken)
		case p.Type != holdfast.PartText:
			parts = append(parts, textPart(modelhttp.LeftOut(p)))
			w.left = append(w.left, modelhttp.LeftPart{Message: i, Kind: modelhttp.KindOf(p)})
		}
	}
	return parts
}
