package agui

// Reading a RunAgentInput whose bytes have been checked. encoding/json would validate all of
// it again, byte by byte, and most of it is the content of messages, which stays JSON text. So
// the members of the input and of its messages are read here, and only the smaller things in
// them are left to encoding/json. The result is the same.

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// read sets what a body says that has inputShape, and whose lists have the counts.
func (in *RunAgentInput) read(body []byte, counts strictjson.Counts) error {
	for name, value := range strictjson.Members(body) {
		var err error
		switch string(name) {
		case "threadId":
			in.ThreadID = strictjson.Text(value)
		case "runId":
			in.RunID = strictjson.Text(value)
		case "protocolVersion":
			in.ProtocolVersion = strictjson.Text(value)
		case "parentRunId":
			in.ParentRunID = strictjson.Text(value)
		case "state":
			in.State = bytes.Clone(value)
		case "forwardedProps":
			in.ForwardedProps = bytes.Clone(value)
		case "messages":
			err = in.readMessages(value, counts[messagesShape])
		case "tools":
			// A list that grows as it is decoded takes three times its memory.
			in.Tools = make([]Tool, 0, counts[toolsShape])
			err = json.Unmarshal(value, &in.Tools)
		case "context":
			err = json.Unmarshal(value, &in.Context)
		case "resume":
			err = json.Unmarshal(value, &in.Resume)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readMessages reads a list of n messages. null means the same as none.
func (in *RunAgentInput) readMessages(list []byte, n int) error {
	if list[0] != '[' {
		return nil
	}
	in.Messages = make([]Message, n)
	i := 0
	for value := range strictjson.Elements(list) {
		if err := in.Messages[i].read(value); err != nil {
			return err
		}
		i++
	}
	return nil
}

// read sets what a value says that has messageShape.
func (m *Message) read(value []byte) error {
	for name, value := range strictjson.Members(value) {
		if text := m.textOf(name); text != nil {
			*text = strictjson.Text(value)
			continue
		}
		switch string(name) {
		case "content":
			m.Content = bytes.Clone(value)
		case "metadata":
			m.Metadata = bytes.Clone(value)
		case "toolCalls":
			if err := json.Unmarshal(value, &m.ToolCalls); err != nil {
				return err
			}
		}
	}
	return nil
}
