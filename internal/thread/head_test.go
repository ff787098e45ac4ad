package thread

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/prompt"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// fullState returns a state with every member set.
func fullState() *State {
	n := int64(7)
	return &State{
		Format:   Format,
		Agent:    "a",
		Leaf:     "m3",
		standing: standing{threads.StatusInterrupted, "r1", holdfast.OutcomeInterrupt, "c", "t", "p"},
		Work: Work{
			Incarnation: "k3j5",
			Rewinds:     2,
			Rewound:     7,
			TakenBack:   TakenBack{Shown: []string{"call_0"}, Unlisted: true},
			Iteration:   3,
			GrantedAt:   1,
			Boundary:    store.Cursor{Number: 12, Tag: "abcdef"},
			Steps:       []string{"look up"},
			Calls: []Call{
				{
					ID:        "c1",
					Name:      "pay",
					Run:       "r1",
					Key:       "k3j5",
					Again:     true,
					Repeats:   true,
					InDoubt:   true,
					Interrupt: &agui.Interrupt{ID: "i1", Reason: "input_required"},
				},
			},
			Queued:  []json.RawMessage{json.RawMessage(`{"id":"u2"}`)},
			Answers: map[string]string{"i0": "h"},
			Count:   3,
			Origin: &Origin{
				Thread:      "o",
				Checkpoint:  "000000000001",
				Incarnation: "i0",
			},
			Reuse:          true,
			OnlyRecorded:   true,
			Happened:       []Happened{{Tool: "pay", Arguments: "{}", Result: "paid", Message: "m1"}},
			Bytes:          99,
			Measured:       true,
			Shared:         "s1",
			StateWork:      StateWork{StateShown: "s0", StateItem: 7, StatePatches: []string{"p1"}},
			Predicted:      true,
			Checkpoints:    4,
			LastCheckpoint: "000000000004",
			Marked:         "paid",
			Tended: Tended{
				Tidied: 8,
				Oldest: 9,
				Single: true,
			},
			Takeovers: 1,
			Retaken:   2,
			Waiting: &threads.Waiting{
				Revision: "6f1e",
				Since:    time.Unix(1, 0).UTC(),
				Until:    time.Unix(2, 0).UTC(),
			},
			Model: "p/m2",
			Usage: []holdfast.Usage{{Provider: "p", Model: "m", InputTokens: &n}},
			Open:  true,
			Answering: Answering{true, &Begun{After: "m", Messages: []json.RawMessage{json.RawMessage(`{"id":"m2"}`)},
				Calls: json.RawMessage(`[{"id":"c"}]`)}},
			Question: &Question{
				Interrupt: &agui.Interrupt{ID: "i2", Reason: "r"},
				Answer:    &holdfast.Answer{InterruptID: "i2"},
			},
			Misfit: &Misfit{Answer: "{", Errors: []string{"e"}},
			Output: "m3",
			Ending: &Ending{
				Code:    "c",
				Message: "m",
				Hint:    "h",
			},
			Prompt:     (&prompt.Mark{}).Branched(),
			Instructed: "1x",
			Schema:     "Ab3_x-9",
			States:     map[string]json.RawMessage{"a.b": json.RawMessage(`{"n":1}`)},
			StateVersions: map[string]int{
				"a.b": 2,
			},
			NewerStates: map[string]NewerState{"a.c": {Version: 3, Data: json.RawMessage(`{}`)}},
			Redacted:    []string{"a.b"},
		},
	}
}

// TestStateRoundTrip: all of a head survives being written and read.
func TestStateRoundTrip(t *testing.T) {
	want := fullState()
	for _, v := range []reflect.Value{reflect.ValueOf(want.standing), reflect.ValueOf(want.Work)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("fullState leaves %s out", v.Type().Field(i).Name)
			}
		}
	}
	data := want.Encode()
	if !json.Valid(data) {
		t.Fatalf("not JSON: %s", data)
	}
	got, err := DecodeState(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if string(got.Encode()) != string(data) {
		t.Error("written again it is another")
	}
}
