package hooktest

import (
	"encoding/json"
	"strings"
	"testing"
)

// Stream is what a run has shown.
type Stream struct {
	// Text is all of it, as it was sent.
	Text   string
	Events []Event
}

// Event is an event of a stream, with the members that tests look at.
type Event struct {
	Type, Code, Message, Name string
	Value, Content            json.RawMessage
	Metadata                  struct{ Holdfast struct{ Hint string } }
	Outcome                   struct {
		Type               string
		Interrupts         []Question
		PendingToolCallIDs []string
	}
}

// Hint is what a developer reads of a RUN_ERROR.
func (e Event) Hint() string { return e.Metadata.Holdfast.Hint }

// Question is what a person is asked at the end of a run.
type Question struct {
	ID, Reason, Message      string
	ResponseSchema, Metadata json.RawMessage
}

func (s *Server) read(text string) Stream {
	s.t.Helper()
	out := Stream{Text: text}
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(line, "data:")
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			s.t.Errorf("%v in %s", err, data)
		}
		out.Events = append(out.Events, e)
	}
	return out
}

// Last is how the run ended; empty if there are no events.
func (s Stream) Last() Event {
	if len(s.Events) == 0 {
		return Event{}
	}
	return s.Events[len(s.Events)-1]
}

// Notices returns the values of the CUSTOM events of that name.
func (s Stream) Notices(name string) []string {
	var out []string
	for _, e := range s.Events {
		if e.Type == "CUSTOM" && e.Name == name {
			out = append(out, string(e.Value))
		}
	}
	return out
}

// Results returns the texts of the tool results.
func (s Stream) Results() []string {
	var out []string
	for _, e := range s.Events {
		if e.Type == "TOOL_CALL_RESULT" {
			var text string
			if json.Unmarshal(e.Content, &text) != nil {
				text = string(e.Content)
			}
			out = append(out, text)
		}
	}
	return out
}

// Question returns the id of the one question with which the run has to have ended.
func (s Stream) Question(t *testing.T) string {
	t.Helper()
	if q := s.Last().Outcome.Interrupts; len(q) == 1 {
		return q[0].ID
	}
	t.Fatalf("the run did not end with one question: %+v", s.Last())
	return ""
}
