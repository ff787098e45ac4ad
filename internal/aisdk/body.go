package aisdk

// Decoding what a client posts: the chat's id and its messages, or only the last of them, as
// the transports of the AI SDK send them, and beside them what an application may add.

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// The limits of a body; see the same ones of a RunAgentInput.
const (
	maxMessages   = 10_000
	maxParts      = 1_000
	maxPartsOfAll = 20_000
)

var (
	anything = &strictjson.Shape{}
	text     = &strictjson.Shape{Kind: strictjson.String}
)

// messageShape is a UIMessage's. Of parts it only says how names are spelled.
var messageShape = &strictjson.Shape{Kind: strictjson.Object, Members: map[string]*strictjson.Shape{
	"id":       text,
	"role":     text,
	"metadata": anything,
	"parts": {
		Kind:  strictjson.List,
		Most:  maxParts,
		Total: maxPartsOfAll,
		Noun:  "parts",
		Elements: &strictjson.Shape{Kind: strictjson.Object, Members: map[string]*strictjson.Shape{
			"type":              text,
			"text":              text,
			"mediaType":         text,
			"url":               text,
			"filename":          text,
			"providerReference": anything,
			"toolCallId":        text,
			"toolName":          text,
			"state":             text,
			"input":             anything,
			"output":            anything,
			"errorText":         text,
			"preliminary":       anything,
			"approval":          anything,
		}},
	},
}}

// messagesShape is that of a list of UIMessages.
var messagesShape = &strictjson.Shape{
	Kind:     strictjson.List,
	Elements: messageShape,
	Most:     maxMessages,
	Noun:     "messages",
}

// bodyShape is that of a body. Members that an application adds are those of a RunAgentInput, and
// are checked as such.
var bodyShape = &strictjson.Shape{Kind: strictjson.Object, Members: map[string]*strictjson.Shape{
	"id":             text,
	"messages":       messagesShape,
	"message":        messageShape,
	"trigger":        text,
	"messageId":      text,
	"runId":          text,
	"state":          anything,
	"tools":          anything,
	"context":        anything,
	"forwardedProps": anything,
	"resume":         anything,
}}

// Post is what a client posts.
type Post struct {
	Input *agui.RunAgentInput
	// Continues is the id of the UI message that the answer goes on with, empty if it is a new
	// one; Calls has the calls that this message shows.
	Continues string
	Calls     map[string]bool
	// Rewrites means that the conversation goes back to an earlier message, so that the server
	// may have given it another id.
	Rewrites bool
	// Asks means that the client wants another answer, and has not sent the message that it is
	// to answer. Answer is the id of the answer that it shows, if it names one.
	Asks   bool
	Answer string
	// last is the id of the last user message.
	last string
}

// The triggers of a request.
const (
	triggerSubmit     = "submit-message"
	triggerRegenerate = "regenerate-message"
)

// body is what a client posts, with the members that are not decoded here as JSON text.
type body struct {
	ID        string
	Trigger   string
	MessageID string
	Messages  []message
	rest      map[string]json.RawMessage
}

// Decode reads what a client posts. It is as strict as [agui.DecodeInput], and its errors are of
// the same kind.
func Decode(data []byte) (*Post, error) {
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, invalid("", "The body is not a JSON object.")
	}
	var refused *strictjson.Error
	if _, err := strictjson.Check(data, bodyShape); errors.As(err, &refused) {
		return nil, holdfast.Errorf(codes.InvalidInput, "%s", refused.Message).
			WithHint("%s", refused.Hint).
			With("field", refused.Place)
	}
	b := body{rest: map[string]json.RawMessage{}}
	if err := b.read(data); err != nil {
		return nil, invalid("messages", "The messages cannot be read.").Wrap(err)
	}
	return b.post()
}

// read sets what a checked body says.
func (b *body) read(data []byte) error {
	for name, value := range strictjson.Members(data) {
		switch string(name) {
		case "id":
			b.ID = strictjson.Text(value)
		case "trigger":
			b.Trigger = strictjson.Text(value)
		case "messageId":
			b.MessageID = strictjson.Text(value)
		case "messages":
			for m := range strictjson.Elements(value) {
				if err := b.add(m); err != nil {
					return err
				}
			}
		case "message":
			if err := b.add(value); err != nil {
				return err
			}
		case "runId", "state", "tools", "context", "forwardedProps", "resume":
			b.rest[string(name)] = value
		}
	}
	return nil
}

func (b *body) add(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	b.Messages = append(b.Messages, m)
	return nil
}

// post turns a body into what it means.
func (b *body) post() (*Post, error) {
	if err := agui.CheckID("id", b.ID); err != nil {
		return nil, err
	}
	switch b.Trigger {
	case "", triggerSubmit, triggerRegenerate:
	default:
		return nil, invalid("trigger", "The trigger is not known here.")
	}
	b.rest["threadId"], b.rest["messages"] = quoted(b.ID), json.RawMessage("[]")
	in, err := agui.DecodeInput(encoded(b.rest))
	if err != nil {
		return nil, err
	}
	in.ProtocolVersion, in.Chat = agui.ProtocolVersion, true
	p := &Post{Input: in, Calls: map[string]bool{}}
	seen := map[string]bool{}
	for i := range b.Messages {
		if err := b.take(p, i, seen); err != nil {
			return nil, err
		}
	}
	b.continues(p)
	p.Answer = b.MessageID
	p.Asks = b.Trigger == triggerRegenerate && p.last == ""
	p.Rewrites = b.Trigger == triggerRegenerate || b.MessageID != "" && p.Continues == ""
	return p, nil
}

// take adds a UI message to the input.
func (b *body) take(p *Post, i int, seen map[string]bool) error {
	field := "messages[" + strconv.Itoa(i) + "]"
	ui := &b.Messages[i]
	if err := agui.CheckID(field+".id", ui.ID); err != nil {
		return err
	}
	list, err := ui.messages(field)
	if err != nil {
		return err
	}
	for n := range list {
		m := &list[n]
		if err := m.Check(i); err != nil {
			return err
		}
		if seen[m.ID] {
			return invalid(field+".id", "Two messages, or two of their calls, have the same id.")
		}
		seen[m.ID] = true
		m.DropMarks()
	}
	if ui.Role == string(holdfast.RoleUser) {
		p.last = ui.ID
	}
	p.Input.Messages = append(p.Input.Messages, list...)
	return nil
}

// continues finds the answer that the client goes on with, and what its person has said to the
// questions in it.
func (b *body) continues(p *Post) {
	var answer *message
	for i := range b.Messages {
		m := &b.Messages[i]
		if m.Role != string(holdfast.RoleAssistant) {
			continue
		}
		answer = m
		if i == len(b.Messages)-1 || b.Trigger != triggerRegenerate && m.ID == b.MessageID {
			p.Continues = m.ID
			p.Calls = m.calls()
		}
	}
	if b.Trigger == triggerRegenerate {
		p.Continues, p.Calls = "", map[string]bool{}
	}
	if answer == nil {
		return
	}
	given := map[string]bool{}
	for _, r := range p.Input.Resume {
		given[r.InterruptID] = true
	}
	for i := range answer.Parts {
		if r, ok := answer.Parts[i].approval(); ok && !given[r.InterruptID] {
			given[r.InterruptID] = true
			p.Input.Resume = append(p.Input.Resume, r)
		}
	}
}

// AskAgain makes the post ask for another answer to a message of the history.
func (p *Post) AskAgain(m agui.Message) {
	p.Input.Messages = append(p.Input.Messages, m)
	p.last = m.ID
}
