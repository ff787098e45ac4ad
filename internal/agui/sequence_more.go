package agui

import (
	"encoding/json"
	"slices"
	"strings"
)

// The chunk lanes.
const (
	laneText = iota
	laneTool
	laneReasoning
)

// chunk accepts the compact form: the first chunk of an item names it, later
// ones may repeat that name and nothing else. Anything else that comes ends the
// item.
func (q *Sequencer) chunk(ev Event) error {
	var lane int
	var id, as string
	triad := TypeTextMessageStart
	switch e := ev.(type) {
	case TextMessageChunk:
		lane, id, as = laneText, e.MessageID, e.Role+"\x00"+e.Name
	case ToolCallChunk:
		lane, id, as, triad = laneTool, e.ToolCallID, e.ToolCallName, TypeToolCallStart
	case ReasoningMessageChunk:
		lane, id, triad = laneReasoning, e.MessageID, TypeReasoningMessageStart
	}
	t := ev.EventType()
	if id == "" {
		if q.chunks[lane] == "" {
			return refuse(t, "the first chunk of an item names it")
		}
		id = q.chunks[lane]
	}
	if q.find(triad, id) >= 0 {
		return refuse(t, "%q is open in START and END form", id)
	}
	if id == q.chunks[lane] {
		if strings.Trim(as, "\x00") != "" && as != q.chunkAs[lane] {
			return refuse(t, "%q was begun with another role or name", id)
		}
		return nil
	}
	if lane == laneTool && as == "" {
		return refuse(t, "the first chunk of a call has the tool's name")
	}
	q.endChunks()
	q.chunks[lane], q.chunkAs[lane] = id, as
	return nil
}

func (q *Sequencer) subagentStarted(ev Event) error {
	e, ok := ev.(SubagentStarted)
	switch {
	case !ok || e.SubagentRunID == "" || e.Name == "":
		return refuse(TypeSubagentStarted, "it has no id or no name")
	case q.subagents[e.SubagentRunID]:
		return refuse(TypeSubagentStarted, "%q was announced before", e.SubagentRunID)
	case e.ParentSubagentRunID != "" && q.find(TypeSubagentStarted, e.ParentSubagentRunID) < 0:
		return refuse(TypeSubagentStarted, "its parent is not active")
	}
	if q.subagents == nil {
		q.subagents = map[string]bool{}
	}
	q.subagents[e.SubagentRunID] = true
	q.open = append(q.open, item{kind: TypeSubagentStarted, id: e.SubagentRunID, start: ev})
	return nil
}

// subagentEnded closes what the subagent left open before it ends.
func (q *Sequencer) subagentEnded(ev Event) ([]Event, error) {
	var id string
	switch e := ev.(type) {
	case SubagentFinished:
		id = e.SubagentRunID
	case SubagentError:
		id = e.SubagentRunID
	}
	at := q.find(TypeSubagentStarted, id)
	if at < 0 {
		return nil, refuse(ev.EventType(), "subagent %q is not active", id)
	}
	var before []Event
	for i := len(q.open) - 1; i >= 0; i-- {
		if o := q.open[i]; o.agent == id || isChild(o, id) {
			before = append(before, closer(o))
			q.open = slices.Delete(q.open, i, i+1)
		}
	}
	at = q.find(TypeSubagentStarted, id)
	q.open = slices.Delete(q.open, at, at+1)
	q.endChunks()
	return before, nil
}

func isChild(i item, parent string) bool {
	s, ok := i.start.(SubagentStarted)
	return ok && s.ParentSubagentRunID == parent
}

// checkPatch accepts a list of RFC 6902 operations.
func checkPatch(t Type, patch json.RawMessage) error {
	var ops []struct {
		Op   string  `json:"op"`
		Path *string `json:"path"`
	}
	if err := json.Unmarshal(patch, &ops); err != nil {
		return refuse(t, "it is not a list of operations")
	}
	for _, op := range ops {
		if !slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, op.Op) {
			return refuse(t, "operation %q is unknown", op.Op)
		}
		if op.Path == nil || (*op.Path != "" && !strings.HasPrefix(*op.Path, "/")) {
			return refuse(t, "a path is not a JSON pointer")
		}
	}
	return nil
}
