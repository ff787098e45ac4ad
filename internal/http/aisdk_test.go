package http

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

const chatBody = `{"id":"t","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`

// answered is what an engine says to a chat.
func answered() []agui.Frame {
	var frames []agui.Frame
	for i, ev := range []agui.Event{
		agui.RunStarted{ThreadID: "t", RunID: "r"}, agui.TextMessageStart{MessageID: "a"},
		agui.TextMessageContent{MessageID: "a", Delta: "so"}, agui.TextMessageEnd{MessageID: "a"},
		agui.RunFinished{ThreadID: "t", RunID: "r"},
	} {
		frames = append(frames, agui.Frame{ID: store.Cursor{Number: uint64(i + 1), Tag: "x"}.String(),
			Data: agui.Append(nil, ev)})
	}
	return frames
}

const answeredChunks = `: holdfast

data: {"type":"start","messageId":"answer-m","messageMetadata":{"holdfast":{"runId":"r"}}}

id: 2-x
data: {"type":"start-step"}

data: {"type":"text-start","id":"a"}

id: 3-x
data: {"type":"text-delta","id":"a","delta":"so"}

id: 4-x
data: {"type":"text-end","id":"a"}

data: {"type":"finish-step"}

id: 5-x
data: {"type":"finish","finishReason":"stop","messageMetadata":{"holdfast":{"runId":"r"}}}

data: [DONE]

`

// TestAISDKOnTheWire: what a page of the AI SDK sends and gets, byte by byte.
func TestAISDKOnTheWire(t *testing.T) {
	f := chatting(t)
	var in *agui.RunAgentInput
	f.post = func(_ context.Context, _ holdfast.Principal, agent string, got *agui.RunAgentInput) (*agui.Reply, error) {
		if in = got; agent != "helper" || !in.Chat || in.ThreadID != "t" || in.ProtocolVersion == "" ||
			in.After != (agui.Position{}) {
			t.Errorf("agent %q, %+v", agent, in)
		}
		return reply(answered()), nil
	}
	s := serve(t, f, func(c *Config) { c.Agents = oneAgent{} })
	post := func(path, body string, header ...string) (*http.Response, string) {
		return do(t, "POST", s.URL+"/ai-sdk/"+path, body, append(header, "Content-Type", "application/json")...)
	}
	res, got := post("helper", chatBody)
	if got != answeredChunks || res.Header.Get("X-Vercel-Ai-Ui-Message-Stream") != "v1" ||
		res.Header.Get("Content-Type") != typeSSE {
		t.Errorf("%v\n%s", res.Header, got)
	}
	if _, got := post("default", chatBody, "Last-Event-ID", "3-x"); got != ": holdfast\n\n"+
		answeredChunks[strings.Index(answeredChunks, "id: 4-x"):] {
		t.Errorf("after a record:\n%s", got)
	}
	if post("helper", `{"id":"t","trigger":"regenerate-message"}`); len(in.Messages) != 1 || in.Messages[0].ID != "m" {
		t.Errorf("another answer to %+v", in.Messages)
	}
	for path, code := range map[string]string{
		"nobody": codes.AgentNotFound, "helper?sdk=4": codes.InvalidInput, "helper?after=x": codes.InvalidCursor,
	} {
		if _, got := post(path, chatBody); !strings.Contains(got, `"`+code+`"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if _, got := post("helper/t/stop", ""); got != `{"stopped":true}`+"\n" {
		t.Errorf("stop: %s", got)
	}
}

// TestAISDKResumes: a page that is loaded is shown the answer that is being written, and 204
// where none is, whether the chat exists or not.
func TestAISDKResumes(t *testing.T) {
	f := chatting(t)
	f.attached = []any{answered()}
	f.events = func(after store.Cursor, _ agui.Dialect) (*agui.Reply, error) {
		if after != (store.Cursor{}) {
			t.Errorf("the run is read after %v", after)
		}
		return reply(answered()), nil
	}
	s := serve(t, f, func(c *Config) { c.Agents = oneAgent{} })
	get := func(path string) (int, string) {
		res, got := do(t, "GET", s.URL+"/ai-sdk/helper/"+path, "")
		return res.StatusCode, got
	}
	if code, got := get("t/stream"); code != http.StatusOK || !strings.HasSuffix(got, "[DONE]\n\n") ||
		strings.Count(got, `"start"`) != 1 {
		t.Errorf("%d %s", code, got)
	}
	f.info.Status, f.info.Outcome, f.info.UpdatedAt = threads.StatusIdle, holdfast.OutcomeSuccess, time.Now()
	for path, want := range map[string]int{"t/stream": http.StatusOK, "t/stream?sdk=6": http.StatusNoContent} {
		if code, _ := get(path); code != want {
			t.Errorf("%s of an answer that has just been completed: %d", path, code)
		}
	}
	f.info.UpdatedAt = time.Now().Add(-time.Minute)
	if code, got := get("t/stream"); code != http.StatusNoContent || got != "" {
		t.Errorf("%d %s", code, got)
	}
	if _, got := get("t/stream?after=4-x"); strings.Contains(got, "text-") || !strings.Contains(got, `"finish"`) {
		t.Errorf("after a record: %s", got)
	}
	code, got := get("t")
	var chat struct {
		ID, Status string
		Messages   []struct {
			ID    string
			Parts []struct{ Type, State, Text string }
		}
	}
	if err := json.Unmarshal([]byte(got), &chat); err != nil || code != http.StatusOK || chat.ID != "t" ||
		chat.Status != "idle" || len(chat.Messages) != 2 || chat.Messages[1].ID != "answer-m" ||
		chat.Messages[1].Parts[1].Text != "<so>" || chat.Messages[1].Parts[2].State != "output-available" {
		t.Errorf("%d %s", code, got)
	}
	f.err = holdfast.Errorf(codes.NotFound, "No.")
	if code, got := get("new/stream"); code != http.StatusNoContent || got != "" {
		t.Errorf("%d %s", code, got)
	}
	if code, got := get("new"); code != http.StatusOK || got != `{"id":"new","messages":[],"status":"idle"}`+"\n" {
		t.Errorf("%d %s", code, got)
	}
}

// TestAISDKStreamThatIsCut: the page is told so in a chunk; a client that comes back is not.
func TestAISDKStreamThatIsCut(t *testing.T) {
	f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return reply(answered()[:3], holdfast.Errorf(codes.StreamCut, "It ends.")), nil
	}}
	s := serve(t, f, func(c *Config) { c.Agents = oneAgent{} })
	for resume, told := range map[string]bool{"": true, "1": false} {
		_, got := do(t, "POST", s.URL+"/ai-sdk/helper", chatBody, "Content-Type", "application/json",
			"Holdfast-Resume", resume)
		if strings.Contains(got, `{"type":"error","errorText":"The connection was interrupted`) != told ||
			strings.Contains(got, "RUN_ERROR") || strings.Contains(got, "[DONE]") != told {
			t.Errorf("resume %q: %s", resume, got)
		}
	}
}
