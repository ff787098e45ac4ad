package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Outcome is how what was asked for ended.
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

// Result is what came of a request.
type Result struct {
	Outcome Outcome
	// Code and Message are the error of Failed and Refused.
	Code    string
	Message string
	// RunID is the run that was asked for.
	RunID string
	// Events are those of the stream, in order.
	Events []Event
	// Questions are what a person is asked.
	Questions []Question
	// Messages are the history of the thread afterwards, as far as it is stored.
	Messages []holdfast.Message
	// Started are the tool calls whose tools were started since the result before,
	// as the tools got them; parallel ones in any order. What middleware answers in a tool's place is not there.
	Started []holdfast.ToolCall
}

// Event is an AG-UI event.
type Event struct {
	// ID is its cursor; empty for one that is not in the log, like a snapshot for
	// those who come later.
	ID   string
	Type string
	// Raw is all of it.
	Raw json.RawMessage
}

// Map returns the event as a decoded JSON object.
func (e Event) Map() map[string]any {
	var m map[string]any
	// Raw is an object: it was read before.
	_ = json.Unmarshal(e.Raw, &m)
	return m
}

// Notice is a CUSTOM event: something that a middleware or the server says.
type Notice struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Question is what a person is asked; see [holdfast.Interrupt].
type Question struct {
	ID      string `json:"id"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// CallID is the tool call that waits for the answer; empty if it is the
	// iteration that waits.
	CallID         string          `json:"toolCallId"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
	Metadata       json.RawMessage `json:"metadata"`
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
		// Raw is an object: it was read before.
		_ = json.Unmarshal(e.Raw, &n)
		out = append(out, n)
	}
	return out
}

// Results returns the texts of the history's tool results, by the ids of their
// calls.
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

// watched is a tool that says when it is started.
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
	return h.result(in.RunID, h.ask("POST", "/runs", in.AppendJSON(nil), ""))
}

// follow reads on where a stream broke off.
func (h *Harness) follow(from *cursor) *Result {
	h.t.Helper()
	path := "/threads/" + url.PathEscape(h.on.name) + "/runs/" + from.run + "/events"
	return h.result(from.run, h.ask("GET", path, nil, from.event))
}

// ask gives a request to the server's handler, and returns when it is answered.
func (h *Harness) ask(method, path string, body []byte, after string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	// A dead process says nothing, not even that it is dead.
	r.Header.Set("Holdfast-Resume", "1")
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	w := httptest.NewRecorder()
	h.process.server.Handler().ServeHTTP(w, r)
	return w
}

// result reads the answer, and what the thread has become.
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

// ended says how the run ended, or that it did not, and what a client remembers of
// that.
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
		Code, Message string
		Outcome       *struct {
			Type       Outcome
			Interrupts []Question
		}
	}
	switch agui.Type(last.Type) {
	case agui.TypeRunError:
		h.read("the run's end", last.Raw, &end)
		r.Outcome, r.Code, r.Message = Failed, end.Code, end.Message
	case agui.TypeRunFinished:
		h.read("the run's end", last.Raw, &end)
		r.Outcome = Success
		if end.Outcome != nil {
			r.Outcome, r.Questions = end.Outcome.Type, end.Outcome.Interrupts
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

// settle waits until the process is done with a run whose end is in the thread's
// log, so that its own log is complete.
func (h *Harness) settle(r *Result) {
	h.t.Helper()
	if r.Outcome == Cut || r.Events[len(r.Events)-1].ID == "" {
		return
	}
	late := time.NewTimer(stopWait)
	defer late.Stop()
	select {
	case <-h.log.ended(r.RunID):
	case <-h.process.life:
	case <-late.C:
		h.t.Fatalf("agenttest: the server's log does not have the end of %s", r.RunID)
	}
}

// refused reads an error that came before any event.
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

// path is below the thread's.
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
