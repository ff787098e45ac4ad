package remote

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// Reading an agent's run. It is taken apart into messages: one has the words and the calls that
// belong together, and ends when anything comes that belongs to the next. The stream is
// somebody else's, so it is mended where it is plain what was meant, and refused elsewhere; see
// the table in docs/remote-agents.md.

const (
	// maxEvents bounds the events of a run, and maxEvent an event, in bytes.
	maxEvents = 1 << 20
	maxEvent  = 4 << 20
	// maxBytes bounds all events of a run together.
	maxBytes = 64 << 20
	// maxQuestions bounds what a run asks, in bytes: the head of the thread has it.
	maxQuestions = 256 << 10
	// maxCalls bounds the calls of a run.
	maxCalls = 1000
)

// stream is an agent's run while it is read.
type stream struct {
	*modelhttp.Answer
	agent   *Agent
	offered map[string]bool // the tools that it was offered
	in      *input
	events  int
	bytes   int
	now     message
	words   words
	// calls are all of the run, by their ids, and awaited are those of the agent's own in messages
	// that are complete, without a result yet.
	calls   map[string]*call
	awaited map[string]*call
	count   int
	said    said            // also what snapshots have said
	skipped map[string]bool // the messages that are not the agent's words
	// chunk is what the next chunk without an id belongs to.
	chunk string
	// earlier are the calls of the conversation, by their ids.
	earlier map[string]holdfast.ToolCall
	// ask is the question with which the run has ended; nil for most.
	ask *holdfast.Interrupt
}

// message is the message that is being read.
type message struct {
	id        string // the agent's; empty if it has not said
	said      bool   // it has words
	thought   bool   // it has reasoning
	own, ours int    // how many of its calls are the agent's, and this server's
	calls     []*call
}

// maxID bounds what is kept of the agent's ids, in bytes.
const maxID = 256

// names says in a delta what the agent calls the message, if nothing has said so before.
func (m *message) names(d *holdfast.Delta, id string) {
	if m.id != "" || id == "" {
		return
	}
	m.id = id
	if len(id) <= maxID {
		d.MessageID = id
	}
}

// call is a call of the agent.
type call struct {
	index int
	id    string
	name  string
	own   bool // the agent carries it out
	done  bool // its arguments are complete
	over  bool // its result was passed on
	here  bool // it is in the message that is being read
}

func newStream(answer *modelhttp.Answer, a *Agent, req *holdfast.ModelRequest, in *input) *stream {
	s := &stream{
		Answer:  answer,
		agent:   a,
		in:      in,
		offered: map[string]bool{},
		calls:   map[string]*call{},
		awaited: map[string]*call{},
		said:    newSaid(),
		skipped: map[string]bool{},
		earlier: map[string]holdfast.ToolCall{},
	}
	for _, t := range req.Tools {
		s.offered[t.Name] = true
	}
	for i := range req.Messages {
		for _, c := range req.Messages[i].Calls {
			s.earlier[c.ID] = c
		}
	}
	return s
}

// Event implements modelhttp.Parser.
func (s *stream) Event(ev modelhttp.Event) error {
	s.events++
	s.bytes += len(ev.Data)
	switch {
	case string(ev.Data) == "[DONE]":
		return nil
	case s.events > maxEvents:
		return s.TooMuch(fmt.Sprintf("more than %d events in one run", maxEvents))
	case len(ev.Data) > maxEvent:
		return s.TooMuch(fmt.Sprintf("an event of more than %d MiB", maxEvent>>20))
	case s.bytes > maxBytes:
		return s.TooMuch(fmt.Sprintf("more than %d MiB in one run", maxBytes>>20))
	}
	if said, ok := s.words.read(ev.Data); ok && !ev.Failed {
		return s.text(s.words.id, said)
	}
	event, data, err := decode(ev.Data)
	switch {
	case errors.Is(err, errCut):
		return s.Undecodable(err)
	case err != nil:
		return s.refuse("%v", err)
	}
	return s.take(event, data)
}

// Whole implements modelhttp.Parser.
func (s *stream) Whole(data []byte) error { return s.NotStreamed(data) }

// Ended implements modelhttp.Parser. A run without its end was cut off.
func (s *stream) Ended(cause error) error { return s.Truncated(cause) }

// refuse returns the error of a stream that cannot be understood.
func (s *stream) refuse(format string, args ...any) error {
	return &holdfast.ModelError{
		Kind:   failure.Invalid,
		Public: "The agent's stream cannot be understood.",
		Err:    fmt.Errorf(format, args...),
	}
}

// take passes an event on.
func (s *stream) take(event agui.Event, data []byte) error {
	switch e := event.(type) {
	case agui.TextMessageStart:
		return s.begin(e.MessageID, e.Role)
	case agui.TextMessageContent:
		return s.text(e.MessageID, e.Delta)
	case agui.TextMessageChunk:
		return s.textChunk(e)
	case agui.ReasoningMessageContent:
		return s.think(holdfast.Delta{Reasoning: e.Delta})
	case agui.ReasoningMessageChunk:
		return s.think(holdfast.Delta{Reasoning: e.Delta})
	case agui.ReasoningEncryptedValue:
		return s.secret(e)
	case agui.ToolCallStart:
		return s.start(e.ToolCallID, e.ToolCallName, e.ParentMessageID)
	case agui.ToolCallArgs:
		return s.arguments(e.ToolCallID, e.Delta)
	case agui.ToolCallEnd:
		return s.end(s.calls[e.ToolCallID])
	case agui.ToolCallChunk:
		return s.callChunk(e)
	case agui.ToolCallResult:
		return s.result(agui.Message{
			ID: e.MessageID, Role: string(holdfast.RoleTool), ToolCallID: e.ToolCallID, Content: e.Content,
		})
	case agui.MessagesSnapshot:
		return s.snapshot(e.Messages)
	case agui.RunFinished:
		return s.finish(e, data)
	case agui.RunError:
		return s.Fail(modelhttp.Failure{Code: e.Code, Message: e.Message})
	case agui.StateSnapshot, agui.StateDelta, agui.StepStarted, agui.StepFinished, agui.ActivitySnapshot,
		agui.ActivityDelta, agui.Raw, agui.Custom:
		return s.beside(data)
	case agui.SubagentStarted, agui.SubagentFinished, agui.SubagentError:
		return s.beside(asRaw(data))
	}
	return nil // the beginning of the run, and ends that nothing depends on
}

// beside passes on an event that stands beside the answer, as text that every client can read.
func (s *stream) beside(event []byte) error {
	return s.Emit(holdfast.Delta{Beside: strings.ToValidUTF8(string(event), "\uFFFD")})
}

// emit passes on a part of a message.
func (s *stream) emit(d holdfast.Delta) error {
	clear(s.awaited) // the run goes on without saying what came of them
	return s.Emit(d)
}

// more ends the message, because something came that does not belong to it.
func (s *stream) more() error {
	if !s.now.said && !s.now.thought && len(s.now.calls) == 0 {
		return nil
	}
	for _, c := range s.now.calls { // no chunk says that it is the last one
		if err := s.end(c); err != nil {
			return err
		}
	}
	for _, c := range s.now.calls {
		if c.here = false; c.own && !c.over {
			s.awaited[c.id] = c
		}
	}
	s.now = message{}
	return s.Emit(holdfast.Delta{More: true})
}

// room begins another message, unless what comes can stand in the one that is being read. Words can
// stand behind calls of this server's tools, because those wait for the run's end.
func (s *stream) room(apart bool) error {
	if s.now.ours == 0 && (s.now.own > 0 || apart) {
		return s.more()
	}
	return nil
}

// begin begins a text.
func (s *stream) begin(id, role string) error {
	if role != "" && role != string(holdfast.RoleAssistant) {
		s.skipped[id] = true
	}
	return nil // a message without words is none
}

// text passes on words of a message.
func (s *stream) text(id, delta string) error {
	if s.skipped[id] || delta == "" {
		return nil
	}
	s.chunk = id
	if err := s.room(s.now.said && s.now.id != id); err != nil {
		return err
	}
	d := holdfast.Delta{Text: delta}
	s.now.names(&d, id)
	s.now.said = true
	s.words.learn(id)
	s.said.add(id, delta)
	return s.emit(d)
}

// textChunk passes on words in the short form.
func (s *stream) textChunk(e agui.TextMessageChunk) error {
	if e.MessageID != "" {
		if err := s.begin(e.MessageID, e.Role); err != nil {
			return err
		}
		s.chunk = e.MessageID
	}
	return s.text(s.chunk, e.Delta)
}

// think passes on reasoning.
func (s *stream) think(d holdfast.Delta) error {
	if d.Reasoning == "" && d.ReasoningSecret == "" {
		return nil
	}
	if err := s.room(s.now.said); err != nil {
		return err
	}
	s.now.thought = true
	return s.emit(d)
}

// secret passes on an encrypted value.
func (s *stream) secret(e agui.ReasoningEncryptedValue) error {
	if e.Subtype != "tool-call" {
		return s.think(holdfast.Delta{ReasoningSecret: e.EncryptedValue})
	}
	if c := s.calls[e.EntityID]; c != nil && c.here {
		return s.emit(holdfast.Delta{Call: &holdfast.CallDelta{Index: c.index, EncryptedValue: e.EncryptedValue}})
	}
	return nil
}

// start begins a call.
func (s *stream) start(id, name, parent string) error {
	switch {
	case id == "" || name == "":
		return s.refuse("TOOL_CALL_START: it has no toolCallId or no toolCallName")
	case s.calls[id] != nil: // it is repeated
		s.chunk = id
		return nil
	case s.count >= maxCalls:
		return s.TooMuch(fmt.Sprintf("more than %d calls in one run", maxCalls))
	}
	c := &call{
		index: s.count,
		id:    id,
		name:  name,
		own:   !s.offered[name],
		here:  true,
	}
	s.count++
	s.calls[id], s.chunk, s.now.calls = c, id, append(s.now.calls, c)
	if c.own {
		s.now.own++
	} else {
		s.now.ours++
	}
	d := holdfast.Delta{Call: &holdfast.CallDelta{Index: c.index, ID: id, Name: name}}
	s.now.names(&d, parent)
	return s.emit(d)
}

// arguments continues a call.
func (s *stream) arguments(id, delta string) error {
	c := s.calls[id]
	switch {
	case c == nil:
		return s.refuse("TOOL_CALL_ARGS: the call %q has not begun", id)
	case delta == "":
		return nil
	case c.done || !c.here:
		return s.refuse("TOOL_CALL_ARGS: the call %q is complete", id)
	}
	return s.emit(holdfast.Delta{Call: &holdfast.CallDelta{Index: c.index, Arguments: delta}})
}

// end completes a call. The end of one that has not begun says nothing.
func (s *stream) end(c *call) error {
	if c == nil || c.done || !c.here {
		return nil
	}
	c.done = true
	if !c.own {
		return nil
	}
	spec := &holdfast.ToolSpec{Name: c.name, Effect: s.agent.effect(c.name), InDoubt: s.agent.inDoubt}
	return s.emit(holdfast.Delta{Call: &holdfast.CallDelta{Index: c.index, Own: spec}})
}

// effect returns what calling a tool of the agent's own twice would do.
func (a *Agent) effect(name string) holdfast.Effect {
	if e, known := a.effects[name]; known {
		return e
	}
	return holdfast.EffectOnce
}

// callChunk passes on a call in the short form.
func (s *stream) callChunk(e agui.ToolCallChunk) error {
	id := e.ToolCallID
	if id == "" {
		id = s.chunk
	}
	if s.calls[id] == nil {
		if err := s.start(id, e.ToolCallName, e.ParentMessageID); err != nil {
			return err
		}
	}
	return s.arguments(id, e.Delta)
}

// result passes on what came of a call. That there is one shows that the call was the agent's own.
func (s *stream) result(m agui.Message) error {
	c := s.calls[m.ToolCallID]
	if c == nil {
		return s.late(m)
	}
	if c.over {
		return nil
	}
	if !c.own && c.here {
		c.own = true
		s.now.ours--
		s.now.own++
	}
	if err := s.end(c); err != nil {
		return err
	}
	if c.here {
		if err := s.more(); err != nil {
			return err
		}
	}
	if s.awaited[c.id] == nil {
		return nil // the run went on before it was said
	}
	delete(s.awaited, c.id)
	c.over = true
	if len(m.ID) > maxID {
		m.ID = ""
	}
	d, err := m.Domain()
	if err != nil {
		return s.refuse("TOOL_CALL_RESULT: the content of %q: %v", c.id, err)
	}
	return s.Emit(holdfast.Delta{Result: &d})
}

// late passes on the result of a call that was made before a person was asked: the call is shown
// once more, with it. Any other result is a repetition of what was said before.
func (s *stream) late(m agui.Message) error {
	before, known := s.earlier[m.ToolCallID]
	if !known || !s.in.asked[m.ToolCallID] {
		return nil
	}
	delete(s.in.asked, m.ToolCallID)
	if err := s.start(m.ToolCallID, before.Name, ""); err != nil {
		return err
	}
	if err := s.arguments(m.ToolCallID, string(before.Arguments)); err != nil {
		return err
	}
	return s.result(m)
}

// snapshot takes what a MESSAGES_SNAPSHOT has and the stream has not said: whole messages, calls and
// results.
func (s *stream) snapshot(messages []agui.Message) error {
	for i := range messages {
		m := &messages[i]
		var err error
		switch holdfast.Role(m.Role) {
		case holdfast.RoleTool:
			if !s.in.known[m.ID] {
				err = s.result(*m)
			}
		case holdfast.RoleAssistant:
			if !s.in.known[m.ID] {
				err = s.restated(m)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restated takes an assistant's message of a snapshot.
func (s *stream) restated(m *agui.Message) error {
	d, err := m.Domain()
	if err != nil {
		return s.refuse("MESSAGES_SNAPSHOT: the content of %q: %v", m.ID, err)
	}
	if !s.said.has(m.ID, d.PlainText()) {
		if err := s.text(m.ID, d.PlainText()); err != nil {
			return err
		}
	}
	for _, c := range d.Calls {
		if _, before := s.earlier[c.ID]; before || s.calls[c.ID] != nil {
			continue
		}
		if err := s.start(c.ID, c.Name, m.ID); err != nil {
			return err
		}
		if err := s.arguments(c.ID, string(c.Arguments)); err != nil {
			return err
		}
		if err := s.end(s.calls[c.ID]); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the run.
func (s *stream) finish(e agui.RunFinished, data []byte) error {
	if e.Outcome != nil && e.Outcome.Type == agui.OutcomeInterrupt && len(e.Outcome.Interrupts) > 0 {
		if len(data) > maxQuestions {
			return s.TooMuch(fmt.Sprintf("questions of more than %d KiB", maxQuestions>>10))
		}
		if err := s.more(); err != nil {
			return err
		}
		s.ask = question(e.Outcome.Interrupts, nil)
		return s.ask
	}
	reason := holdfast.FinishStop
	if s.now.ours > 0 {
		reason = holdfast.FinishToolCalls
	}
	if s.now.own > 0 || len(s.awaited) > 0 {
		if err := s.more(); err != nil {
			return err
		}
	}
	byIndex := func(a, b *call) int { return cmp.Compare(a.index, b.index) }
	for _, c := range slices.SortedFunc(maps.Values(s.awaited), byIndex) {
		if err := s.Emit(holdfast.Delta{Result: &holdfast.Message{
			Role: holdfast.RoleTool, CallID: c.id, Text: agui.TextNotSaid,
		}}); err != nil {
			return err
		}
	}
	if err := s.Emit(holdfast.Delta{Usage: s.usage(e.Usage), Finish: reason}); err != nil {
		return err
	}
	return modelhttp.ErrComplete
}

// usage returns what the run has used, as one.
func (s *stream) usage(list []holdfast.Usage) *holdfast.Usage {
	if len(list) == 0 {
		return nil
	}
	sum := &holdfast.Usage{Provider: provider, Model: s.agent.name}
	for i := range list {
		u := &list[i]
		sum.InputTokens = modelhttp.Sum(sum.InputTokens, u.InputTokens)
		sum.OutputTokens = modelhttp.Sum(sum.OutputTokens, u.OutputTokens)
		sum.TotalTokens = modelhttp.Sum(sum.TotalTokens, u.TotalTokens)
		sum.ReasoningTokens = modelhttp.Sum(sum.ReasoningTokens, u.ReasoningTokens)
		sum.CachedInput = modelhttp.Sum(sum.CachedInput, u.CachedInput)
		sum.CacheWriteInput = modelhttp.Sum(sum.CacheWriteInput, u.CacheWriteInput)
	}
	return sum
}
