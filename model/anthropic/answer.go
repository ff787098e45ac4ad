package anthropic

// Reading an answer: blocks of thinking, text and calls, by index, which may come one
// after another or in turn. An answer is complete only after message_stop.

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// event is one event of a stream: all fields of all kinds.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      string          `json:"type"`
		Text      modelhttp.Text  `json:"text"`
		Thinking  modelhttp.Text  `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type        string         `json:"type"`
		Text        modelhttp.Text `json:"text"`
		Thinking    modelhttp.Text `json:"thinking"`
		Signature   string         `json:"signature"`
		PartialJSON modelhttp.Text `json:"partial_json"`
		StopReason  string         `json:"stop_reason"`
		StopDetails struct {
			Category    string `json:"category"`
			Explanation string `json:"explanation"`
		} `json:"stop_details"`
	} `json:"delta"`
	Usage *usage `json:"usage"`
	// Error is in an event of the type error; gateways leave the type out.
	Error json.RawMessage `json:"error"`
}

// usage is Anthropic's count of tokens. Its input is what was neither read from the cache
// nor written to it.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    *struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// answer is an answer that is being read.
type answer struct {
	*modelhttp.Answer
	model *Model

	now    event // the one that is being read: a new one for each would be a third of the cost
	blocks map[int]*block
	// pending are blocks of thinking that were not passed on as a secret yet.
	pending []json.RawMessage
	calls   int // calls so far
	held    int // bytes of what is not passed on at once; see hold
	stop    string
	why     string // the details of the stop
	usage   usage
	counted bool   // there was a report of usage
	name    string // of the model that answered
}

// block is a block of content that has begun.
type block struct {
	kind string
	// thinking, signature and data are those of thinking, to be sent back.
	thinking, signature []byte
	seam                modelhttp.Seam // of the thinking
	data                string
	call                int  // the index of the call
	given               bool // the call has arguments
}

// The kinds of blocks.
const (
	blockText     = "text"
	blockThinking = "thinking"
	blockRedacted = "redacted_thinking"
	blockToolUse  = "tool_use"
)

const (
	// maxHeld bounds what is held of an answer, in bytes, and perBlock is what each block
	// counts: nobody else can bound what is not passed on.
	maxHeld  = 4 << 20
	perBlock = 1 << 8
)

// Event implements modelhttp.Parser.
func (a *answer) Event(ev modelhttp.Event) error { return a.Spent(a.event(ev), a.total) }

func (a *answer) event(ev modelhttp.Event) error {
	if text, ok := plainText(ev.Data); ok && !ev.Failed {
		return a.say(text)
	}
	a.now = event{}
	e := &a.now
	if err := json.Unmarshal(ev.Data, e); err != nil && !ev.Failed {
		return a.odd(ev.Data, err)
	}
	if ev.Failed || e.Type == "error" || modelhttp.Given(e.Error) {
		return a.Fail(modelhttp.ParseFailure(0, ev.Data))
	}
	switch e.Type {
	case "message_start":
		a.name = a.model.client.NameOf(e.Message.Model)
		a.count(e.Message.Usage)
	case "content_block_start":
		return a.begin(e)
	case "content_block_delta":
		return a.delta(e)
	case "content_block_stop":
		return a.end(e.Index)
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop, a.why = e.Delta.StopReason, e.Delta.StopDetails.Category+" "+e.Delta.StopDetails.Explanation
		}
		a.count(e.Usage)
	case "message_stop":
		return a.done()
	case "ping":
		if len(a.blocks) > 0 {
			return a.Emit(holdfast.Delta{}) // a sign of life
		}
	}
	return nil
}

// odd decides about an event that has another form than expected: what is not known may
// have any.
func (a *answer) odd(data []byte, cause error) error {
	type named struct {
		Type string `json:"type"`
	}
	var e struct {
		named
		Block named `json:"content_block"`
		Delta named `json:"delta"`
	}
	if err := json.Unmarshal(data, &e); err != nil && e.Type == "" {
		return a.Undecodable(cause)
	}
	kind, known := e.Type, []string{"message_start", "content_block_stop", "message_delta", "message_stop", "error", ""}
	switch e.Type {
	case "content_block_start":
		kind, known = e.Block.Type, []string{blockText, blockThinking, blockRedacted, blockToolUse, ""}
	case "content_block_delta":
		kind, known = e.Delta.Type, []string{"text_delta", "thinking_delta", "signature_delta", "input_json_delta", ""}
	}
	if slices.Contains(known, kind) {
		return a.Undecodable(cause)
	}
	return nil
}

// Whole implements modelhttp.Parser.
func (a *answer) Whole(data []byte) error {
	var v struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &v) == nil && modelhttp.Given(v.Error) {
		return a.Fail(modelhttp.ParseFailure(0, data))
	}
	return a.NotStreamed(data)
}

// Ended implements modelhttp.Parser.
func (a *answer) Ended(cause error) error { return a.Spent(a.Truncated(cause), a.total) }

// Most events are pieces of text, with these bytes around it and spaces behind.
var (
	beforeIndex = []byte(`{"type":"content_block_delta","index":`)
	beforeText  = []byte(`,"delta":{"type":"text_delta","text":"`)
	afterText   = []byte(`"}}`)
)

// plainText returns the text of an event that has the usual form, and nothing in it that
// has to be decoded.
func plainText(data []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(data, beforeIndex)
	if !ok {
		return "", false
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	if rest, ok = bytes.CutPrefix(rest[digits:], beforeText); !ok || digits == 0 || digits > 9 {
		return "", false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return "", false
	}
	text := rest[:end]
	ascii := true
	for _, b := range text {
		if b < ' ' || b == '\\' {
			return "", false
		}
		ascii = ascii && b < utf8.RuneSelf
	}
	if !ascii && !utf8.Valid(text) {
		return "", false
	}
	// Spaces stand behind some events, before the last brace.
	after := bytes.TrimRight(rest[end:], " ")
	if after, ok = bytes.CutSuffix(after, afterText[2:]); !ok {
		return "", false
	}
	if !bytes.Equal(bytes.TrimRight(after, " "), afterText[:2]) {
		return "", false
	}
	return string(text), true
}

// say passes a piece of text on, after the thinking that came before it.
func (a *answer) say(text string) error {
	if text == "" {
		return nil
	}
	if err := a.flush(); err != nil {
		return err
	}
	return a.Emit(holdfast.Delta{Text: text})
}

// hold counts bytes that are not passed on at once.
func (a *answer) hold(n int) error {
	if a.held += n; a.held > maxHeld {
		return a.TooMuch("thinking, or blocks without content")
	}
	return nil
}

// begin takes the start of a block.
func (a *answer) begin(e *event) error {
	if err := a.hold(perBlock + len(e.Block.Data) + len(e.Block.Signature) + len(e.Block.Thinking)); err != nil {
		return err
	}
	b := &block{kind: e.Block.Type, data: e.Block.Data}
	a.blocks[e.Index] = b
	switch b.kind {
	case blockText:
		return a.say(string(e.Block.Text))
	case blockThinking:
		b.signature = append(b.signature, e.Block.Signature...)
		return a.think(b, string(e.Block.Thinking))
	case blockToolUse:
		if e.Block.Name == "" {
			return a.Malformed("The model made a tool call without a name.", errNameless)
		}
		if err := a.flush(); err != nil {
			return err
		}
		b.call = a.calls
		a.calls++
		arguments := ""
		if given := bytes.TrimSpace(e.Block.Input); len(given) > 0 && string(given) != "{}" && string(given) != "null" {
			arguments, b.given = string(given), true // some gateways have them here
		}
		return a.Emit(holdfast.Delta{
			Call: &holdfast.CallDelta{Index: b.call, ID: e.Block.ID, Name: e.Block.Name, Arguments: arguments},
		})
	}
	return nil
}

var errNameless = errors.New("a tool call has no name")

// delta takes a piece of a block.
func (a *answer) delta(e *event) error {
	b := a.blocks[e.Index]
	if b == nil {
		b = &block{} // a gateway that leaves starts out
	}
	switch e.Delta.Type {
	case "text_delta":
		return a.say(string(e.Delta.Text))
	case "thinking_delta":
		return a.think(b, string(e.Delta.Thinking))
	case "signature_delta":
		b.signature = append(b.signature, e.Delta.Signature...)
		return a.hold(len(e.Delta.Signature))
	case "input_json_delta":
		if b.kind != blockToolUse || b.given || e.Delta.PartialJSON == "" {
			return nil
		}
		return a.Emit(holdfast.Delta{Call: &holdfast.CallDelta{Index: b.call, Arguments: string(e.Delta.PartialJSON)}})
	}
	return nil
}

// think passes a piece of thinking on, and keeps it to be sent back.
func (a *answer) think(b *block, text string) error {
	if text == "" {
		return nil
	}
	b.thinking = append(b.thinking, b.seam.Join(text)...)
	if err := a.hold(len(text)); err != nil {
		return err
	}
	return a.Emit(holdfast.Delta{Reasoning: text})
}

// end takes the end of a block.
func (a *answer) end(index int) error {
	b := a.blocks[index]
	if b == nil {
		return nil
	}
	var back any
	switch {
	case b.kind == blockThinking && len(b.signature) > 0:
		back = thinking{Type: b.kind, Thinking: string(b.thinking), Signature: string(b.signature)}
	case b.kind == blockRedacted && b.data != "":
		back = redacted{Type: b.kind, Data: b.data}
	default:
		return nil
	}
	raw, err := json.Marshal(back)
	if err != nil {
		return a.Undecodable(err)
	}
	a.pending = append(a.pending, raw)
	a.blocks[index] = &block{} // an end that comes twice ends nothing
	return nil
}

// thinking and redacted are blocks as they are sent back.
type thinking struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type redacted struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

// flush passes on, as one secret, the blocks of thinking that have ended.
func (a *answer) flush() error {
	if len(a.pending) == 0 {
		return nil
	}
	sealed := a.model.client.Seal(a.Said(), a.calls, a.pending...)
	a.pending = nil
	return a.Emit(holdfast.Delta{ReasoningSecret: sealed})
}

// done ends the answer with its last delta.
func (a *answer) done() error {
	switch a.stop {
	case "":
		return a.Truncated(errors.New("message_stop came without a stop reason"))
	case "refusal":
		return a.Refused(strings.TrimSpace(a.why))
	}
	if err := a.flush(); err != nil {
		return err
	}
	if err := a.Emit(holdfast.Delta{Usage: a.total(), Finish: a.reason()}); err != nil {
		return err
	}
	return modelhttp.ErrComplete
}

func (a *answer) reason() holdfast.FinishReason {
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		// A turn pauses only for tools that run at Anthropic, of which there are none.
		return holdfast.FinishLength
	}
	// No matter the reason, an answer with calls wants them made.
	if a.calls > 0 {
		return holdfast.FinishToolCalls
	}
	return holdfast.FinishStop
}

// count takes a report of usage. Reports are totals; what one leaves out stays as it was.
func (a *answer) count(u *usage) {
	if u == nil {
		return
	}
	a.counted = true
	for _, c := range []struct{ have, said **int64 }{
		{&a.usage.Input, &u.Input}, {&a.usage.CacheRead, &u.CacheRead}, {&a.usage.CacheWrite, &u.CacheWrite},
		{&a.usage.Output, &u.Output},
	} {
		if *c.said != nil {
			*c.have = *c.said
		}
	}
	if u.Details != nil {
		a.usage.Details = u.Details
	}
}

// total returns the usage as Holdfast counts it: the input with what was cached.
func (a *answer) total() *holdfast.Usage {
	if !a.counted {
		return nil
	}
	u := &holdfast.Usage{
		Provider:        provider,
		Model:           a.model.client.NameOf(a.name),
		OutputTokens:    a.usage.Output,
		CachedInput:     a.usage.CacheRead,
		CacheWriteInput: a.usage.CacheWrite,
	}
	if a.usage.Details != nil {
		u.ReasoningTokens = a.usage.Details.Thinking
	}
	u.InputTokens = modelhttp.Sum(a.usage.Input, a.usage.CacheRead, a.usage.CacheWrite)
	if a.usage.Input == nil {
		u.InputTokens = nil
	}
	return modelhttp.Total(u)
}
