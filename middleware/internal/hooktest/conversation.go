package hooktest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// Conversation is one thread, "t", on a server with one agent. It sends only what is new.
type Conversation struct {
	*Server
	sent int
}

// Converse starts a server for a conversation.
func Converse(t *testing.T, agent holdfast.Agent, changes ...func(*server.Config)) *Conversation {
	t.Helper()
	return &Conversation{Server: Serve(t, agent, changes...)}
}

type object = map[string]any

// Say posts a user's message.
func (c *Conversation) Say(text string) Stream {
	c.t.Helper()
	return c.post(object{"messages": []object{{"id": fmt.Sprint("user", c.sent), "role": "user", "content": text}}})
}

// GoOn posts no messages, which resumes a run that has stopped.
func (c *Conversation) GoOn() Stream {
	c.t.Helper()
	return c.post(object{})
}

// Answer answers a question with a payload in JSON.
func (c *Conversation) Answer(question, payload string) Stream {
	c.t.Helper()
	return c.post(
		object{
			"resume": []object{{"interruptId": question, "status": "resolved", "payload": json.RawMessage(payload)}},
		},
	)
}

// Decline abandons a question.
func (c *Conversation) Decline(question string) Stream {
	c.t.Helper()
	return c.post(object{"resume": []object{{"interruptId": question, "status": "cancelled"}}})
}

// Deliver posts the frontend's result of a call.
func (c *Conversation) Deliver(call, content string) Stream {
	c.t.Helper()
	return c.post(
		object{
			"messages": []object{
				{"id": fmt.Sprint("result", c.sent), "role": "tool", "toolCallId": call, "content": content},
			},
		},
	)
}

// post offers the frontend's tool "confirm" with every request.
func (c *Conversation) post(body object) Stream {
	c.t.Helper()
	body["tools"] = []object{{"name": "confirm", "description": "", "parameters": object{}}}
	c.sent++
	return c.Post("t", fmt.Sprint("run", c.sent), body)
}
