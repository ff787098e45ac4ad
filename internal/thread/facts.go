package thread

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Facts in events about how a run went: which process ran it, and what cannot be told of a
// call from the log alone.

// ProcessMark returns the metadata of a RUN_STARTED: which process runs it, and whether the run
// is a side run, which is stored nowhere.
func ProcessMark(process string, side bool) json.RawMessage {
	mark := map[string]any{"process": process}
	if side {
		mark["sideRun"] = true
	}
	return MustJSON(map[string]any{"holdfast": mark})
}

// CallFacts is what the metadata of a TOOL_CALL_RESULT, and of its message, says of its call
// beside the [ResultMark], where it cannot be told from the log.
type CallFacts struct {
	// Attempts is how often the call was started, if more than once.
	Attempts int `json:"attempts,omitempty"`
	// Key is the call's idempotency key, if it is not the one that its thread and run give it.
	Key string `json:"key,omitempty"`
	// Remote is set if the model's side has carried the call out.
	Remote *agui.Remote `json:"remote,omitempty"`
}

// WithFacts returns the metadata of the call's result: what is given, which may be empty, and
// the call's facts. key is its idempotency key.
func (c *Call) WithFacts(metadata json.RawMessage, key string) json.RawMessage {
	if c.Key == "" && c.Edited == "" {
		key = ""
	}
	if c.Attempts < 2 && key == "" && c.Own == nil || c.Frontend {
		return metadata
	}
	all := map[string]json.RawMessage{}
	said := map[string]any{}
	if len(metadata) > 0 { // they are our own
		_ = json.Unmarshal(metadata, &all)
		_ = json.Unmarshal(all["holdfast"], &said)
	}
	if c.Attempts > 1 {
		said["attempts"] = c.Attempts
	}
	if key != "" {
		said["key"] = key
	}
	if c.Own != nil {
		said["remote"] = agui.Remote{Message: c.Own.Message}
	}
	all["holdfast"] = MustJSON(said)
	return MustJSON(all)
}

// FactsOf returns what the event of a result says of its call.
func FactsOf(ev *agui.ToolCallResult) (facts CallFacts, mark ResultMark) {
	var metadata struct {
		Holdfast struct {
			CallFacts
			ResultMark
		} `json:"holdfast"`
	}
	if len(ev.Metadata) > 0 && json.Unmarshal(ev.Metadata, &metadata) != nil {
		return facts, mark
	}
	return metadata.Holdfast.CallFacts, metadata.Holdfast.ResultMark
}
