package aisdk

// The parts of UI messages that a stream and a history show in the same way.

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// step is an answer of a model, with the results of its calls.
type step struct {
	begun bool
	// sealed means that what follows belongs to the next one.
	sealed bool
	// message is that of the model's text and calls, and shown are all messages of the step.
	message string
	shown   []string
	calls   []string // the ids of its calls
}

// kindOf returns the type of parts with words.
func kindOf(reasoning bool) string {
	if reasoning {
		return partReasoning
	}
	return partText
}

// failureOf returns the text of a result that is an error's; said is what its message says.
func failureOf(content json.RawMessage, said string, mark thread.ResultMark) (text string, failed bool) {
	if said != "" {
		return said, true
	}
	if !mark.Failed {
		return "", false
	}
	if json.Unmarshal(content, &text) != nil {
		text = string(content)
	}
	return text, true
}

// denied reports whether a call was not made because a person did not want it.
func denied(text string, mark thread.ResultMark) bool {
	return mark.NotRun && (text == thread.TextDeclined || strings.HasPrefix(text, "The person did not allow this call"))
}

// besides is a part of a UI message that is no text and no call. Its chunk is the same.
type besides struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	SourceID  string          `json:"sourceId,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	URL       string          `json:"url,omitempty"`
	Title     string          `json:"title,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// activitySource is the type of activities that name a source of an answer.
const activitySource = "source"

// madeByModel are the types of activities that are what a model has made besides text.
var madeByModel = map[string]bool{
	"holdfast.image": true, "holdfast.audio": true, "holdfast.video": true, "holdfast.document": true,
}

// beside returns the part that shows an activity; none for a picture that is left out.
func beside(id, kind string, content json.RawMessage) []besides {
	var said struct {
		URL       string `json:"url"`
		MIMEType  string `json:"mimeType"`
		MediaType string `json:"mediaType"`
		Title     string `json:"title"`
		Filename  string `json:"filename"`
		LeftOut   int    `json:"leftOut"`
	}
	known := json.Unmarshal(content, &said) == nil
	switch {
	case known && said.LeftOut > 0 && madeByModel[kind]:
		return nil
	case known && said.URL != "" && madeByModel[kind]:
		return []besides{{Type: partFile, MediaType: said.MIMEType, URL: said.URL}}
	case known && kind == activitySource && said.URL != "":
		return []besides{{Type: "source-url", SourceID: id, URL: said.URL, Title: said.Title}}
	case known && kind == activitySource && said.Title != "" && said.MediaType != "":
		return []besides{{
			Type:      "source-document",
			SourceID:  id,
			MediaType: said.MediaType,
			Title:     said.Title,
			Filename:  said.Filename,
		}}
	}
	if len(content) == 0 {
		content = json.RawMessage("{}")
	}
	return []besides{{Type: "data-activity", ID: id, Data: encoded(struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}{kind, content})}}
}

// usageOf is what an answer has cost, in the words of the AI SDK.
type usageOf struct {
	InputTokens       *int64 `json:"inputTokens,omitempty"`
	OutputTokens      *int64 `json:"outputTokens,omitempty"`
	TotalTokens       *int64 `json:"totalTokens,omitempty"`
	ReasoningTokens   *int64 `json:"reasoningTokens,omitempty"`
	CachedInputTokens *int64 `json:"cachedInputTokens,omitempty"`
}

// sumOf adds up what all models of a run have cost; nil if nobody knows.
func sumOf(usage []holdfast.Usage) *usageOf {
	if len(usage) == 0 {
		return nil
	}
	sum := &usageOf{}
	for i := range usage {
		u := &usage[i]
		for _, pair := range [][2]**int64{
			{&sum.InputTokens, &u.InputTokens},
			{&sum.OutputTokens, &u.OutputTokens},
			{&sum.TotalTokens, &u.TotalTokens},
			{&sum.ReasoningTokens, &u.ReasoningTokens},
			{&sum.CachedInputTokens, &u.CachedInput},
		} {
			to, from := pair[0], *pair[1]
			switch {
			case from == nil:
			case *to == nil:
				n := *from
				*to = &n
			default:
				**to += *from
			}
		}
	}
	return sum
}

// questionOf returns a question that is no approval, as a page shows it.
func questionOf(q *agui.Interrupt) []byte {
	return encoded(threads.Interrupt{
		ID:             q.ID,
		Reason:         q.Reason,
		Message:        q.Message,
		ToolCallID:     q.ToolCallID,
		ResponseSchema: q.ResponseSchema,
		ExpiresAt:      q.ExpiresAt,
		Metadata:       q.Metadata,
	})
}
