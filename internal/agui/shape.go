package agui

import "github.com/holdfast-agents/holdfast/internal/strictjson"

// The shape that an input may have, and the number of elements in its lists. The limits are
// far above what applications send. They keep a body of a few megabytes from becoming hundreds
// of megabytes of small values.
const (
	maxMessages = 10_000
	maxTools    = 1_000
	maxContext  = 1_000
	maxResume   = 1_000
	// maxParts and maxCalls are for one message; maxPerInput is for the parts, and for the
	// calls, of all messages together.
	maxParts    = 1_000
	maxCalls    = 1_000
	maxPerInput = 20_000
)

// inputShape is a RunAgentInput's.
var inputShape = shapeOf(map[string]*strictjson.Shape{
	"threadId":        text,
	"runId":           text,
	"protocolVersion": text,
	"parentRunId":     text,
	"state":           anything,
	"forwardedProps":  anything,
	"messages":        messagesShape,
	"tools":           toolsShape,
	"context": listOf(shapeOf(map[string]*strictjson.Shape{"description": text, "value": text}), maxContext, 0,
		"context items"),
	"resume": listOf(shapeOf(map[string]*strictjson.Shape{
		"interruptId": text, "status": text, "payload": anything, "metadata": anything,
	}), maxResume, 0, "resume entries"),
})

var messagesShape = listOf(messageShape, maxMessages, 0, "messages")

var toolsShape = listOf(shapeOf(map[string]*strictjson.Shape{
	"name": text, "description": text, "parameters": anything, "metadata": anything,
}), maxTools, 0, "tools")

// messageShape is a Message's. Its content is text, a list of parts, or an activity's
// object.
var messageShape = shapeOf(map[string]*strictjson.Shape{
	"id":             text,
	"role":           text,
	"name":           text,
	"toolCallId":     text,
	"error":          text,
	"encryptedValue": text,
	"activityType":   text,
	"subagentRunId":  text,
	"metadata":       anything,
	"content":        {Elements: partShape, Most: maxParts, Total: maxPerInput, Noun: "parts"},
	"toolCalls":      listOf(callShape, maxCalls, maxPerInput, "tool calls"),
})

var callShape = shapeOf(map[string]*strictjson.Shape{
	"id":             text,
	"type":           text,
	"encryptedValue": text,
	"metadata":       anything,
	"function":       shapeOf(map[string]*strictjson.Shape{"name": text, "arguments": text}),
})

// partShape only says how names are spelled: what a part must have is checked when it is
// decoded.
var partShape = &strictjson.Shape{Members: map[string]*strictjson.Shape{
	"type":     nil,
	"id":       nil,
	"text":     nil,
	"metadata": nil,
	"mimeType": nil,
	"url":      nil,
	"data":     nil,
	"filename": nil,
	"source":   {Members: map[string]*strictjson.Shape{"type": nil, "value": nil, "mimeType": nil, "provider": nil}},
}}

var (
	anything = &strictjson.Shape{}
	text     = &strictjson.Shape{Kind: strictjson.String}
)

func shapeOf(members map[string]*strictjson.Shape) *strictjson.Shape {
	return &strictjson.Shape{Kind: strictjson.Object, Members: members}
}

func listOf(of *strictjson.Shape, most, total int, noun string) *strictjson.Shape {
	return &strictjson.Shape{
		Kind:     strictjson.List,
		Elements: of,
		Most:     most,
		Total:    total,
		Noun:     noun,
	}
}
