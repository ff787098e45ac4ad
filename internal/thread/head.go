// Package thread has the stored form of a thread, and the one way to read it: the state in its
// head, its messages, runs, checkpoints and log, each with its stored form and the rules it
// obeys. Every other package of the engine builds on it: decide compares a request with it,
// loop and journal write it, upkeep and audit work on it without a run. Reader is the only
// part that touches a store, and nothing here writes to one: a change is a [store.Commit] that
// the caller commits.
package thread

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/prompt"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The state is what a run continues from. A request is decided by it, a run works on
// its own copy, and each commit stores it again in the thread's head, so a process that
// dies loses nothing but work in progress. Its size does not grow with the thread:
// messages, records and checkpoints are stored beside it. This file has its members and
// its JSON; standing.go has its transitions.

// State is the part of a head that the store does not read: what a run needs to
// continue from exactly here, and nothing that grows with the thread.
type State struct {
	// Format is the format of this value.
	Format int
	// Agent is the name of the agent of the running or last run.
	Agent string
	// Leaf is the id of the last message of the history.
	Leaf string
	standing
	Described
	Work

	// live holds the middleware's states while a run changes them; taken is the version
	// of them that Work has.
	live  *state.Live
	taken *state.States
}

// Work is how far a thread has come: the iteration, what is open in it, and the
// middleware's states.
type Work struct {
	// Incarnation sets the thread apart from every other that had, or will have, its id:
	// random, made with the thread.
	Incarnation string `json:"incarnation,omitempty"`
	// Rewinds counts how often the thread was rewound.
	Rewinds int `json:"rewinds,omitempty"`
	// Rewound is the number of the last record before the last rewind; 0 if there was none.
	Rewound uint64 `json:"rewound,omitempty"`
	// Iteration is the one that runs, or runs next.
	Iteration int `json:"iteration"`
	// GrantedAt is the iteration at which the last request started or resumed the run.
	GrantedAt int `json:"grantedAt,omitempty"`
	// Boundary is the last record that the messages up to Leaf account for. The records
	// after it belong to an answer that is not complete.
	Boundary store.Cursor `json:"boundary"`
	// Steps are the names of the steps that were open at Boundary.
	Steps []string `json:"steps,omitempty"`
	// Calls are the calls of the last assistant message that have no result yet.
	Calls []Call `json:"calls,omitempty"`
	// Queued are user messages that follow the results of Calls.
	Queued []json.RawMessage `json:"queued,omitempty"`
	// Answers maps the id of an interrupt to the hash of the last answer it got, so that
	// a repeated resume is recognized.
	Answers map[string]string `json:"answers,omitempty"`
	// Count is the number of messages up to Leaf.
	Count int `json:"count,omitempty"`
	// Origin is what the thread was forked from; nil for most.
	Origin *Origin `json:"origin,omitempty"`
	// Reuse means that the thread went back, and recorded results may be left to use.
	Reuse bool `json:"reuse,omitempty"`
	// OnlyRecorded means that a call without a recorded result ends the run instead of
	// running, until the next message.
	OnlyRecorded bool `json:"onlyRecorded,omitempty"`
	// Happened are calls with effects that were made before the history branched by itself.
	// While the message that branched is answered, their recorded results are used, and
	// different calls of their tools ask a person first.
	Happened AllHappened `json:"happened,omitempty"`
	// Bytes is about how many bytes the thread takes: what was found when it was measured,
	// and what was written since. If it never was, it is what was ever written.
	Bytes int64 `json:"bytes,omitempty"`
	// Measured means that Bytes is what was found, and what runs have written since.
	Measured bool `json:"measured,omitempty"`
	// Shared is the id of the blob with the shared state; empty if there is none.
	Shared string `json:"shared,omitempty"`
	// Predicted means that the log shows another state at Boundary, which calls predict.
	Predicted bool `json:"predicted,omitempty"`
	StateWork
	// Checkpoints counts the checkpoints ever taken.
	Checkpoints int `json:"checkpoints"`
	// LastCheckpoint is the id of the last one, the parent of the next.
	LastCheckpoint string `json:"lastCheckpoint,omitempty"`
	// Marked is the label of the next checkpoint, which a tool or a hook has asked for; empty
	// for most.
	Marked string `json:"marked,omitempty"`
	Tended
	// Takeovers counts those since the run last made progress; an answer that streams is
	// progress.
	Takeovers int `json:"claims,omitempty"`
	// Retaken counts all takeovers since the run last finished a step.
	Retaken int `json:"retaken,omitempty"`
	// Model is the name of the agent's model that the run has fallen back to; empty for the
	// agent's first. The agent may have it no more.
	Model string `json:"model,omitempty"`
	// Waiting means that the run waits for a process with its agent's revision; nil for most.
	// Its times are by the store's clock.
	Waiting *threads.Waiting `json:"waiting,omitempty"`
	// Usage is what the run has used so far, by provider and model.
	Usage []holdfast.Usage `json:"usage,omitempty"`
	TakenBack
	// Open means that the iteration's answer is committed but the iteration is not closed.
	Open bool `json:"open,omitempty"`
	Answering
	// Question is what a hook asks before the iteration continues; nil for most.
	Question *Question `json:"question,omitempty"`
	// Misfit is an answer that was taken back because it does not have its agent's form; nil
	// once the next one is complete.
	Misfit *Misfit `json:"misfit,omitempty"`
	// Output is the id of the message that is the run's result; empty for most.
	Output string `json:"output,omitempty"`
	// Prompt is the mark of the last request to the model, by which the next is measured;
	// nil if there was none.
	Prompt *prompt.Mark `json:"prompt,omitempty"`
	// Instructed tells the instructions of clients apart; see Instruct.
	Instructed string `json:"instructed,omitempty"`
	// Ending is why the run ends once its iteration is closed; nil for most.
	Ending *Ending `json:"ending,omitempty"`

	// Schema names the schema that the middleware's states were written under.
	Schema string `json:"sig,omitempty"`
	// States are the middleware's states, by name.
	States map[string]json.RawMessage `json:"states,omitempty"`
	// StateVersions are the versions that differ from the schema's: of states that were
	// not read since it changed, and of states that it does not know.
	StateVersions map[string]int `json:"stateVersions,omitempty"`
	// NewerStates are set aside until a version of the middleware that knows them runs.
	NewerStates map[string]NewerState `json:"newerStates,omitempty"`
	// Redacted names the states that the schema does not know and that must not be shown.
	Redacted []string `json:"redacted,omitempty"`
}

// LoseOwner notes in the work of a thread that its owner is gone, and what it did last is not
// known. Unless calls were open, it may have started pure calls of an answer of which nothing is
// stored: a service knows their ids and keys, and the log does not.
func LoseOwner(w *Work) {
	if !w.Open && len(w.Calls) == 0 {
		w.TakenBack = TakenBack{Unlisted: true}
	}
}

// Question is what a hook asks a person, and the answer.
type Question struct {
	// Interrupt is the question.
	Interrupt *agui.Interrupt `json:"interrupt"`
	// Answer is nil until a person answers.
	Answer *holdfast.Answer `json:"answer,omitempty"`
}

// Waits reports whether there is a question without an answer. q may be nil.
func (q *Question) Waits() bool { return q != nil && q.Answer == nil }

// Ending is the error with which a run is about to end.
type Ending struct {
	// Code is the error's code.
	Code string `json:"code"`
	// Message is the text that a person reads.
	Message string `json:"message"`
	// Hint says what to do next.
	Hint string `json:"hint,omitempty"`
}

// EndingOf returns the stored form of e.
func EndingOf(e *holdfast.Error) *Ending {
	return &Ending{Code: e.Code, Message: e.Message, Hint: e.Hint}
}

// Err returns the error again.
func (e *Ending) Err() error { return &holdfast.Error{Code: e.Code, Message: e.Message, Hint: e.Hint} }

// Origin is where a forked thread comes from.
type Origin struct {
	// Thread is the id of the thread that was forked.
	Thread string `json:"thread"`
	// Checkpoint is the id of its checkpoint; empty if it was forked at a message.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Incarnation is that of the thread that was forked, so that a later thread of its id
	// does not count as the parent.
	Incarnation string `json:"incarnation,omitempty"`
}

// From reports whether the fork may come from the thread as it is now.
func (o *Origin) From(parent *State) bool {
	return o == nil || o.Incarnation == parent.Incarnation
}

// Clone copies the state as far as a commit may change it, so that a refused commit
// leaves the original as it was.
func (s *State) Clone() *State {
	c := *s
	c.Calls = slices.Clone(s.Calls)
	c.Answers = maps.Clone(s.Answers)
	c.Usage = slices.Clone(s.Usage)
	if s.Question != nil {
		q := *s.Question
		c.Question = &q
	}
	return &c
}

// Raise has the state written in that format from now on, unless it has a newer one.
func (s *State) Raise(format int) { s.Format = max(s.Format, format) }

// Interrupts returns the open questions: the hook's first, then those of the calls in
// their order.
func (s *State) Interrupts() []agui.Interrupt {
	var open []agui.Interrupt
	if s.Question.Waits() {
		open = append(open, *s.Question.Interrupt)
	}
	for _, c := range s.Calls {
		if c.Waits() {
			open = append(open, *c.Interrupt)
		}
	}
	return open
}

// PendingFrontend returns the ids of the frontend's calls that have no result.
func (s *State) PendingFrontend() []string {
	var ids []string
	for _, c := range s.Calls {
		if c.Frontend {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// CloseCall removes the call from the open ones.
func (s *State) CloseCall(id string) {
	s.Calls = slices.DeleteFunc(s.Calls, func(c Call) bool { return c.ID == id })
}

// Call returns the open call with that id; nil if there is none.
func (s *State) Call(id string) *Call {
	for i := range s.Calls {
		if s.Calls[i].ID == id {
			return &s.Calls[i]
		}
	}
	return nil
}

// TakeQueued removes and returns the messages that came with a resume and follow the
// results it waits for.
func (s *State) TakeQueued() []agui.Message {
	var out []agui.Message
	for _, raw := range s.Queued {
		if m, err := agui.DecodeMessage(raw); err == nil {
			out = append(out, m)
		}
	}
	s.Queued = nil
	return out
}

// RawMessages encodes messages as the state keeps them.
func RawMessages(messages []agui.Message) []json.RawMessage {
	var out []json.RawMessage
	for i := range messages {
		out = append(out, messages[i].AppendJSON(nil))
	}
	return out
}

// storedState is the JSON form of a state.
type storedState struct {
	Format  int              `json:"dataFormat"`
	Agent   string           `json:"agent"`
	Leaf    string           `json:"leaf,omitempty"`
	Status  threads.Status   `json:"phase"`
	Run     string           `json:"run"`
	Outcome holdfast.Outcome `json:"outcome,omitempty"`
	Code    string           `json:"code,omitempty"`
	Text    string           `json:"text,omitempty"`
	Person  string           `json:"person,omitempty"`
	*Described
	*Work
}

// MarshalJSON implements [json.Marshaler].
func (s *State) MarshalJSON() ([]byte, error) { return json.Marshal(s.stored()) }

// stored returns the JSON form of the state.
func (s *State) stored() storedState {
	return storedState{
		s.Format,
		s.Agent,
		s.Leaf,
		s.status,
		s.run,
		s.outcome,
		s.code,
		s.text,
		s.person,
		&s.Described,
		&s.Work,
	}
}

// UnmarshalJSON implements [json.Unmarshaler]. It does not judge what it reads;
// [DecodeState] does.
func (s *State) UnmarshalJSON(data []byte) error {
	in := storedState{Described: &s.Described, Work: &s.Work}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	s.Format, s.Agent, s.Leaf = in.Format, in.Agent, in.Leaf
	s.standing = standing{
		status:  in.Status,
		run:     in.Run,
		outcome: in.Outcome,
		code:    in.Code,
		text:    in.Text,
		person:  in.Person,
	}
	return nil
}

// DecodeState reads what Encode wrote, in this format or an earlier one. It returns
// ErrUnreadable, ErrNegative, or [store.ErrVersionTooNew].
func DecodeState(b []byte) (*State, error) {
	var s State
	if err := s.UnmarshalJSON(b); err != nil {
		return nil, fmt.Errorf("read the head: %w: %w", ErrUnreadable, err)
	}
	return &s, s.validate()
}

// Encode returns the state as a head stores it.
func (s *State) Encode() []byte {
	s.takeStates()
	// Every member is a plain value or JSON that was decoded before.
	return MustJSON(s.stored())
}

// Follow makes Encode store the middleware's states as live holds them at that moment.
func (s *State) Follow(live *state.Live) { s.live = live }

// validate returns an error for a state that no run may continue from.
func (s *State) validate() error {
	if err := checkFormat("the state", s.Format); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]threads.Status{threads.StatusIdle, threads.StatusRunning, threads.StatusInterrupted,
		threads.StatusStopped}, s.status):
		return fmt.Errorf("%w: %q is not what a thread can do", ErrUnreadable, s.status)
	case s.Question != nil && s.Question.Interrupt == nil:
		return fmt.Errorf("%w: a question asks nothing", ErrUnreadable)
	}
	for _, c := range []CounterError{{"iteration", s.Iteration}, {"claims", s.Takeovers}, {"retaken", s.Retaken},
		{"checkpoints", s.Checkpoints}, {"count", s.Count}, {"rewinds", s.Rewinds}} {
		if c.Value < 0 {
			return &c
		}
	}
	return nil
}

// Superseded returns the events that take back an incomplete answer after its open items
// were closed: a CUSTOM event of that name and value that says why, and the snapshots
// that bring every watcher to this state. now is in milliseconds since 1970.
func (s *State) Superseded(now int64, name string, value any) []agui.Event {
	base := agui.Base{Timestamp: now}
	s.Predicted = false
	return []agui.Event{
		agui.Custom{Base: base, Name: name, Value: MustJSON(value)},
		agui.MessagesRef{Leaf: s.Leaf},
		agui.StateRef{ID: s.Shared},
	}
}
