package thread

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

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

// MustJSON encodes one of this package's own stored values, which always can
// be encoded.
func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("thread: encode %T: %v", v, err))
	}
	return b
}

// Decode reads one of this package's stored values.
func Decode(b []byte, v any) error {
	var f struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("read a stored value: %w: %w", ErrUnreadable, err)
	}
	if f.Format > Format {
		return fmt.Errorf("a value has format %d, this server reads up to %d: %w", f.Format, Format, holdfast.ErrVersionTooNew)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read a stored value: %w: %w", ErrUnreadable, err)
	}
	return nil
}
