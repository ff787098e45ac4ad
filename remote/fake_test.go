package remote_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/remote"
)

// posted is what an agent was posted.
type posted struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	State    json.RawMessage
	Messages []struct {
		ID, Role, ToolCallID string
		Content              json.RawMessage
		ToolCalls            []struct{ ID string }
	}
	Tools          []struct{ Name string }
	ForwardedProps json.RawMessage
	Resume         []struct {
		InterruptID, Status string
		Payload             json.RawMessage
	}
}

// script is an agent in this process: each run sends the next of its texts, which has an event on
// each line, and waits where a line begins with a name in brackets until the test opens that gate.
type script struct {
	t    testing.TB
	mu   sync.Mutex
	runs []string
	ins  []posted
	// gates are opened by the test, and reached says that one was come to.
	gates   map[string]chan struct{}
	reached chan string
	// left receives when a request was closed while its run waited.
	left chan struct{}
}

func newScript(t testing.TB, runs ...string) *script {
	return &script{
		t: t, runs: runs, gates: map[string]chan struct{}{}, reached: make(chan string, 8),
		left: make(chan struct{}, 8),
	}
}

// gate returns the gate of that name.
func (s *script) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = make(chan struct{})
	}
	return s.gates[name]
}

// posts returns what was posted so far.
func (s *script) posts() []posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]posted{}, s.ins...)
}

// RoundTrip implements [http.RoundTripper].
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	var in posted
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		s.t.Errorf("the agent was posted %q: %v", body, err)
	}
	s.mu.Lock()
	n := len(s.ins)
	s.ins = append(s.ins, in)
	s.mu.Unlock()
	if n >= len(s.runs) {
		s.t.Errorf("the agent was posted to %d times, want %d", n+1, len(s.runs))
		return nil, io.ErrUnexpectedEOF
	}
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	if code, ok := strings.CutPrefix(s.runs[n], "status "); ok {
		res.StatusCode = http.StatusServiceUnavailable
		res.Body = io.NopCloser(strings.NewReader(code))
		return res, nil
	}
	reader, writer := io.Pipe()
	res.Body = reader
	go s.play(r.Context(), s.runs[n], writer)
	return res, nil
}

// play sends a run.
func (s *script) play(ctx context.Context, run string, to *io.PipeWriter) {
	defer to.Close()
	for line := range strings.Lines(run) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			name = strings.TrimSuffix(name, "]")
			s.reached <- name
			select {
			case <-s.gate(name):
			case <-ctx.Done():
				s.left <- struct{}{}
				return
			}
			continue
		}
		if line == "" {
			continue
		}
		if _, err := io.WriteString(to, "data: "+line+"\n\n"); err != nil {
			return
		}
	}
}

// agent returns the agent as a model.
func (s *script) agent(o remote.Options) *remote.Agent {
	s.t.Helper()
	o.URL, o.Name, o.HTTP = "http://agent.test/run", "far", &http.Client{Transport: s}
	a, err := remote.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// The events of a run, short.
const started = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}` + "\n"
const finished = "\n" + `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}` + "\n"

func says(id, text string) string {
	return `{"type":"TEXT_MESSAGE_START","messageId":"` + id + `","role":"assistant"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"` + id + `","delta":"` + text + `"}
{"type":"TEXT_MESSAGE_END","messageId":"` + id + `"}
`
}

func calls(id, name, arguments string) string {
	return `{"type":"TOOL_CALL_START","toolCallId":"` + id + `","toolCallName":"` + name + `"}
{"type":"TOOL_CALL_ARGS","toolCallId":"` + id + `","delta":` + quote(arguments) + `}
{"type":"TOOL_CALL_END","toolCallId":"` + id + `"}
`
}

func results(id, text string) string {
	return `{"type":"TOOL_CALL_RESULT","messageId":"res-` + id + `","toolCallId":"` + id + `","content":` +
		quote(text) + `}
`
}

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// history returns a history in short: the first letter of each role, its text and its calls.
func history(messages []holdfast.Message) string {
	var all []string
	for _, m := range messages {
		line := string(m.Role[:1]) + ":" + m.PlainText()
		for _, c := range m.Calls {
			line += " " + c.Name + string(c.Arguments)
		}
		all = append(all, line)
	}
	return strings.Join(all, " | ")
}

// page are the tools of a page.
var page = []holdfast.ToolSpec{{Name: "page", Description: "asks the page"}}
