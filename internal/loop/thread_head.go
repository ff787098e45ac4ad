package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Format is the version of the values this package stores. Data of every
// earlier format is read; a newer one is refused untouched. Format 2 has logs
// whose finished runs are stored apart (archive.go), which a reader of format 1
// would take for lost; it added the members that say so. Format 3 has the states of
// the middleware, which a reader of format 2 would drop when it writes.
const Format = 3

// phase is where a thread stands. Whether a running thread is alive is never
// stored: it follows from its owner's lease.
type phase string

const (
	phaseRunning     phase = "running"
	phaseInterrupted phase = "interrupted"
	phaseStopped     phase = "stopped"
	phaseIdle        phase = "idle"
)

// The ways a run ends.
const (
	outcomeSuccess   = "success"
	outcomeInterrupt = "interrupt"
	outcomeCancelled = "cancelled"
	outcomeError     = "error"
)

// state is the part of a head that the store does not read. It holds what is
// needed to go on from exactly here, and nothing that grows with the thread.
type state struct {
	Format int    `json:"format"`
	Agent  string `json:"agent"`
	// Leaf is the last message of the history.
	Leaf    string `json:"leaf,omitempty"`
	Phase   phase  `json:"phase"`
	Run     string `json:"run"`
	Outcome string `json:"outcome,omitempty"`
	// Code and Text are the error of a run that ended in one.
	Code string `json:"code,omitempty"`
	Text string `json:"text,omitempty"`
	// Iteration runs, or runs next. GrantedAt is the one at which the last
	// request started or resumed the run.
	Iteration int `json:"iteration"`
	GrantedAt int `json:"grantedAt,omitempty"`
	// Boundary is the last record that the messages up to Leaf account for.
	// Records after it belong to an answer in the making.
	Boundary holdfast.Cursor `json:"boundary"`
	// Calls are the calls of the last assistant message that have no result
	// yet.
	Calls []openCall `json:"calls,omitempty"`
	// Queued are user messages that follow the results of Calls.
	Queued []json.RawMessage `json:"queued,omitempty"`
	// Answers remembers, by interrupt id, the hash of the answer that was last
	// given, so that a repeated resume is recognised.
	Answers map[string]string `json:"answers,omitempty"`
	// Count is the number of messages up to Leaf; format 1 has none.
	Count int `json:"count,omitempty"`
	// Origin is what the thread was forked from; nil for most.
	Origin *origin `json:"origin,omitempty"`
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
	Question *question `json:"question,omitempty"`
	// Ending is why the run ends once its iteration is closed.
	Ending *ending `json:"ending,omitempty"`

	// Schema names the schema that the states of the middleware were written under.
	Schema string                     `json:"sig,omitempty"`
	States map[string]json.RawMessage `json:"states,omitempty"`
	// StateVersions are those that are not the schema's: of states that were not read
	// since it changed, and of states that it does not know.
	StateVersions map[string]int        `json:"stateVersions,omitempty"`
	NewerStates   map[string]newerState `json:"newerStates,omitempty"`
	// Redacted are the states that the schema does not know and that must not be shown.
	Redacted []string `json:"redacted,omitempty"`

	// live is where the states change while the run runs, and taken what of it is in
	// the members above.
	live  *holdfast.LiveStates
	taken *holdfast.States
}

// question is what a hook asks a person, and the answer.
type question struct {
	Interrupt *agui.Interrupt  `json:"interrupt"`
	Answer    *holdfast.Answer `json:"answer,omitempty"`
}

func (q *question) waits() bool { return q != nil && q.Answer == nil }

// ending is an error that ends a run.
type ending struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func endingOf(e *holdfast.Error) *ending {
	return &ending{Code: e.Code, Message: e.Message, Hint: e.Hint}
}

func (e *ending) err() error { return &holdfast.Error{Code: e.Code, Message: e.Message, Hint: e.Hint} }

// origin is the checkpoint that a thread was forked from.
type origin struct {
	Thread     string `json:"thread"`
	Checkpoint string `json:"checkpoint,omitempty"`
}

func decodeState(b []byte) (*state, error) {
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read the head: %w: %w", errUnreadable, err)
	}
	return &s, s.validate()
}

// errUnreadable: the bytes are not what any version has written. errNegative: a
// counter is negative.
var (
	errUnreadable = errors.New("a stored value cannot be read")
	errNegative   = errors.New("a checkpoint has a negative counter")
)

// validate returns an error for a state that must not be gone on with.
func (s *state) validate() error {
	switch {
	case s.Format > Format:
		return fmt.Errorf("the head has format %d, this server reads up to %d: %w", s.Format, Format, holdfast.ErrVersionTooNew)
	case s.Iteration < 0, s.Claims < 0, s.Checkpoints < 0, s.Count < 0:
		return fmt.Errorf("%w: iteration %d, claims %d, checkpoints %d, messages %d", errNegative, s.Iteration, s.Claims, s.Checkpoints, s.Count)
	}
	return nil
}

func (s *state) encode() []byte {
	s.takeStates()
	b, err := json.Marshal(s)
	if err != nil {
		// Every member is a plain value or JSON that was decoded before.
		panic(fmt.Sprintf("loop: encode the head: %v", err))
	}
	return b
}

// clone copies what a commit may change, so that a refused commit leaves the
// original as it was.
func (s *state) clone() *state {
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

// interrupts returns the open questions: that of a hook, and those of the calls in
// their order.
func (s *state) interrupts() []agui.Interrupt {
	var open []agui.Interrupt
	if s.Question.waits() {
		open = append(open, *s.Question.Interrupt)
	}
	for _, c := range s.Calls {
		if c.waits() {
			open = append(open, *c.Interrupt)
		}
	}
	return open
}

// pendingFrontend returns the ids of the frontend's calls without a result.
func (s *state) pendingFrontend() []string {
	var ids []string
	for _, c := range s.Calls {
		if c.Frontend {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// closeCall takes the call off the list.
func (s *state) closeCall(id string) {
	s.Calls = slices.DeleteFunc(s.Calls, func(c openCall) bool { return c.ID == id })
}

func (s *state) call(id string) *openCall {
	for i := range s.Calls {
		if s.Calls[i].ID == id {
			return &s.Calls[i]
		}
	}
	return nil
}

// mustJSON encodes one of this package's own stored values, which always can
// be encoded.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("loop: encode %T: %v", v, err))
	}
	return b
}

// decodeValue reads one of this package's stored values.
func decodeValue(b []byte, v any) error {
	var f struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("read a stored value: %w: %w", errUnreadable, err)
	}
	if f.Format > Format {
		return fmt.Errorf("a value has format %d, this server reads up to %d: %w", f.Format, Format, holdfast.ErrVersionTooNew)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read a stored value: %w: %w", errUnreadable, err)
	}
	return nil
}

// takeQueued returns the messages that came along with a resume and follow the
// results it waits for.
func takeQueued(st *state) []agui.Message {
	var out []agui.Message
	for _, raw := range st.Queued {
		if m, err := agui.DecodeMessage(raw); err == nil {
			out = append(out, m)
		}
	}
	st.Queued = nil
	return out
}

func rawMessages(messages []agui.Message) []json.RawMessage {
	var out []json.RawMessage
	for i := range messages {
		out = append(out, messages[i].AppendJSON(nil))
	}
	return out
}
