package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// Decoding the events of frameworks, with the ways in which they differ from AG-UI 1.0.

// decode reads an event, and returns its JSON in the form of AG-UI 1.0. An event that AG-UI does not
// know becomes RAW.
func decode(data []byte) (agui.Event, json.RawMessage, error) {
	if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > strictjson.MaxDepth &&
		strictjson.Depth(string(data)) > strictjson.MaxDepth {
		return nil, nil, fmt.Errorf("an event is nested more than %d deep", strictjson.MaxDepth)
	}
	if !bytes.Contains(data, []byte(`_id"`)) && !bytes.Contains(data, []byte(`"THINKING_`)) &&
		!bytes.Contains(data, []byte(`null`)) {
		if ev, err := agui.DecodeEvent(data); err == nil {
			return ev, data, nil
		}
	}
	return mended(data)
}

// thinking are the events of reasoning before AG-UI 0.0.58.
var thinking = map[string]agui.Type{
	"THINKING_START":                agui.TypeReasoningStart,
	"THINKING_END":                  agui.TypeReasoningEnd,
	"THINKING_TEXT_MESSAGE_START":   agui.TypeReasoningMessageStart,
	"THINKING_TEXT_MESSAGE_CONTENT": agui.TypeReasoningMessageContent,
	"THINKING_TEXT_MESSAGE_END":     agui.TypeReasoningMessageEnd,
}

// errCut says that an event is no JSON object, mostly because the stream ended within it.
var errCut = errors.New("an event is no JSON object")

// mended reads an event after its members have got the names that AG-UI gives them.
func mended(data []byte) (agui.Event, json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, nil, errors.Join(errCut, err)
	}
	var kind string
	if json.Unmarshal(members["type"], &kind) != nil || kind == "" {
		return nil, nil, errors.New("an event has no type")
	}
	is, old := thinking[kind]
	if !old && !agui.Type(kind).Known() {
		data = asRaw(data)
		ev, err := agui.DecodeEvent(data)
		return ev, data, err
	}
	named := make(map[string]json.RawMessage, len(members))
	for name, value := range members {
		// A payload may be null; any other member is then as if it were not there.
		if string(value) == "null" && name != "snapshot" && name != "event" && name != "value" {
			continue
		}
		if to := camel(name); to == name || members[to] == nil {
			named[to] = value
		}
	}
	if old {
		named["type"] = quoted(string(is))
		if named["messageId"] == nil {
			named["messageId"] = quoted("thinking")
		}
	}
	if kind == string(agui.TypeCustom) && named["value"] == nil {
		named["value"] = json.RawMessage("null")
	}
	raw, err := json.Marshal(named)
	if err != nil {
		return nil, nil, err
	}
	ev, err := agui.DecodeEvent(raw)
	return ev, raw, err
}

// asRaw returns an event that AG-UI does not know as RAW.
func asRaw(data []byte) json.RawMessage {
	raw := append([]byte(`{"type":"RAW","event":`), data...)
	return append(raw, `,"source":"remote"}`...)
}

// camel returns a name as AG-UI writes it: messageId for message_id.
func camel(name string) string {
	head, rest, found := strings.Cut(name, "_")
	for found && head != "" {
		var next string
		next, rest, found = strings.Cut(rest, "_")
		if next != "" {
			head += strings.ToUpper(next[:1]) + next[1:]
		}
	}
	return head
}

func quoted(text string) json.RawMessage { return strictjson.AppendText(nil, text) }
