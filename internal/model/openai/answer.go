package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

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
	// Providers differ in where they show reasoning.
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

// text is a JSON string. Null is empty; of a list of parts it is their texts;
// any other value is its own JSON, as some gateways send arguments.
type text string

// UnmarshalJSON never fails for valid JSON.
func (t *text) UnmarshalJSON(b []byte) error {
	switch {
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
		Cached *int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// answer is an answer while it is read.
type answer struct {
	model  *Model
	yield  func(holdfast.Delta, error) bool
	cancel func()

	calls  []*call
	finish string
	usage  *holdfast.Usage
	name   string // of the model that answered
	timer  *time.Timer
}

// call is a tool call that has begun. Its place in calls is the index that the
// loop sees.
type call struct {
	index int // the provider's; -1 when it gave none
	id    string
}

// afterFinish is how long the end of a stream may take after its finish reason;
// the usage comes between them.
const afterFinish = 5 * time.Second

// stream reads events until the stream's end.
func (a *answer) stream(body io.Reader) error {
	defer func() {
		if a.timer != nil {
			a.timer.Stop()
		}
	}()
	events := newEvents(body)
	for {
		data, err := events.next()
		switch {
		case errors.Is(err, errTooLong):
			return &holdfast.ModelError{Public: "The model's provider sent more than the server takes.", Err: err}
		case err != nil:
			return a.ended(err)
		case bytes.Equal(data, []byte("[DONE]")):
			return a.done()
		}
		if err := a.take(data); err != nil {
			return err
		}
	}
}

// ended judges a stream that ends without [DONE]: some providers send only a
// finish reason, and what comes after that cannot change the answer.
func (a *answer) ended(err error) error {
	if a.finish != "" {
		return a.done()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return truncated(err)
}

// whole reads an answer of a provider that does not stream.
func (a *answer) whole(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxLine+1))
	switch {
	case err != nil:
		return truncated(err)
	case len(data) > maxLine:
		return &holdfast.ModelError{Public: "The model's provider sent more than the server takes.", Err: errTooLong}
	}
	if err := a.take(data); err != nil {
		return err
	}
	if a.finish == "" {
		return truncated(errors.New("an answer that was not streamed has no finish reason"))
	}
	return a.done()
}

// take passes on what an event says.
func (a *answer) take(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return truncated(fmt.Errorf("an event is not JSON: %w", err))
	}
	if c.Error != nil {
		status := c.Error.status()
		if status < 400 {
			status = http.StatusOK
		}
		return a.model.classify(status, c.Error)
	}
	if c.Model != "" {
		a.name = c.Model
	}
	if c.Usage != nil {
		a.usage = a.usageOf(c.Usage)
	}
	if len(c.Choices) == 0 {
		return nil
	}
	// One answer was asked for.
	first := &c.Choices[0]
	for _, p := range []*piece{&first.Delta, &first.Message} {
		if err := a.piece(p); err != nil {
			return err
		}
	}
	if first.FinishReason != "" && a.finish == "" {
		a.finish = first.FinishReason
		a.timer = time.AfterFunc(afterFinish, a.cancel)
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

// call passes on a piece of a tool call. Pieces belong together by index and
// id: some providers use an index again for the next call, others give none.
func (a *answer) call(t *toolCall) error {
	at := a.find(t)
	d := holdfast.CallDelta{Arguments: string(t.Function.Arguments)}
	if at < 0 {
		at = len(a.calls)
		begun := &call{index: -1, id: t.ID}
		if t.Index != nil {
			begun.index = *t.Index
		}
		a.calls = append(a.calls, begun)
		d.ID, d.Name = t.ID, t.Function.Name
	} else if a.calls[at].id == "" {
		a.calls[at].id = t.ID
	}
	d.Index = at
	return a.emit(holdfast.Delta{Call: &d})
}

// find returns the place of the call that a piece continues, or -1.
func (a *answer) find(t *toolCall) int {
	for at := len(a.calls) - 1; at >= 0; at-- {
		c := a.calls[at]
		sameID := t.ID == c.id || t.ID == "" || c.id == ""
		switch {
		case t.Index != nil && *t.Index == c.index && sameID:
			return at
		case t.Index == nil && t.ID != "" && t.ID == c.id:
			return at
		case t.Index == nil && t.ID == "" && t.Function.Name == "":
			return at // the one that came last
		}
	}
	return -1
}

func (a *answer) emit(d holdfast.Delta) error {
	if !a.yield(d, nil) {
		return errStopped
	}
	return nil
}

// done ends the answer with its last delta.
func (a *answer) done() error {
	return a.emit(holdfast.Delta{Usage: a.usage, Finish: a.reason()})
}

func (a *answer) reason() holdfast.FinishReason {
	switch strings.ToLower(a.finish) {
	case "length", "max_tokens":
		return holdfast.FinishLength
	case "content_filter":
		return holdfast.FinishFilter
	}
	// Whatever they call it, an answer with calls wants them made.
	if len(a.calls) > 0 {
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
		ReasoningTokens: u.CompletionDetails.Reasoning, CachedInput: u.PromptDetails.Cached,
	}
}
