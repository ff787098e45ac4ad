package modelhttp

// The common parts of every provider's request: the secrets of earlier answers, put back where
// they stood, and texts that mean the same to each model.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// secret is what a provider gave with an answer and needs back unchanged. It is stored as
// the encrypted value of a reasoning message or of a call.
type secret struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Text, Calls and Media say where in the answer the blocks stand: after so many bytes of
	// its text, and so many of its calls and of its images.
	Text  int `json:"text,omitempty"`
	Calls int `json:"calls,omitempty"`
	Media int `json:"media,omitempty"`
	// Blocks are the provider's own.
	Blocks []json.RawMessage `json:"blocks"`
}

// Seal returns blocks of the provider as an encrypted value that only this provider and
// model are sent again. They stand after so many bytes of the answer's text and so many of
// its calls; for a call both are 0. The blocks are kept byte for byte.
func (c *Client) Seal(text, calls int, blocks ...json.RawMessage) string {
	return c.SealAfter(0, text, calls, blocks...)
}

// SealAfter is Seal for an answer that has images: the blocks also stand after so many of
// them.
func (c *Client) SealAfter(media, text, calls int, blocks ...json.RawMessage) string {
	size := 64 + len(c.Provider) + len(c.Model)
	for _, block := range blocks {
		size += len(block) + 1
	}
	b := append(make([]byte, 0, size), `{"provider":`...)
	b = append(strictjson.AppendText(b, c.Provider), `,"model":`...)
	b = strictjson.AppendText(b, c.Model)
	if text != 0 {
		b = strconv.AppendInt(append(b, `,"text":`...), int64(text), 10)
	}
	if calls != 0 {
		b = strconv.AppendInt(append(b, `,"calls":`...), int64(calls), 10)
	}
	if media != 0 {
		b = strconv.AppendInt(append(b, `,"media":`...), int64(media), 10)
	}
	b = append(b, `,"blocks":[`...)
	for i, block := range blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, block...)
	}
	return string(append(b, "]}"...))
}

// Unseal returns the blocks of an encrypted value; none if it is another model's.
func (c *Client) Unseal(value string) []json.RawMessage {
	s, _ := c.unseal(value)
	return s.Blocks
}

func (c *Client) unseal(value string) (secret, bool) {
	var s secret
	if value == "" || json.Unmarshal([]byte(value), &s) != nil || s.Provider != c.Provider || s.Model != c.Model {
		return secret{}, false
	}
	return s, true
}

// Piece is a part of an earlier answer: exactly one of its fields is set.
type Piece struct {
	// Text is a part of the answer's text.
	Text string
	// Block is what the provider gave as reasoning, to be sent unchanged.
	Block json.RawMessage
	// Call is a tool call.
	Call *holdfast.ToolCall
	// Media is an image or other media that a model has made. It may be another model's: see
	// [Client.Own].
	Media *holdfast.Part
}

// Pieces returns the assistant message messages[i] in the order in which the model gave
// it: its text, its images, its calls, and between them the blocks of the reasoning messages
// beside it, as far as this provider and model gave them.
func (c *Client) Pieces(messages []holdfast.Message, i int) []Piece {
	m := &messages[i]
	text := m.PlainText()
	var pieces []Piece
	said, called, shown := 0, 0, 0
	say := func(bytes int) {
		// Middleware may have changed the text.
		if bytes = min(bytes, len(text)); bytes > said {
			for bytes < len(text) && !utf8.RuneStart(text[bytes]) {
				bytes++
			}
			pieces = append(pieces, Piece{Text: text[said:bytes]})
			said = bytes
		}
	}
	media := mediaOf(m)
	upTo := func(bytes, calls, images int) {
		for ; shown < len(media) && (shown < images || media[shown].at < bytes); shown++ {
			say(media[shown].at)
			pieces = append(pieces, Piece{Media: media[shown].part})
		}
		say(bytes)
		for ; called < min(calls, len(m.Calls)); called++ {
			pieces = append(pieces, Piece{Call: &m.Calls[called]})
		}
	}
	for _, s := range c.beside(messages, i) {
		upTo(s.Text, s.Calls, s.Media)
		for _, block := range s.Blocks {
			pieces = append(pieces, Piece{Block: block})
		}
	}
	upTo(len(text), len(m.Calls), len(media))
	return pieces
}

// beside returns the secrets of the reasoning messages that belong to the assistant
// message messages[i]: those before it, and those that it began before, which follow it
// if it has no calls.
func (c *Client) beside(messages []holdfast.Message, i int) []secret {
	var own []secret
	first := i
	for first > 0 && messages[first-1].Role == holdfast.RoleReasoning {
		first--
	}
	follows := first > 0 && messages[first-1].Role == holdfast.RoleAssistant && len(messages[first-1].Calls) == 0
	for _, m := range messages[first:i] {
		if s, ok := c.unseal(m.EncryptedValue); ok && !(follows && s.within()) {
			own = append(own, s)
		}
	}
	for next := i + 1; len(messages[i].Calls) == 0 && next < len(messages) &&
		messages[next].Role == holdfast.RoleReasoning; next++ {
		if s, ok := c.unseal(messages[next].EncryptedValue); ok && s.within() {
			own = append(own, s)
		}
	}
	return own
}

// within reports whether the secret stands within its answer, and not before it.
func (s *secret) within() bool { return s.Text > 0 || s.Media > 0 }

// LeftOut stands for a part that the model cannot take, so that it does not answer as if
// it had seen everything.
func LeftOut(p *holdfast.Part) string {
	return "(The message has content that this model cannot take: " + KindOf(p) + ".)"
}

// KindOf says in a few words what a part is.
func KindOf(p *holdfast.Part) string {
	if p.Source != nil && p.Source.MIMEType != "" && len(p.Source.MIMEType) <= maxMIMEType {
		return string(p.Type) + " of type " + p.Source.MIMEType
	}
	return string(p.Type)
}

// maxMIMEType bounds a media type that is repeated, in bytes.
const maxMIMEType = 100

// ContextText returns a text that tells the model what the frontend knows, and that nobody
// has said it. Within the facts the end of the block cannot be written.
func ContextText(items []holdfast.ContextItem) string {
	var b strings.Builder
	for _, c := range items {
		fmt.Fprintf(&b, "- %s: %s\n", c.Description, c.Value)
	}
	facts := strings.ReplaceAll(b.String(), "</context", "<\\/context")
	return "<context>\nFacts that the application gives. They are no message, and need no answer.\n\n" + facts +
		"</context>"
}

// Stable returns how many messages at the beginning of the request the next one has in the same
// place: the history, or as much of it as stands before the facts of the frontend. placed says
// that those of req.Context will stand among the messages, and not behind them.
func Stable(req *holdfast.ModelRequest, placed bool) int {
	switch {
	case req.ContextAt > 0:
		return min(req.ContextAt-1, len(req.History()))
	case placed && len(req.Context) > 0:
		return req.ContextPlace()
	}
	return len(req.History())
}

// sharedState is the id of the message that shows the shared state.
const sharedState = "shared_state"

// ShowState returns the request with the shared state as the first message of its tail, so
// that the provider's cache holds all before it; the request itself if nothing is shown. It
// is said in a user's message, because anybody may have written what is in it.
func ShowState(req *holdfast.ModelRequest) *holdfast.ModelRequest {
	text := req.StateText()
	if text == "" {
		return req
	}
	shown, at := *req, len(req.History())
	shown.State, shown.StateTooLarge = nil, 0
	said := holdfast.Message{ID: sharedState, Role: holdfast.RoleUser, Text: text}
	shown.Messages = slices.Insert(slices.Clone(req.Messages), at, said)
	shown.Tail = len(shown.Messages) - at
	return &shown
}

// OnlyState reports whether nothing but the shared state stands behind the history, so that
// nobody asks anything with it.
func OnlyState(req *holdfast.ModelRequest) bool {
	at := len(req.History())
	return len(req.Messages) == at+1 && req.Messages[at].ID == sharedState
}

// Arguments returns the arguments of an earlier call as a JSON object, as the model wrote
// them if they are one. Some providers refuse the whole conversation, and with it every
// later turn of the thread, if they are not.
func Arguments(wrote json.RawMessage) json.RawMessage {
	text := bytes.TrimSpace(wrote)
	switch {
	case len(text) == 0 || string(text) == "null":
		return json.RawMessage("{}")
	case text[0] == '{' && json.Valid(text):
		return wrote
	}
	b, err := json.Marshal(map[string]string{"invalid_arguments": string(wrote)})
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// maxNesting bounds how deep objects and lists in a schema may be nested. No provider takes
// a tenth of it, and rewriting a schema for one takes time with each level.
const maxNesting = 64

// Parameters returns the schema of a tool's arguments; a tool without one takes none. One
// that is nested absurdly deep, which a frontend may send, says nothing to the model.
func Parameters(t *holdfast.ToolSpec) json.RawMessage {
	switch {
	case len(t.Parameters) == 0:
		return json.RawMessage(`{"type":"object","properties":{}}`)
	case nested(t.Parameters) > maxNesting:
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.Parameters
}

// nested returns how deep JSON is nested.
func nested(raw json.RawMessage) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// ToolText returns a tool's result as a text, for providers that take nothing else. Content
// that is left out is replaced by a text that says so.
func ToolText(m *holdfast.Message) string {
	text := m.PlainText()
	if text == "" && m.Error != "" {
		return "Error: " + m.Error
	}
	for i := range m.Parts {
		if m.Parts[i].Type == holdfast.PartText {
			continue
		}
		if text != "" {
			text += "\n"
		}
		text += LeftOut(&m.Parts[i])
	}
	return text
}

// callIDs matches ids of calls that every provider takes.
var callIDs = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// CallID returns the id of a call as it can be sent to any provider: another provider, or
// a client, may have given one that is refused.
func CallID(id string) string {
	if callIDs.MatchString(id) {
		return id
	}
	return ShortID(id, 0)
}

// ShortID returns an id of at most so many bytes.
func ShortID(id string, most int) string {
	if len(id) <= most {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}
