package tools

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/contract"
)

type approvalArgs struct {
	Amount  float64 `json:"amount" jsonschema:"what it costs"`
	Subject string  `json:"subject,omitempty" jsonschema:"what it is for"`
}

// RequestApproval is the tool request_approval, a contract: the person who tries the demo
// finishes its calls, in place of a finance department.
func RequestApproval() holdfast.Tool {
	return contract.New[approvalArgs]("request_approval",
		"Asks the finance department for an approval. The answer may take days.", holdfast.Outside{
			Result: json.RawMessage(`{"type":"object","required":["approved"],` +
				`"properties":{"approved":{"type":"boolean"},` +
				`"reason":{"type":"string"}},"additionalProperties":false}`),
			ExpiresAfter: 7 * 24 * time.Hour,
			Abandonable:  true,
			FinishedBy:   access.RoleUser,
		})
}
