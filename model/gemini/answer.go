package gemini

// Reading an answer: parts of thoughts, text and calls, in the order in which they come.
// An answer is complete only with a finish reason.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// event is one event of a stream.
type event struct {
	Candidates []struct {
		Content struct {
			Parts []partOut `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
	} `json:"candidates"`
	Feedback *struct {
		BlockReason string `json:"blockReason"`
		Message     string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	// Usage is decoded once, at the end: each event has all of it.
	Usage json.RawMessage `json:"usageMetadata"`
	Model string          `json:"modelVersion"`
	Error json.RawMessage `json:"error"`
}

// partOut is a part of an answer.
type partOut struct {
	Text      modelhttp.Text `json:"text"`
	Thought   bool           `json:"thought"`
	Signature string         `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Data *data `json:"inlineData"`
}

// usage is Gemini's count of tokens: the candidates' are without the thoughts, and the
// prompt's are with those from the cache.
type usage struct {
	Prompt     *int64 `json:"promptTokenCount"`
	ToolPrompt *int64 `json:"toolUsePromptTokenCount"`
	Cached     *int64 `json:"cachedContentTokenCount"`
	Candidates *int64 `json:"candidatesTokenCount"`
	Thoughts   *int64 `json:"thoughtsTokenCount"`
	Total      *int64 `json:"totalTokenCount"`
}

// answer is an answer that is being read.
type answer struct {
	*modelhttp.Answer
	model *Model
	// attempt is the number of earlier attempts.
	attempt int

	calls int // calls so far
	media int // images so far
	// pending are blocks of signatures that were not passed on as a secret yet.
	pending []json.RawMessage
	held    int    // bytes of signatures so far
	usage   []byte // the last report
	name    string // of the model that answered
}

const (
	// maxHeld bounds the signatures of an answer, in bytes, and perBlock is what each
	// counts besides.
	maxHeld  = 4 << 20
	perBlock = 1 << 8
)

// signed is the block that a signature is stored as. Text is how many bytes of the text
// that follows it signs; a thought's signature stands for itself. One without a signature
// says that the model gave a call without one.
type signed struct {
	Text      int    `json:"text,omitempty"`
	Thought   bool   `json:"thought,omitempty"`
	Signature string `json:"thoughtSignature,omitempty"`
}

// Event implements modelhttp.Parser.
func (a *answer) Event(ev modelhttp.Event) error { return a.Spent(a.event(ev), a.total) }

func (a *answer) event(ev modelhttp.Event) error {
	var e event
	if err := json.Unmarshal(ev.Data, &e); err != nil && !ev.Failed {
		return a.Undecodable(err)
	}
	if ev.Failed || modelhttp.Given(e.Error) {
		return a.Fail(modelhttp.ParseFailure(0, ev.Data))
	}
	a.name = cmp.Or(a.name, e.Model)
	if modelhttp.Given(e.Usage) {
		a.usage = append(a.usage[:0], e.Usage...)
	}
	if len(e.Candidates) == 0 {
		if e.Feedback != nil && e.Feedback.BlockReason != "" {
			return a.Refused("the prompt is blocked: " + e.Feedback.BlockReason + " " + e.Feedback.Message)
		}
		return nil
	}
	c := &e.Candidates[0]
	for i := range c.Content.Parts {
		if err := a.part(&c.Content.Parts[i]); err != nil {
			return err
		}
	}
	if c.FinishReason == "" || c.FinishReason == "FINISH_REASON_UNSPECIFIED" {
		return nil
	}
	return a.done(c.FinishReason, c.FinishMessage)
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

var errNameless = errors.New("a tool call has no name")

// part takes a part of the answer.
func (a *answer) part(p *partOut) error {
	switch {
	case p.Call != nil:
		return a.call(p)
	case p.Thought:
		if p.Text != "" {
			if err := a.Emit(holdfast.Delta{Reasoning: string(p.Text)}); err != nil {
				return err
			}
		}
		return a.sign(p.Signature, signed{Thought: true})
	case p.Data != nil:
		return a.made(p)
	}
	// The signature stands before its text, so that the two go back together.
	if err := a.sign(p.Signature, signed{Text: len(p.Text)}); err != nil || p.Text == "" {
		return err
	}
	if err := a.flush(); err != nil {
		return err
	}
	return a.Emit(holdfast.Delta{Text: string(p.Text)})
}

// made takes an image, with its signature. Those among the thoughts are sketches.
func (a *answer) made(p *partOut) error {
	if err := a.flush(); err != nil {
		return err
	}
	if err := a.hold(p.Signature); err != nil {
		return err
	}
	a.media++
	part := modelhttp.Made(strings.ToLower(p.Data.MIMEType), p.Data.Data)
	part.EncryptedValue = a.model.client.Seal(0, 0, signatureAlone(p.Signature))
	return a.Emit(holdfast.Delta{Media: part})
}

// sign keeps a signature, to be sent back.
func (a *answer) sign(signature string, block signed) error {
	if signature == "" {
		return nil
	}
	block.Signature = signature
	raw, err := json.Marshal(block)
	if err != nil {
		return a.Undecodable(err)
	}
	a.pending = append(a.pending, raw)
	return a.hold(signature)
}

// hold counts a signature.
func (a *answer) hold(signature string) error {
	if a.held += perBlock + len(signature); a.held > maxHeld {
		return a.TooMuch("signatures")
	}
	return nil
}

// signatureAlone is the block of a call, written without reflection: most calls have one.
func signatureAlone(signature string) json.RawMessage {
	if signature == "" {
		return json.RawMessage("{}")
	}
	return append(strictjson.AppendText([]byte(`{"thoughtSignature":`), signature), '}')
}

// flush passes on, as one secret, the signatures that stand here.
func (a *answer) flush() error {
	if len(a.pending) == 0 {
		return nil
	}
	sealed := a.model.client.SealAfter(a.media, a.Said(), a.calls, a.pending...)
	a.pending = nil
	return a.Emit(holdfast.Delta{ReasoningSecret: sealed})
}

// call takes a call, which is always whole. The first of an answer is signed, or else it
// is remembered that the model gave no signature, so that nothing stands in for it later.
func (a *answer) call(p *partOut) error {
	if p.Call.Name == "" {
		return a.malformed("The model made a tool call without a name.", errNameless)
	}
	if err := a.flush(); err != nil {
		return err
	}
	d := &holdfast.CallDelta{Index: a.calls, ID: p.Call.ID, Name: p.Call.Name}
	if args := bytes.TrimSpace(p.Call.Args); modelhttp.Given(args) && string(args) != "{}" {
		d.Arguments = string(args)
	}
	if p.Signature != "" || a.calls == 0 {
		if err := a.hold(p.Signature); err != nil {
			return err
		}
		d.EncryptedValue = a.model.client.Seal(0, 0, signatureAlone(p.Signature))
	}
	a.calls++
	return a.Emit(holdfast.Delta{Call: d})
}

// malformed returns the error of an answer that cannot be used. One more attempt may help,
// but a model that does it twice mostly does it again.
func (a *answer) malformed(public string, cause error) error {
	err := a.Malformed(public, cause)
	var e *holdfast.ModelError
	if errors.As(err, &e) {
		e.Retryable = a.attempt == 0
	}
	return err
}

// filters are the finish reasons of content that the provider holds back.
var filters = []string{"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"}

// done ends the answer with its last delta.
func (a *answer) done(reason, message string) error {
	finish := holdfast.FinishStop
	switch {
	case reason == "MALFORMED_FUNCTION_CALL",
		reason == "UNEXPECTED_TOOL_CALL",
		reason == "TOO_MANY_TOOL_CALLS",
		reason == "MISSING_THOUGHT_SIGNATURE",
		reason == "OTHER":
		return a.malformed("The model's answer cannot be used.",
			errors.New(a.Quote("the finish reason is "+reason+" "+message)))
	case slices.Contains(filters, reason), strings.HasPrefix(reason, "IMAGE_"):
		finish = holdfast.FinishFilter
	case reason == "MAX_TOKENS":
		finish = holdfast.FinishLength
	case a.calls > 0:
		// No matter the reason, an answer with calls wants them made.
		finish = holdfast.FinishToolCalls
	}
	if err := a.flush(); err != nil {
		return err
	}
	if err := a.Emit(holdfast.Delta{Usage: a.total(), Finish: finish}); err != nil {
		return err
	}
	return modelhttp.ErrComplete
}

// total returns the usage as Holdfast counts it; nil if none was reported.
func (a *answer) total() *holdfast.Usage {
	var u usage
	if len(a.usage) == 0 || json.Unmarshal(a.usage, &u) != nil {
		return nil
	}
	return modelhttp.Total(&holdfast.Usage{
		Provider:        provider,
		Model:           a.model.client.NameOf(a.name),
		InputTokens:     modelhttp.Sum(u.Prompt, u.ToolPrompt),
		OutputTokens:    modelhttp.Sum(u.Candidates, u.Thoughts),
		TotalTokens:     u.Total,
		ReasoningTokens: u.Thoughts,
		CachedInput:     u.Cached,
	})
}
