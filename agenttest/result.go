package agenttest

// Result is the answer to a request to the harness, read from the response's events, with the
// history as the API shows it and the tool calls that were actually started.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/threads"
)

// Outcome is how a request ended.
type Outcome string

// The outcomes. Refused: nothing was started. Cut: the process died; see
// [Harness.Resume].
const (
	Success   Outcome = "success"
	Interrupt Outcome = "interrupt"
	Cancelled Outcome = "cancelled"
	Failed    Outcome = "error"
	Refused   Outcome = "refused"
	Cut       Outcome = "cut"
)

// Result is the outcome of a request.
type Result struct {
	// Outcome is how the request ended.
	Outcome Outcome
	// Code is the error code of Failed and Refused.
	Code string
	// Message is the error text of Failed and Refused: for Failed what the person in front
	// of the page reads.
	Message string
	// Hint is the whole text of the error of a Failed run, for developers.
	Hint string
	// Output is the answer of an agent whose answers have a form, as JSON; nil for any other.
	Output json.RawMessage
	// RunID is the run of the request.
	RunID string
	// Events are those of the stream, in order.
	Events []Event
	// Questions are the open questions to a person.
	Questions []Question
	// OutsideCalls are the calls that wait to be finished from outside; [Harness.Finish]
	// finishes one.
	OutsideCalls []threads.OutsideCall
	// FrontendCalls are the ids of the calls that wait for the frontend; [Harness.Deliver] sends
	// the result of one.
	FrontendCalls []string
	// Messages are the stored history of the thread afterwards.
	Messages []holdfast.Message
	// Started are the tool calls that were started since the previous result, as the
	// tools received them; parallel ones in any order. Calls that middleware answered
	// in a tool's place are not among them. A call that is finished from outside is one
	// when it is handed out.
	Started []holdfast.ToolCall
}

// Event is an AG-UI event.
type Event struct {
	// ID is its cursor; empty for an event that is not in the log, such as a snapshot
	// for a client that joins late.
	ID string
	// Type is its AG-UI type, such as "RUN_STARTED".
	Type string
	// Raw is the whole event.
	Raw json.RawMessage
}

// Map returns the event as a decoded JSON object.
func (e Event) Map() map[string]any {
	var m map[string]any
	// Raw is an object: it has been decoded before.
	_ = json.Unmarshal(e.Raw, &m)
	return m
}

// Notice is a CUSTOM event: something that a middleware or the server reports.
type Notice struct {
	// Name is the notice's "owner.name".
	Name string `json:"name"`
	// Value is what the notice carries, as JSON.
	Value json.RawMessage `json:"value"`
}

// Question is a question to a person; see [holdfast.Interrupt].
type Question struct {
	// ID identifies the question in an answer.
	ID string `json:"id"`
	// Reason is the interrupt's Reason.
	Reason string `json:"reason"`
	// Message is the text of the question.
	Message string `json:"message"`
	// CallID is the tool call that waits for the answer; empty if the iteration itself
	// waits.
	CallID string `json:"toolCallId"`
	// ResponseSchema is the JSON Schema of the answer's payload; nil if any will do.
	ResponseSchema json.RawMessage `json:"responseSchema"`
	// Metadata is what the interrupt attached, as JSON.
	Metadata json.RawMessage `json:"metadata"`
}

// Types returns the types of the events, in order.
func (r *Result) Types() []string {
	out := make([]string, len(r.Events))
	for i, e := range r.Events {
		out[i] = e.Type
	}
	return out
}

// Notices returns the CUSTOM events of this result.
func (r *Result) Notices() []Notice {
	var out []Notice
	for _, e := range r.Events {
		if e.Type != string(agui.TypeCustom) {
			continue
		}
		var n Notice
		// Raw is an object: it has been decoded before.
		_ = json.Unmarshal(e.Raw, &n)
		out = append(out, n)
	}
	return out
}

// Results returns the texts of the history's tool results, by call id.
func (r *Result) Results() map[string]string {
	out := map[string]string{}
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Role == holdfast.RoleTool {
			out[m.CallID] = m.PlainText()
		}
	}
	return out
}

// Answer returns the text of the last message, if it is the agent's.
func (r *Result) Answer() string {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == holdfast.RoleAssistant {
		return r.Messages[n-1].PlainText()
	}
	return ""
}

// watched is a tool that records when it is started.
type watched struct {
	holdfast.Tool
	h *Harness
}

func (w *watched) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	w.h.mu.Lock()
	w.h.started = append(w.h.started, call)
	w.h.mu.Unlock()
	return w.Tool.Call(ctx, call)
}

// post posts the input as a new run.
func (h *Harness) post(in *agui.RunAgentInput) *Result {
	h.t.Helper()
	h.posts++
	in.ThreadID, in.RunID, in.ProtocolVersion = h.on.name, fmt.Sprintf("run%d", h.posts), agui.ProtocolVersion
	for _, tool := range h.cfg.FrontendTools {
		in.Tools = append(in.Tools, agui.Tool{Name: tool.Name, Description: tool.Description,
			Parameters: tool.Parameters})
	}
	return h.result(in.RunID, h.ask("POST", "/runs", in.AppendJSON(nil), ""))
}

// follow continues a stream where it broke off.
func (h *Harness) follow(from *cursor) *Result {
	h.t.Helper()
	path := "/threads/" + url.PathEscape(h.on.name) + "/runs/" + from.run + "/events"
	return h.result(from.run, h.ask("GET", path, nil, from.event))
}

// Request passes a request of the caller to the server's handler, and returns when it is
// answered: for what a client can do and the harness has no method for, such as a fork. The
// body is written as JSON; nil is no body.
func (h *Harness) Request(method, path string, body any) *http.Response {
	h.t.Helper()
	var data []byte
	if body != nil {
		data = h.json(body)
	}
	return h.ask(method, path, data, "").Result()
}

// ask passes a request to the server's handler and returns when it is answered.
func (h *Harness) ask(method, path string, body []byte, after string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	// A dead process sends nothing, not even that it is dead.
	r.Header.Set("Holdfast-Resume", "1")
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	w := httptest.NewRecorder()
	h.server.Handler().ServeHTTP(w, r)
	return w
}

// result reads the response and the thread's history.
func (h *Harness) result(run string, w *httptest.ResponseRecorder) *Result {
	h.t.Helper()
	r := &Result{RunID: run}
	if w.Code == http.StatusOK {
		r.Events = h.events(w.Body.String())
		h.ended(r)
		h.settle(r)
	} else {
		h.refused(r, w)
	}
	r.Messages = h.messages()
	h.mu.Lock()
	r.Started, h.started = h.started, nil
	h.mu.Unlock()
	if m, ok := h.cfg.Model.(*Model); ok {
		if err := m.ranOut(); err != nil {
			h.t.Fatalf("agenttest: %v", err)
		}
	}
	return r
}

// events reads a stream.
func (h *Harness) events(stream string) []Event {
	h.t.Helper()
	var out []Event
	var e Event
	for line := range strings.SplitSeq(stream, "\n") {
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			e.ID = id
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var head struct{ Type string }
		h.read("an event", []byte(data), &head)
		e.Type, e.Raw = head.Type, json.RawMessage(data)
		out = append(out, e)
		e = Event{}
	}
	return out
}

// ended records how the run ended, or that it was cut off, and what a client
// remembers about it.
func (h *Harness) ended(r *Result) {
	h.t.Helper()
	known := h.thread()
	known.notices = append(known.notices, r.Notices()...)
	r.Outcome = Cut
	var last Event
	if len(r.Events) > 0 {
		last = r.Events[len(r.Events)-1]
	}
	var end struct {
		Result  json.RawMessage
		Outcome *struct {
			Type               Outcome
			Interrupts         []Question
			PendingToolCallIDs []string
		}
		Metadata struct {
			Holdfast struct{ OutsideCalls []threads.OutsideCall }
		}
	}
	switch agui.Type(last.Type) {
	case agui.TypeRunError:
		var failure agui.RunError
		h.read("the run's end", last.Raw, &failure)
		r.Outcome, r.Code, r.Message, r.Hint = Failed, failure.Code, failure.Message, failure.FullText()
	case agui.TypeRunFinished:
		h.read("the run's end", last.Raw, &end)
		r.Outcome, r.Output, r.OutsideCalls = Success, end.Result, end.Metadata.Holdfast.OutsideCalls
		if end.Outcome != nil {
			r.Outcome, r.Questions = end.Outcome.Type, end.Outcome.Interrupts
			r.FrontendCalls = end.Outcome.PendingToolCallIDs
		}
	}
	known.open = r.Questions
	if r.Outcome != Cut {
		known.cut = nil
		return
	}
	if known.cut == nil || known.cut.run != r.RunID {
		known.cut = &cursor{run: r.RunID}
	}
	for _, e := range r.Events {
		if e.ID != "" {
			known.cut.event = e.ID
		}
	}
}

// runEnded matches the server's last line about a run.
var runEnded = regexp.MustCompile(`msg="run ended" .*\brun=(\S+)`)

// settle waits until the process is done with a run whose end is in the thread's log,
// so that the process's own log is complete.
func (h *Harness) settle(r *Result) {
	h.t.Helper()
	if r.Outcome == Cut || r.Events[len(r.Events)-1].ID == "" {
		return
	}
	run := h.shown(r)
	ended := h.log.Seen(func(line string) bool {
		m := runEnded.FindStringSubmatch(line)
		return m != nil && m[1] == run
	})
	late := time.NewTimer(process.Limit)
	defer late.Stop()
	select {
	case <-ended:
	case <-h.process.Dead():
	case <-late.C:
		h.t.Fatalf("agenttest: the server's log does not have the end of %s", run)
	}
}

// shown returns the id of the run whose events the result has: a request that finds a run
// under way is shown that one.
func (h *Harness) shown(r *Result) string {
	var started struct {
		Metadata struct {
			Holdfast struct{ RunID string }
		}
	}
	h.read("the run's beginning", r.Events[0].Raw, &started)
	return cmp.Or(started.Metadata.Holdfast.RunID, r.RunID)
}

// refused reads an error that was returned instead of a stream.
func (h *Harness) refused(r *Result, w *httptest.ResponseRecorder) {
	h.t.Helper()
	var body struct {
		Error struct{ Code, Message string }
	}
	h.read(fmt.Sprintf("the answer %d", w.Code), w.Body.Bytes(), &body)
	r.Outcome, r.Code, r.Message = Refused, body.Error.Code, body.Error.Message
}

// messages reads the history; a thread that does not exist has none.
func (h *Harness) messages() []holdfast.Message {
	h.t.Helper()
	w := h.ask("GET", h.path("/messages"), nil, "")
	switch {
	case w.Code == http.StatusNotFound, h.t.Context().Err() != nil:
		return nil
	case w.Code != http.StatusOK:
		h.t.Fatalf("agenttest: the messages cannot be read: %d %s", w.Code, w.Body)
	}
	var list struct{ Messages []json.RawMessage }
	h.read("the messages", w.Body.Bytes(), &list)
	out := make([]holdfast.Message, len(list.Messages))
	for i, raw := range list.Messages {
		m, err := agui.DecodeMessage(raw)
		if err == nil {
			out[i], err = m.Domain()
		}
		if err != nil {
			h.t.Fatalf("agenttest: the message %s cannot be read: %v", raw, err)
		}
	}
	return out
}

// path returns a path below the selected thread's.
func (h *Harness) path(rest string) string { return "/threads/" + url.PathEscape(h.on.name) + rest }

func (h *Harness) read(what string, data []byte, into any) {
	h.t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		h.t.Fatalf("agenttest: %s cannot be read: %v in %s", what, err, data)
	}
}

func (h *Harness) json(v any) json.RawMessage {
	h.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		h.t.Fatalf("agenttest: the payload cannot be written as JSON: %v", err)
	}
	return data
}
