package agui

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// Reading messages that this package has written. A thread's history is read as a whole, so
// thousands of them are decoded for one request, and encoding/json takes most of that time. A
// message read here is the one that encoding/json would have read. Where that is not plain to
// see, all of the message is left to encoding/json: if a member is there twice, has a name that
// is not known, or is of another type.

// readPlain reads a message, which shares memory with data. It reports false if the message has
// to be read by encoding/json.
func readPlain(data []byte) (m Message, ok bool) {
	ok = strictjson.ReadObject(data, func(name, value []byte) bool {
		switch string(name) {
		case "role":
			if role, known := knownRoles[string(value)]; known && m.Role == "" {
				m.Role = role
				return true
			}
		case "content":
			return setRaw(&m.Content, value)
		case "metadata":
			return setRaw(&m.Metadata, value)
		case "toolCalls":
			return m.ToolCalls == nil && m.readCalls(value)
		}
		return setText(m.textOf(name), value)
	})
	return m, ok
}

// knownRoles are the roles, by their JSON.
var knownRoles = func() map[string]string {
	roles := map[string]string{}
	for _, r := range []holdfast.Role{
		holdfast.RoleUser, holdfast.RoleAssistant, holdfast.RoleTool, holdfast.RoleReasoning, holdfast.RoleActivity,
		holdfast.RoleSystem, holdfast.RoleDeveloper,
	} {
		roles[`"`+string(r)+`"`] = string(r)
	}
	return roles
}()

// textOf returns where the text of a member goes; nil if it has none.
func (m *Message) textOf(name []byte) *string {
	switch string(name) {
	case "id":
		return &m.ID
	case "role":
		return &m.Role
	case "name":
		return &m.Name
	case "toolCallId":
		return &m.ToolCallID
	case "error":
		return &m.Error
	case "encryptedValue":
		return &m.EncryptedValue
	case "activityType":
		return &m.ActivityType
	case "subagentRunId":
		return &m.SubagentRunID
	}
	return nil
}

// setText sets a text, if value is one or null and nothing has set it before.
func setText(text *string, value []byte) bool {
	if text == nil || *text != "" {
		return false
	}
	if value[0] == '"' {
		*text = strictjson.Text(value)
	}
	return value[0] == '"' || value[0] == 'n'
}

// setRaw sets what stays JSON, if nothing has set it before.
func setRaw(raw *json.RawMessage, value []byte) bool {
	unset := *raw == nil
	*raw = value
	return unset
}

// readCalls reads the calls of a message from a list that is known to be valid.
func (m *Message) readCalls(list []byte) bool {
	if list[0] != '[' {
		return false
	}
	m.ToolCalls = []ToolCall{}
	for value := range strictjson.Elements(list) {
		c, ok := readCall(value)
		if !ok {
			return false
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	return true
}

// readCall reads a call, which shares memory with data.
func readCall(data []byte) (c ToolCall, ok bool) {
	ok = strictjson.ReadObject(data, func(name, value []byte) bool {
		var text *string
		switch string(name) {
		case "function":
			return c.Function == (Function{}) && c.Function.read(value)
		case "metadata":
			return setRaw(&c.Metadata, value)
		case "id":
			text = &c.ID
		case "type":
			text = &c.Type
		case "encryptedValue":
			text = &c.EncryptedValue
		}
		return setText(text, value)
	})
	return c, ok
}

// read reads the function of a call.
func (f *Function) read(data []byte) bool {
	return strictjson.ReadObject(data, func(name, value []byte) bool {
		var text *string
		switch string(name) {
		case "name":
			text = &f.Name
		case "arguments":
			text = &f.Arguments
		}
		return setText(text, value)
	})
}
