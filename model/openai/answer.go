package openai

// Reading an answer: a stream of chunks, or a whole answer in one piece, with all the
// ways in which providers differ.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// chunk is one event of a stream, or a whole answer.
type chunk struct {
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	// An error may come at any time, with status 200.
	Error json.RawMessage `json:"error"`
}

type choice struct {
	Delta        piece  `json:"delta"`
	Message      piece  `json:"message"` // in a whole answer
	FinishReason string `json:"finish_reason"`
}

type piece struct {
	Content text `json:"content"`
	Refusal text `json:"refusal"`
	// Providers differ in where they put reasoning.
	ReasoningContent text       `json:"reasoning_content"`
	Reasoning        text       `json:"reasoning"`
	ToolCalls        []toolCall `json:"tool_calls"`
	// Images are those that the model has made, as gateways have them.
	Images []struct {
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	} `json:"images"`
}

type toolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments text   `json:"arguments"`
	} `json:"function"`
	// Extra is what Gemini needs back of a call.
	Extra json.RawMessage `json:"extra_content"`
}

// text is a JSON string. Null becomes empty, a list of parts becomes their texts, and
// any other value becomes its own JSON, because some gateways send arguments that way.
type text string

// UnmarshalJSON never fails for valid JSON.
func (t *text) UnmarshalJSON(b []byte) error {
	switch {
	case len(b) > 0 && b[0] == '"':
		return (*modelhttp.Text)(t).UnmarshalJSON(b)
	case bytes.Equal(b, []byte("null")):
		return nil
	case len(b) > 0 && b[0] == '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(b, &parts) == nil {
			for _, p := range parts {
				*t += text(p.Text)
			}
			return nil
		}
	}
	*t = text(b)
	return nil
}

type usage struct {
	Prompt        *int64 `json:"prompt_tokens"`
	Completion    *int64 `json:"completion_tokens"`
	Total         *int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached     *int64 `json:"cached_tokens"`
		CacheWrite *int64 `json:"cache_write_tokens"` // OpenRouter
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// answer is an answer that is being read.
type answer struct {
	*modelhttp.Answer
	model *Model

	calls  []*call
	finish string
	usage  *holdfast.Usage
	name   string // of the model that answered
	shape  shape
	held   int // bytes of calls before their names; see hold
}

func (m *Model) parser(a *modelhttp.Answer) modelhttp.Parser { return &answer{Answer: a, model: m} }

const (
	// afterFinish is how long the end of a stream may take after its finish reason; the
	// usage comes in between.
	afterFinish = 5 * time.Second
)

// Event implements modelhttp.Parser.
func (a *answer) Event(ev modelhttp.Event) error {
	if string(ev.Data) == "[DONE]" {
		return a.complete()
	}
	err := a.take(ev)
	if err == nil || a.finish == "" || modelhttp.Stopped(err) {
		return err
	}
	return a.complete()
}

// complete ends the answer, whatever follows.
func (a *answer) complete() error {
	if err := a.done(); err != nil {
		return err
	}
	return modelhttp.ErrComplete
}

// Ended implements modelhttp.Parser. Some providers send only a finish reason, and nothing
// after that can change the answer.
func (a *answer) Ended(cause error) error {
	if a.finish != "" {
		return a.done()
	}
	return a.Truncated(cause)
}

// Whole implements modelhttp.Parser: some gateways never stream.
func (a *answer) Whole(data []byte) error {
	if err := a.take(modelhttp.Event{Data: data}); err != nil {
		return err
	}
	if a.finish == "" {
		return a.Truncated(errors.New("an answer that was not streamed has no finish reason"))
	}
	return a.done()
}

// take passes on what an event says.
func (a *answer) take(ev modelhttp.Event) error {
	if text, ok := a.shape.text(ev.Data); ok && !ev.Failed {
		return a.Emit(holdfast.Delta{Text: text})
	}
	var c chunk
	broken := json.Unmarshal(ev.Data, &c)
	if failed := modelhttp.Given(c.Error); failed || len(c.Choices) == 0 && c.Usage == nil && isError(ev) {
		return a.Fail(modelhttp.ParseFailure(0, ev.Data))
	}
	if broken != nil {
		return a.Undecodable(broken)
	}
	a.name = cmp.Or(c.Model, a.name)
	if c.Usage != nil {
		a.usage = a.usageOf(c.Usage)
	}
	if len(c.Choices) == 0 {
		return nil
	}
	a.shape.learn(ev.Data, &c)
	// Only one answer was requested.
	first := &c.Choices[0]
	for _, p := range []*piece{&first.Delta, &first.Message} {
		if err := a.piece(p); err != nil {
			return err
		}
	}
	if first.FinishReason == "error" { // OpenRouter
		return a.Fail(modelhttp.Failure{Message: "the finish reason is an error"})
	}
	if first.FinishReason != "" && a.finish == "" {
		a.finish = first.FinishReason
		a.Within(afterFinish)
	}
	return nil
}

func (a *answer) piece(p *piece) error {
	reasoning := p.ReasoningContent
	if reasoning == "" {
		reasoning = p.Reasoning
	}
	if reasoning != "" {
		if err := a.Emit(holdfast.Delta{Reasoning: string(reasoning)}); err != nil {
			return err
		}
	}
	if said := p.Content + p.Refusal; said != "" {
		if err := a.Emit(holdfast.Delta{Text: string(said)}); err != nil {
			return err
		}
	}
	for i := range p.Images {
		if url := p.Images[i].ImageURL.URL; url != "" {
			part := modelhttp.MadeAt(url)
			part.EncryptedValue = a.model.client.Seal(0, 0)
			if err := a.Emit(holdfast.Delta{Media: part}); err != nil {
				return err
			}
		}
	}
	for i := range p.ToolCalls {
		if err := a.call(&p.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

// isError reports whether an event without choices is an error: by its name, or as an
// object that says so, which vLLM used to send.
func isError(ev modelhttp.Event) bool {
	var o struct {
		Object string `json:"object"`
	}
	return ev.Failed || json.Unmarshal(ev.Data, &o) == nil && o.Object == "error"
}

// done ends the answer with its last delta.
func (a *answer) done() error {
	if err := a.nameless(); err != nil {
		return err
	}
	return a.Emit(holdfast.Delta{Usage: a.usage, Finish: a.reason()})
}

func (a *answer) reason() holdfast.FinishReason {
	switch strings.ToLower(a.finish) {
	case "length", "max_tokens":
		return holdfast.FinishLength
	case "content_filter":
		return holdfast.FinishFilter
	}
	// No matter the finish reason, an answer with calls wants them made.
	if slices.ContainsFunc(a.calls, func(c *call) bool { return c.name != "" }) {
		return holdfast.FinishToolCalls
	}
	return holdfast.FinishStop
}

func (a *answer) usageOf(u *usage) *holdfast.Usage {
	return modelhttp.Total(&holdfast.Usage{
		Provider:        provider,
		Model:           a.model.client.NameOf(a.name),
		InputTokens:     u.Prompt,
		OutputTokens:    u.Completion,
		TotalTokens:     u.Total,
		ReasoningTokens: u.CompletionDetails.Reasoning,
		CachedInput:     u.PromptDetails.Cached,
		CacheWriteInput: u.PromptDetails.CacheWrite,
	})
}
