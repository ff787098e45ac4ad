package thread

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// State is the part of a head that the store does not read: what is needed to
// continue from exactly here, and nothing that grows with the thread.
type State struct {
	Format int
	Agent  string
	// Leaf is the last message of the history.
	Leaf string
	standing
	Work

	// live is where the states change while the run runs, and taken what of it is in
	// Work.
	live  *holdfast.LiveStates
	taken *holdfast.States
}

// Work is how far a thread has come: the iteration, what is open in it, and the states.
type Work struct {
	// Iteration runs, or runs next. GrantedAt is the one at which the last
	// request started or resumed the run.
	Iteration int `json:"iteration"`
	GrantedAt int `json:"grantedAt,omitempty"`
	// Boundary is the last record that the messages up to Leaf account for.
	// Records after it belong to an answer in the making.
	Boundary holdfast.Cursor `json:"boundary"`
	// Calls are the calls of the last assistant message that have no result
	// yet.
	Calls []Call `json:"calls,omitempty"`
	// Queued are user messages that follow the results of Calls.
	Queued []json.RawMessage `json:"queued,omitempty"`
	// Answers remembers, by interrupt id, the hash of the answer that was last
	// given, so that a repeated resume is recognised.
	Answers map[string]string `json:"answers,omitempty"`
	// Count is the number of messages up to Leaf; format 1 has none.
	Count int `json:"count,omitempty"`
	// Origin is what the thread was forked from; nil for most.
	Origin *Origin `json:"origin,omitempty"`
	// Reuse: the thread went back, and there may be recorded results to use.
	Reuse bool `json:"reuse,omitempty"`
	// Bytes is about how much was ever written to the thread that may stay.
	Bytes int64 `json:"bytes,omitempty"`
	// Shared names the blob with the shared state; empty when there is none.
	Shared string `json:"shared,omitempty"`
	// Checkpoints counts the checkpoints ever taken; LastCheckpoint is the
	// parent of the next.
	Checkpoints    int    `json:"checkpoints"`
	LastCheckpoint string `json:"lastCheckpoint,omitempty"`
	// Claims counts the takeovers since the run last made progress.
	Claims int              `json:"claims,omitempty"`
	Usage  []holdfast.Usage `json:"usage,omitempty"`
	// Open: the answer of the iteration is committed, and the iteration not closed.
	Open bool `json:"open,omitempty"`
	// Question is what a hook asks before the iteration goes on.
	Question *Question `json:"question,omitempty"`
	// Ending is why the run ends once its iteration is closed.
	Ending *Ending `json:"ending,omitempty"`

	// Schema names the schema that the states of the middleware were written under.
	Schema string                     `json:"sig,omitempty"`
	States map[string]json.RawMessage `json:"states,omitempty"`
	// StateVersions are those that are not the schema's: of states that were not read
	// since it changed, and of states that it does not know.
	StateVersions map[string]int        `json:"stateVersions,omitempty"`
	NewerStates   map[string]NewerState `json:"newerStates,omitempty"`
	// Redacted are the states that the schema does not know and that must not be shown.
	Redacted []string `json:"redacted,omitempty"`
}

// Question is what a hook asks a person, and the answer.
type Question struct {
	Interrupt *agui.Interrupt  `json:"interrupt"`
	Answer    *holdfast.Answer `json:"answer,omitempty"`
}

func (q *Question) Waits() bool { return q != nil && q.Answer == nil }

// Ending is an error that ends a run.
type Ending struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func EndingOf(e *holdfast.Error) *Ending {
	return &Ending{Code: e.Code, Message: e.Message, Hint: e.Hint}
}

func (e *Ending) Err() error { return &holdfast.Error{Code: e.Code, Message: e.Message, Hint: e.Hint} }

// Origin is the checkpoint that a thread was forked from.
type Origin struct {
	Thread     string `json:"thread"`
	Checkpoint string `json:"checkpoint,omitempty"`
}

// ErrUnreadable: the bytes are not what any version has written. ErrNegative: a
// counter is negative.
var (
	ErrUnreadable = errors.New("a stored value cannot be read")
	ErrNegative   = errors.New("a checkpoint has a negative counter")
)

// Clone copies what a commit may change, so that a refused commit leaves the
// original as it was.
func (s *State) Clone() *State {
	c := *s
	c.Calls = slices.Clone(s.Calls)
	c.Answers = maps.Clone(s.Answers)
	c.Usage = slices.Clone(s.Usage)
	if s.Question != nil {
		q := *s.Question
		c.Question = &q
	}
	c.Format = Format // whoever changes it writes it anew
	return &c
}

// Interrupts returns the open questions: that of a hook, and those of the calls in
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

// PendingFrontend returns the ids of the frontend's calls without a result.
func (s *State) PendingFrontend() []string {
	var ids []string
	for _, c := range s.Calls {
		if c.Frontend {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// CloseCall takes the call off the list.
func (s *State) CloseCall(id string) {
	s.Calls = slices.DeleteFunc(s.Calls, func(c Call) bool { return c.ID == id })
}

// Call returns the open call of that id; nil if there is none.
func (s *State) Call(id string) *Call {
	for i := range s.Calls {
		if s.Calls[i].ID == id {
			return &s.Calls[i]
		}
	}
	return nil
}

// TakeQueued returns the messages that came along with a resume and follow the
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

// RawMessages are messages as the state keeps them.
func RawMessages(messages []agui.Message) []json.RawMessage {
	var out []json.RawMessage
	for i := range messages {
		out = append(out, messages[i].AppendJSON(nil))
	}
	return out
}

// storedState is the JSON form of a state. Its members have stood in this order since
// format 1.
type storedState struct {
	Format  int                   `json:"format"`
	Agent   string                `json:"agent"`
	Leaf    string                `json:"leaf,omitempty"`
	Status  holdfast.ThreadStatus `json:"phase"`
	Run     string                `json:"run"`
	Outcome holdfast.Outcome      `json:"outcome,omitempty"`
	Code    string                `json:"code,omitempty"`
	Text    string                `json:"text,omitempty"`
	*Work
}

// MarshalJSON implements [json.Marshaler].
func (s *State) MarshalJSON() ([]byte, error) { return json.Marshal(s.stored()) }

func (s *State) stored() storedState {
	return storedState{s.Format, s.Agent, s.Leaf, s.status, s.run, s.outcome, s.code, s.text, &s.Work}
}

// UnmarshalJSON implements [json.Unmarshaler]. It does not judge what it reads;
// [DecodeState] does.
func (s *State) UnmarshalJSON(data []byte) error {
	in := storedState{Work: &s.Work}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	s.Format, s.Agent, s.Leaf = in.Format, in.Agent, in.Leaf
	s.standing = standing{in.Status, in.Run, in.Outcome, in.Code, in.Text}
	return nil
}

// DecodeState reads what Encode has written, in this format or an earlier one. It
// returns ErrUnreadable, ErrNegative, or [holdfast.ErrVersionTooNew].
func DecodeState(b []byte) (*State, error) {
	var s State
	if err := s.UnmarshalJSON(b); err != nil {
		return nil, fmt.Errorf("read the head: %w: %w", ErrUnreadable, err)
	}
	return &s, s.validate()
}

// Encode writes the state as a head keeps it.
func (s *State) Encode() []byte {
	s.takeStates()
	// Every member is a plain value or JSON that was decoded before.
	return MustJSON(s.stored())
}

// Follow has Encode store the states of the middleware as they are in live at that
// moment.
func (s *State) Follow(live *holdfast.LiveStates) { s.live = live }

// validate returns an error for a state that no run may continue from.
func (s *State) validate() error {
	switch {
	case s.Format > Format:
		return fmt.Errorf("the head has format %d, this server reads up to %d: %w", s.Format, Format, holdfast.ErrVersionTooNew)
	case s.Iteration < 0, s.Claims < 0, s.Checkpoints < 0, s.Count < 0:
		return fmt.Errorf("%w: iteration %d, claims %d, checkpoints %d, messages %d", ErrNegative, s.Iteration, s.Claims, s.Checkpoints, s.Count)
	}
	return nil
}

// Superseded returns what takes an answer in the making back, after its open items were
// closed: why, and snapshots that bring every watcher to this state.
func (s *State) Superseded(now int64, name string, value any) []agui.Event {
	base := agui.Base{Timestamp: now}
	return []agui.Event{
		agui.Custom{Base: base, Name: name, Value: MustJSON(value)},
		agui.MessagesRef{Leaf: s.Leaf},
		agui.StateRef{ID: s.Shared},
	}
}
