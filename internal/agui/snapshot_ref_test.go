package agui_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// TestActivityReference: the event that a log keeps for a large activity has the bytes of the
// event itself once its content is back, whatever members the event has.
func TestActivityReference(t *testing.T) {
	yes, no := true, false
	content := json.RawMessage(`{"text":"large"}`)
	for name, replace := range map[string]*bool{"unset": nil, "true": &yes, "false": &no} {
		t.Run(name, func(t *testing.T) {
			ev := agui.ActivitySnapshot{
				Base:          agui.Base{Timestamp: 1},
				MessageID:     "m",
				ActivityType:  "t",
				Content:       content,
				Replace:       replace,
				SubagentRunID: "s",
			}
			got := agui.ExpandResult(agui.Append(nil, ev.Ref()), content)
			if want := agui.Append(nil, ev); string(got) != string(want) {
				t.Errorf("back from the log: %s\nwant: %s", got, want)
			}
		})
	}
}
