package openai

// Reading an answer: a stream of chunks, or a whole answer in one piece, with all the
// ways in which providers differ.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// chunk is one event of a stream, or a whole answer.
type chunk struct {
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	// An error may come at any time, with status 200.
	Error *apiError `json:"error"`
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
}

type toolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments text   `json:"arguments"`
	} `json:"function"`
}

// text is a JSON string. Null becomes empty, a list of parts becomes their texts, and
// any other value becomes its own JSON, because some gateways send arguments that way.
type text string

// UnmarshalJSON never fails for valid JSON.
func (t *text) UnmarshalJSON(b []byte) error {
	switch {
	case len(b) > 1 && b[0] == '"' && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b):
		*t = text(b[1 : len(b)-1]) // the common case: nothing to decode
		return nil
	case len(b) > 0 && b[0] == '"':
		return json.Unmarshal(b, (*string)(t))
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
	model  *Model
	yield  func(holdfast.Delta, error) bool
	cancel func()
	body   *bufio.Reader
	closer io.Closer // of the body; nil if there is none

	calls  []*call
	finish string
	usage  *holdfast.Usage
	name   string // of the model that answered
	timer  *time.Timer
	shape  shape
	held   int // bytes of calls before their names; see hold
}

const (
	// afterFinish is how long the end of a stream may take after its finish reason; the
	// usage comes in between.
	afterFinish = 5 * time.Second
	// afterDone is how long the end of the body may take after [DONE], and maxAfterDone
	// how many bytes may come before it. A connection whose body was read to its end is
	// reused.
	afterDone    = 100 * time.Millisecond
	maxAfterDone = 4 << 10
	// maxName bounds the name of a model, in bytes: it is stored with the usage.
	maxName = 256
)

// read reads an answer of any kind to its end.
func (a *answer) read() error {
	// The headers do not always tell what it is.
	switch firstByte(a.body) {
	case '{', '[':
		return a.whole(a.body)
	case '<':
		return a.page(a.body)
	}
	return a.stream(newEvents(a.body))
}

func (a *answer) close() {
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.closer != nil {
		// Everything that matters has been read.
		_ = a.closer.Close()
	}
	a.cancel()
}

func (a *answer) fail(ctx context.Context, err error) {
	a.yield(holdfast.Delta{}, a.model.failed(ctx, err))
}

// firstByte looks ahead to the first byte that is not a space; 0 if there is none.
func firstByte(r *bufio.Reader) byte {
	for n := 1; n <= r.Size(); n++ {
		b, err := r.Peek(n)
		if err != nil {
			return 0
		}
		if len(bytes.TrimSpace(b)) > 0 {
			return b[n-1]
		}
	}
	return 0
}

// stream reads events until the end of the stream.
func (a *answer) stream(events *events) error {
	for {
		ev, err := events.next()
		switch {
		case errors.Is(err, errTooLong):
			return tooLong()
		case err != nil:
			return a.ended(err)
		case string(ev.data) == "[DONE]":
			defer a.drain(events)
			return a.done()
		}
		if err := a.take(ev); err != nil {
			if a.finish == "" || errors.Is(err, errStopped) {
				return err
			}
			return a.done()
		}
	}
}

// drain reads the end of the body, so that the connection can be reused.
func (a *answer) drain(events *events) {
	a.within(afterDone)
	// Neither its content nor an error matters.
	_, _ = io.CopyN(io.Discard, events.r, maxAfterDone)
}

// within gives up reading after d.
func (a *answer) within(d time.Duration) {
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.cancel)
		return
	}
	a.timer.Reset(d)
}

// ended decides about a stream that ends without [DONE]: some providers send only a
// finish reason, and nothing after that can change the answer.
func (a *answer) ended(err error) error {
	if a.finish != "" {
		return a.done()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return truncated(err)
}

// whole reads the answer of a provider that does not stream.
func (a *answer) whole(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxLine+1))
	switch {
	case err != nil:
		return truncated(err)
	case len(data) > maxLine:
		return tooLong()
	}
	if err := a.take(event{data: unwrapped(data)}); err != nil {
		return err
	}
	if a.finish == "" {
		return truncated(errors.New("an answer that was not streamed has no finish reason"))
	}
	return a.done()
}

// page handles a web page: the response of a wrong base URL, and of some gateways in
// trouble.
func (a *answer) page(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	return &holdfast.ModelError{
		Retryable: true, Public: "The model's provider answered with a web page. If this persists, the model's base URL is wrong: most end in /v1.",
		Err: errors.Join(errors.New("a web page: "+a.model.quote(string(text))), err),
	}
}

// take passes on what an event says.
func (a *answer) take(ev event) error {
	if text, ok := a.shape.text(ev.data); ok && !ev.isError() {
		return a.emit(holdfast.Delta{Text: text})
	}
	var c chunk
	broken := json.Unmarshal(ev.data, &c)
	if c.Error == nil && len(c.Choices) == 0 && c.Usage == nil && ev.isError() {
		c.Error = errorOf(ev.data)
	}
	if c.Error != nil {
		status := c.Error.status()
		if status < 400 {
			status = http.StatusOK
		}
		return a.model.classify(status, c.Error)
	}
	if broken != nil {
		return truncated(fmt.Errorf("an event is not JSON of the expected form: %w", broken))
	}
	if c.Model != "" {
		a.name = strings.ToValidUTF8(c.Model[:min(len(c.Model), maxName)], "")
	}
	if c.Usage != nil {
		a.usage = a.usageOf(c.Usage)
	}
	if len(c.Choices) == 0 {
		return nil
	}
	a.shape.learn(ev.data, &c)
	// Only one answer was requested.
	first := &c.Choices[0]
	for _, p := range []*piece{&first.Delta, &first.Message} {
		if err := a.piece(p); err != nil {
			return err
		}
	}
	if first.FinishReason == "error" { // OpenRouter
		return a.model.classify(http.StatusOK, &apiError{Message: "the finish reason is an error"})
	}
	if first.FinishReason != "" && a.finish == "" {
		a.finish = first.FinishReason
		a.within(afterFinish)
	}
	return nil
}

func (a *answer) piece(p *piece) error {
	reasoning := p.ReasoningContent
	if reasoning == "" {
		reasoning = p.Reasoning
	}
	if reasoning != "" {
		if err := a.emit(holdfast.Delta{Reasoning: string(reasoning)}); err != nil {
			return err
		}
	}
	if said := p.Content + p.Refusal; said != "" {
		if err := a.emit(holdfast.Delta{Text: string(said)}); err != nil {
			return err
		}
	}
	for i := range p.ToolCalls {
		if err := a.call(&p.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) emit(d holdfast.Delta) error {
	if !a.yield(d, nil) {
		return errStopped
	}
	return nil
}

// done ends the answer with its last delta.
func (a *answer) done() error {
	if err := a.nameless(); err != nil {
		return err
	}
	return a.emit(holdfast.Delta{Usage: a.usage, Finish: a.reason()})
}

func (a *answer) reason() holdfast.FinishReason {
	switch strings.ToLower(a.finish) {
	case "length", "max_tokens":
		return holdfast.FinishLength
	case "content_filter":
		return holdfast.FinishFilter
	}
	// Whatever the finish reason, an answer with calls wants them made.
	if slices.ContainsFunc(a.calls, func(c *call) bool { return c.name != "" }) {
		return holdfast.FinishToolCalls
	}
	return holdfast.FinishStop
}

func (a *answer) usageOf(u *usage) *holdfast.Usage {
	name := a.name
	if name == "" {
		name = a.model.name
	}
	return &holdfast.Usage{
		Provider: "openai", Model: name, InputTokens: u.Prompt, OutputTokens: u.Completion, TotalTokens: u.Total,
		ReasoningTokens: u.CompletionDetails.Reasoning, CachedInput: u.PromptDetails.Cached, CacheWriteInput: u.PromptDetails.CacheWrite,
	}
}
