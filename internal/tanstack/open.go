package tanstack

import (
	"bytes"
	"encoding/json"
	"iter"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// A run that ends may leave questions to a person open, and calls of tools that the page has. The client only acts on
// those that its own server's library has made, so they are told in that library's words.

// HeaderRun is the header in which the client repeats the id of the run that it posts.
const HeaderRun = "X-Run-Id"

// Open is what the last run of a thread has left open.
type Open struct {
	// Run is that run.
	Run string
	// Questions are those to a person, and Calls the ids of the calls that the page makes.
	Questions []agui.Interrupt
	Calls     []string
	// History has the messages of the thread, with all calls.
	History iter.Seq2[[]byte, error]
}

// Encode returns a stream whose end says what the run has left open as the client knows it. open finds that; if it
// cannot be found, a page that is loaded again shows it.
func Encode(reply *agui.Reply, open func() (*Open, error)) *agui.Reply {
	out := *reply
	out.Frames = func(yield func([]agui.Frame, error) bool) {
		for frames, err := range reply.Frames {
			if err == nil {
				frames = ended(frames, reply.RunID, open)
			}
			if !yield(frames, err) {
				return
			}
		}
	}
	return &out
}

// finishedHead is how the event begins with which a run ends that may leave something open.
const finishedHead = `{"type":"` + string(agui.TypeRunFinished) + `"`

// ended returns the frames, of which the last one may be the end of the run.
func ended(frames []agui.Frame, run string, open func() (*Open, error)) []agui.Frame {
	last := len(frames) - 1
	if last < 0 || !bytes.HasPrefix(frames[last].Data, []byte(finishedHead)) {
		return frames
	}
	ev, err := agui.DecodeEvent(frames[last].Data)
	end, is := ev.(agui.RunFinished)
	if err != nil || !is {
		return frames
	}
	o, err := open()
	if err != nil || o.Run != run || len(o.Questions) == 0 && len(o.Calls) == 0 {
		return frames
	}
	calls := o.calls()
	told := append([]agui.Frame(nil), frames[:last]...)
	for _, id := range o.Calls {
		if c, found := calls[id]; found {
			told = append(told, agui.Frame{Data: agui.Append(nil, execute(c))})
		}
	}
	f := frames[last]
	if end.Outcome != nil && len(end.Outcome.Interrupts) > 0 {
		end.Outcome.Interrupts = bound(end.Outcome.Interrupts, end.RunID, calls)
		f.Data = agui.Append(nil, end)
	}
	return append(told, f)
}

// Bound returns the questions as the client answers them.
func (o *Open) Bound() []agui.Interrupt { return bound(o.Questions, o.Run, o.calls()) }

// Messages returns the messages of the thread, as [Messages] does, with what is asked about their calls.
func (o *Open) Messages() iter.Seq2[[]byte, error] {
	asked := map[string]string{}
	for i := range o.Questions {
		if q := &o.Questions[i]; agui.AsksApproval(q.Reason, q.ToolCallID, q.ResponseSchema) {
			asked[q.ToolCallID] = q.ID
		}
	}
	return messages(o.History, asked)
}

// calls returns the calls that something is open of, by id. Those that cannot be read are missing.
func (o *Open) calls() map[string]agui.ToolCall {
	wanted := map[string]bool{}
	for _, id := range o.Calls {
		wanted[id] = true
	}
	for i := range o.Questions {
		wanted[o.Questions[i].ToolCallID] = true
	}
	found := map[string]agui.ToolCall{}
	for data, err := range o.History {
		if err != nil {
			break
		}
		if !bytes.Contains(data, []byte(`"toolCalls"`)) {
			continue
		}
		m, err := agui.DecodeMessage(data)
		if err != nil {
			continue
		}
		for _, c := range m.ToolCalls {
			if wanted[c.ID] {
				found[c.ID] = c
			}
		}
	}
	return found
}

// execute asks the page to make a call. A page whose tool has no execute function does nothing, and a person, or
// the page's own code, gives the result.
func execute(c agui.ToolCall) agui.Custom {
	return agui.Custom{Name: "tool-input-available", Value: encoded(struct {
		ToolCallID string          `json:"toolCallId"`
		ToolName   string          `json:"toolName"`
		Input      json.RawMessage `json:"input"`
	}{c.ID, c.Function.Name, inputOf(c)})}
}

// inputOf returns the arguments of a call as JSON.
func inputOf(c agui.ToolCall) json.RawMessage {
	if input := []byte(c.Function.Arguments); json.Valid(input) {
		return input
	}
	return json.RawMessage("{}")
}

// The client's words for a question about a call: with these, the call itself shows that it waits for approval,
// and addToolApprovalResponse answers.
const (
	reasonApproval = "approval_required"
	kindApproval   = "approval"
)

// binding says which run asks a question, so that the client can answer that run.
type binding struct {
	Version    int    `json:"v"`
	Kind       string `json:"kind"`
	Question   string `json:"interruptId"`
	Run        string `json:"interruptedRunId"`
	Generation int    `json:"generation"` // always 0: a question is asked once
	Schema     string `json:"responseSchemaHash,omitempty"`
}

// bindingMember is the member of a question's metadata that has it.
const bindingMember = "tanstack:interruptBinding"

// bound returns the questions that a run has asked as the client answers them.
func bound(questions []agui.Interrupt, run string, calls map[string]agui.ToolCall) []agui.Interrupt {
	out := append([]agui.Interrupt(nil), questions...)
	for i := range out {
		q := &out[i]
		hash, known := "", true
		if len(q.ResponseSchema) > 0 {
			hash, known = schemaHash(q.ResponseSchema)
		}
		if !known {
			continue
		}
		members := map[string]any{}
		var said map[string]json.RawMessage
		if json.Unmarshal(q.Metadata, &said) == nil {
			for name, value := range said {
				members[name] = value
			}
		}
		members[bindingMember] = binding{
			Version:  1,
			Kind:     "generic",
			Question: q.ID,
			Run:      run,
			Schema:   hash,
		}
		if c, found := calls[q.ToolCallID]; found && agui.AsksApproval(q.Reason, q.ToolCallID, q.ResponseSchema) {
			q.Reason = reasonApproval
			members["kind"], members["toolName"], members["input"] = kindApproval, c.Function.Name, inputOf(c)
		}
		q.Metadata = encoded(members)
	}
	return out
}
