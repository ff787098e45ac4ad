package agui

import "encoding/json"

// ResumeEntry answers an interrupt.
type ResumeEntry struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
}

// The statuses of a resume entry: answered, or abandoned without an answer.
const (
	ResumeResolved  = "resolved"
	ResumeCancelled = "cancelled"
)

func (r *ResumeEntry) appendJSON(dst []byte) []byte {
	o := begin(dst)
	o.str("interruptId", r.InterruptID)
	o.str("status", r.Status)
	o.raw("payload", r.Payload)
	o.obj("metadata", r.Metadata)
	return o.end()
}
