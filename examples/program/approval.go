package main

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/secret"
	"github.com/holdfast-agents/holdfast/webhook"
)

// A tool whose work is done elsewhere: people decide in a ticket system, perhaps days later.

type approval struct {
	Cents  int    `json:"cents" jsonschema:"what it costs"`
	Reason string `json:"reason" jsonschema:"why it is needed"`
}

// RequestApproval sends each call to the ticket system, which sends the decision to the URL
// in it.
func RequestApproval(tickets string, shared secret.Text) (holdfast.Tool, error) {
	deliver, err := webhook.New(webhook.Options{URL: tickets, Secret: shared})
	if err != nil {
		return nil, err
	}
	return contract.New[approval]("request_approval", "Asks the finance department. The answer may take days.",
		holdfast.Outside{
			Result: json.RawMessage(`{"type": "object", "required": ["approved"], "properties": ` +
				`{"approved": {"type": "boolean"}}}`),
			ExpiresAfter: 7 * 24 * time.Hour,
			Abandonable:  true,
			Deliver:      deliver,
		}), nil
}
