package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/schema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Questions of a server in the middle of a call. A person answers them one after the other,
// and each time the run ends meanwhile; what the server has asked and what was answered is
// kept with the call. With the last answer the call goes on: the same call, with the state
// that the server gave.

// The types of results that are not the end of a call.
const (
	typeInput = "input_required"
	typeTask  = "task"
)

// demand is a result that asks for something.
type demand struct {
	Type     string          `json:"resultType"`
	Requests inputRequests   `json:"inputRequests"`
	State    json.RawMessage `json:"requestState"`
}

// inputRequests are what a server asks for, by keys of its own.
type inputRequests map[string]inputRequest

type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// asked is what our question's metadata says: the frontend shows it, and with the answer it
// tells which question was answered.
type asked struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Mode   string `json:"mode"`
	URL    string `json:"url,omitempty"`
	Key    string `json:"key"`
	Round  int    `json:"round"`
}

// demanded takes over what the server asks for instead of an answer. It returns the first
// question; nil if the server only wants to be called again.
func (c *calling) demanded(ctx context.Context, r *demand) (*holdfast.Interrupt, error) {
	questions, err := c.questionsOf(r.Requests)
	if err != nil {
		return nil, err
	}
	c.kept.Round++
	c.kept.State, c.kept.Questions, c.kept.Answers, c.kept.Sending = r.State, questions, nil, false
	if string(r.State) == "null" {
		c.kept.State = nil
	}
	if err := c.keep(ctx); err != nil {
		return nil, err
	}
	return c.ask(""), nil
}

// pagesFirst returns the error with which a server of the older revisions says that a person
// has to open pages before the call can be made, as the newer ones would say it; nil if err
// is any other.
func pagesFirst(err error) json.RawMessage {
	const codePagesFirst = -32042
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != codePagesFirst {
		return nil
	}
	var said struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(rpc.Data, &said) != nil || len(said.Elicitations) == 0 {
		return nil
	}
	d := demand{Type: typeInput, Requests: inputRequests{}}
	for i, params := range said.Elicitations {
		d.Requests[fmt.Sprintf("page%03d", i)] = inputRequest{Method: "elicitation/create", Params: params}
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil
	}
	return raw
}

// questionsOf returns the questions among what a server asks for, in the order of their
// keys. It is not offered anything else, so anything else is a mistake.
func (c *calling) questionsOf(requests inputRequests) ([]question, error) {
	var questions []question
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		r := requests[key]
		wrong := func(text string) error {
			return holdfast.Errorf(codeAnswer,
				"%s was called, and the MCP server %s asks for something that it cannot get: %s.", c.spec.Name,
				c.peer.o.Name, text)
		}
		q := question{Key: key}
		if r.Method != "elicitation/create" {
			return nil, wrong(shorten(r.Method, 50))
		}
		if err := json.Unmarshal(r.Params, &q); err != nil {
			return nil, wrong("a question that cannot be read")
		}
		q.Key = key
		if u, err := url.Parse(q.URL); q.url() &&
			(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
			return nil, wrong("a page that has no address in the web")
		}
		if q.url() {
			q.Schema = json.RawMessage(urlSchema)
		} else if _, err := schema.Compile(q.Schema); schema.IsBound(err) {
			return nil, wrong(fmt.Sprintf("an answer to %s whose schema cannot be used: %v",
				strconv.Quote(shorten(key, 50)), err))
		} else if err != nil {
			return nil, wrong("an answer whose schema cannot be used")
		}
		questions = append(questions, q)
	}
	return questions, nil
}

// urlSchema is the schema of the answer to a question on a page elsewhere.
const urlSchema = `{"type":"object","properties":{"action":{"type":"string","enum":["accept","decline","cancel"],` +
	`"description":"accept, the default: the page was opened."}}}`

// ask returns the next question without an answer; nil if there is none. Note is added to
// it.
func (c *calling) ask(note string) *holdfast.Interrupt {
	for _, q := range c.kept.Questions {
		if c.kept.Answers[q.Key] != nil {
			continue
		}
		m := asked{
			Server: c.peer.o.Name,
			Tool:   c.spec.Name,
			Mode:   "form",
			URL:    q.URL,
			Key:    q.Key,
			Round:  c.kept.Round,
		}
		if q.url() {
			m.Mode = "url"
		}
		metadata, err := json.Marshal(map[string]asked{"mcp": m})
		if err != nil {
			return nil
		}
		return &holdfast.Interrupt{
			Reason:         holdfast.ReasonInputRequired,
			Message:        q.Message + note,
			ResponseSchema: q.Schema,
			Metadata:       metadata,
			TellDeclined:   true,
		}
	}
	return nil
}

// answered takes over the person's answer, if the call has come with one, and returns the
// next question; nil if there is none.
func (c *calling) answered(ctx context.Context) *holdfast.Interrupt {
	a := c.call.Answer
	var to struct {
		MCP asked `json:"mcp"`
	}
	if a == nil || json.Unmarshal(a.Asked, &to) != nil || to.MCP.Round != c.kept.Round {
		return c.ask("") // it answers something else, such as whether the call may be made
	}
	for _, q := range c.kept.Questions {
		if q.Key != to.MCP.Key || c.kept.Answers[q.Key] != nil {
			continue
		}
		answer, err := q.answer(ctx, a)
		if err != nil {
			return c.ask(fmt.Sprintf(" (The answer before could not be used: %v.)", err))
		}
		if c.kept.Answers == nil {
			c.kept.Answers = map[string]json.RawMessage{}
		}
		c.kept.Answers[q.Key] = answer
	}
	return c.ask("")
}

// answer returns a person's answer as the server gets it.
func (q *question) answer(ctx context.Context, a *holdfast.Answer) (json.RawMessage, error) {
	said := struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content,omitempty"`
	}{Action: "accept"}
	switch {
	case a.Declined:
		said.Action = "decline"
	case q.url():
		var page struct {
			Action string `json:"action"`
		}
		if json.Unmarshal(a.Payload, &page) == nil && page.Action != "" {
			said.Action = page.Action
		}
	default:
		s, err := schema.Compile(q.Schema)
		if err == nil {
			err = s.Validate(ctx, a.Payload)
		}
		if err != nil {
			return nil, err
		}
		said.Content = a.Payload
	}
	return json.Marshal(said)
}

// askAfterKeeping asks the next question of several, when the answers so far are kept.
func (c *calling) askAfterKeeping(ctx context.Context, ask *holdfast.Interrupt) error {
	return orInterrupt(c.keep(ctx), ask)
}

// orInterrupt returns the error, or else the question.
func orInterrupt(err error, ask *holdfast.Interrupt) error {
	if err != nil {
		return err
	}
	return ask
}
