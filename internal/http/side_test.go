package http

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// aside answers each request with a side run; route says which must say that it wants one.
func aside(t *testing.T, route *string) *fake {
	t.Helper()
	return &fake{
		post: func(_ context.Context, _ holdfast.Principal, _ string, in *agui.RunAgentInput) (*agui.Reply, error) {
			if in.Side != strings.HasSuffix(*route, "/suggest") {
				t.Errorf("%s: side is %v", *route, in.Side)
			}
			var frames []agui.Frame
			for _, ev := range []agui.Event{
				agui.RunStarted{ThreadID: "t", RunID: "r"},
				agui.ToolCallStart{ToolCallID: "c", ToolCallName: "suggest", ParentMessageID: "m"},
				agui.ToolCallArgs{ToolCallID: "c", Delta: `{"a":1}`},
				agui.ToolCallEnd{ToolCallID: "c"},
				agui.RunFinished{ThreadID: "t", RunID: "r"},
			} {
				frames = append(frames, agui.Frame{Data: agui.Append(nil, ev)})
			}
			return &agui.Reply{
				ThreadID: "t",
				RunID:    "r",
				Side:     true,
				Frames:   func(yield func([]agui.Frame, error) bool) { yield(frames, nil) },
			}, nil
		},
	}
}

// TestSideRunOnTheWire: its stream has no cursors and says what it is; as JSON it is told from
// the stream, because there is no thread to read.
func TestSideRunOnTheWire(t *testing.T) {
	var route string
	s := serve(t, aside(t, &route), func(c *Config) { c.Agents = oneAgent{} })
	for _, route = range []string{"/runs", "/agents/helper/runs", "/copilotkit/agent/helper/run",
		"/copilotkit/agent/default/suggest"} {
		res, body := do(t, "POST", s.URL+route, minimal, "Content-Type", typeJSON)
		if res.StatusCode != http.StatusOK || strings.Contains(body, "\nid:") || strings.Count(body, "\ndata:") != 5 {
			t.Errorf("%s: %d %s", route, res.StatusCode, body)
		}
		if res.Header.Get("Holdfast-Run") != "" || res.Header.Get("Holdfast-Side-Run") != "r" {
			t.Errorf("%s: %v", route, res.Header)
		}
		res, body = do(t, "POST", s.URL+route, minimal, jsonHeaders...)
		var got struct {
			Outcome  string            `json:"outcome"`
			Messages []json.RawMessage `json:"messages"`
			State    json.RawMessage   `json:"state"`
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Outcome != "success" ||
			len(got.Messages) != 1 || string(got.State) != "{}" ||
			!strings.Contains(string(got.Messages[0]), `"name":"suggest"`) ||
			res.Header.Get("Holdfast-Side-Run") != "r" {
			t.Errorf("%s: %d %s", route, res.StatusCode, body)
		}
	}
}
