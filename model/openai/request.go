package openai

// Writing a request: the conversation, the tools and the parameters in the API's form.

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/internal/prompt"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// body writes a request. The same request always gives the same bytes, and the next one of
// the thread begins with them, up to the end of the last message of the history or, if there
// are facts of the frontend among the messages, up to those. OpenAI itself takes them as a
// system message at the end; other servers may refuse one that is not the first.
func (m *Model) body(req *holdfast.ModelRequest) (*modelhttp.Body, error) {
	b := modelhttp.NewBody(m.settings(req))
	if len(req.Tools) > 0 {
		m.client.Tools(b, "tools", req.Tools, func() any { return tools(req.Tools) })
	}
	b.End(prompt.Tools)
	b.Open(`"messages":[`)
	for _, text := range req.Instructions {
		add(b, &wireMessage{Role: "system", Content: text})
	}
	b.End(prompt.Instructions)
	late := m.client.BaseURL == DefaultBaseURL
	stable := modelhttp.Stable(req, !late)
	m.add(b, req.Messages[:stable])
	b.End(prompt.Messages)
	context := wireMessage{Role: "system", Content: modelhttp.ContextText(req.Context)}
	if len(req.Context) > 0 && !late {
		context.Role = "user"
		add(b, &context)
	}
	m.add(b, req.Messages[stable:])
	if len(req.Context) > 0 && late {
		add(b, &context)
	}
	b.Close("]")
	if c := toolChoice(req); c != nil {
		b.Member("tool_choice", c)
	}
	return m.client.Written(b)
}

// toolChoice returns which tools may be called, in the API's form; nil if that is left to the
// model. It stands last, because it is no part of what a provider caches.
func toolChoice(req *holdfast.ModelRequest) any {
	switch {
	case req.ToolChoice == "" || len(req.Tools) == 0:
		return nil
	case req.ChosenTool != "":
		return map[string]any{"type": "function", "function": map[string]any{"name": req.ChosenTool}}
	}
	return req.ToolChoice
}

// add writes messages, and the images of an answer after the answer's results.
func (m *Model) add(b *modelhttp.Body, messages []holdfast.Message) {
	var made []wireMessage
	flush := func() {
		for i := range made {
			add(b, &made[i])
		}
		made = nil
	}
	for i := range messages {
		from := &messages[i]
		if from.Role != holdfast.RoleTool {
			flush()
		}
		if w, ok := m.message(from); ok {
			add(b, &w)
		}
		made = append(made, m.made(from)...)
	}
	flush()
}

// settings are the members of a request besides the prompt. OpenAI routes requests with the
// same key to where their cached prompt is; not every other server takes one.
func (m *Model) settings(req *holdfast.ModelRequest) map[string]any {
	all := maps.Clone(m.client.Params)
	if all == nil {
		all = map[string]any{}
	}
	if _, set := all["prompt_cache_key"]; !set && req.Thread != "" && m.client.BaseURL == DefaultBaseURL {
		all["prompt_cache_key"] = modelhttp.CacheKey(req.Thread)
	}
	all["model"], all["stream"] = m.client.Model, true
	all["stream_options"] = map[string]any{"include_usage": true}
	if toolChoice(req) != nil {
		delete(all, "tool_choice")
	}
	if req.Output != nil {
		all["response_format"] = format(req.Output)
	}
	return all
}

// maxID is how long OpenAI takes the id of a call to be, in bytes. Others give longer ones.
const maxID = 40

// wireMessage is a message in the API's form.
type wireMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // a text, parts, or null
	Name       string     `json:"name,omitempty"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
	// Extra is what the provider gave with the call.
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// add writes a message. A conversation is written again for each request, and nearly all of it is
// texts and calls, for which [json.Marshal] takes ten times as long.
func add(b *modelhttp.Body, w *wireMessage) {
	text, is := w.Content.(string)
	if !is && w.Content != nil || slices.ContainsFunc(w.ToolCalls, func(c wireCall) bool { return c.Extra != nil }) {
		b.Add(w)
		return
	}
	b.AddRaw(func(to []byte) []byte {
		to = strictjson.AppendText(append(to, `{"role":`...), w.Role)
		to = append(to, `,"content":`...)
		if is {
			to = strictjson.AppendText(to, text)
		} else {
			to = append(to, "null"...)
		}
		if w.Name != "" {
			to = strictjson.AppendText(append(to, `,"name":`...), w.Name)
		}
		to = appendCalls(to, w.ToolCalls)
		if w.ToolCallID != "" {
			to = strictjson.AppendText(append(to, `,"tool_call_id":`...), w.ToolCallID)
		}
		return append(to, '}')
	})
}

// appendCalls writes the calls of a message, if it has any.
func appendCalls(to []byte, calls []wireCall) []byte {
	if len(calls) == 0 {
		return to
	}
	to = append(to, `,"tool_calls":[`...)
	for i, c := range calls {
		if i > 0 {
			to = append(to, ',')
		}
		to = strictjson.AppendText(append(to, `{"id":`...), c.ID)
		to = strictjson.AppendText(append(to, `,"type":`...), c.Type)
		to = strictjson.AppendText(append(to, `,"function":{"name":`...), c.Function.Name)
		to = strictjson.AppendText(append(to, `,"arguments":`...), c.Function.Arguments)
		to = append(to, "}}"...)
	}
	return append(to, ']')
}

// message writes one message. Reasoning is left out, since the API has no place for it.
func (m *Model) message(from *holdfast.Message) (wireMessage, bool) {
	switch from.Role {
	case holdfast.RoleSystem, holdfast.RoleDeveloper:
		return wireMessage{Role: "system", Content: from.PlainText()}, true
	case holdfast.RoleUser:
		return wireMessage{Role: "user", Content: content(from), Name: from.Name}, true
	case holdfast.RoleAssistant:
		w := wireMessage{Role: "assistant"}
		for _, c := range from.Calls {
			call := wireCall{
				ID:       modelhttp.ShortID(c.ID, maxID),
				Type:     "function",
				Function: wireFunction{Name: c.Name, Arguments: string(modelhttp.Arguments(c.Arguments))},
			}
			if extra := m.client.Unseal(c.EncryptedValue); len(extra) == 1 {
				call.Extra = extra[0]
			}
			w.ToolCalls = append(w.ToolCalls, call)
		}
		if text := m.said(from); text != "" || len(w.ToolCalls) == 0 {
			w.Content = text
		}
		return w, true
	case holdfast.RoleTool:
		return wireMessage{
			Role:       "tool",
			Content:    modelhttp.ToolText(from),
			ToolCallID: modelhttp.ShortID(from.CallID, maxID),
		}, true
	}
	return wireMessage{}, false
}

// leftOut returns the parts of messages that the API does not accept.
func leftOut(messages []holdfast.Message) []modelhttp.LeftPart {
	var left []modelhttp.LeftPart
	for i := range messages {
		for n := range messages[i].Parts {
			p := &messages[i].Parts[n]
			if messages[i].Role != holdfast.RoleAssistant && p.Type != holdfast.PartText &&
				(messages[i].Role == holdfast.RoleTool || part(p) == nil) {
				left = append(left, modelhttp.LeftPart{Message: i, Kind: modelhttp.KindOf(p)})
			}
		}
	}
	return left
}

// content returns a text, or parts. Content that the API does not accept is replaced by a text
// that says so.
func content(m *holdfast.Message) any {
	if len(m.Parts) == 0 {
		return m.Text
	}
	var parts []map[string]any
	for i := range m.Parts {
		w := part(&m.Parts[i])
		if w == nil {
			w = map[string]any{"type": "text", "text": modelhttp.LeftOut(&m.Parts[i])}
		}
		parts = append(parts, w)
	}
	return parts
}

func tools(specs []holdfast.ToolSpec) []map[string]any {
	list := make([]map[string]any, len(specs))
	for i, t := range modelhttp.Tools(specs) {
		list[i] = map[string]any{"type": "function", "function": map[string]any{
			"name": t.Name, "description": t.Description, "parameters": modelhttp.Parameters(&t),
		}}
	}
	return list
}
