package redaction_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
)

// callsOf joins the pieces of calls, in the order in which the calls began.
func callsOf(deltas []holdfast.Delta) (names, arguments []string) {
	at := map[int]int{}
	for _, d := range deltas {
		if d.Call == nil {
			continue
		}
		if d.Call.Name != "" {
			at[d.Call.Index] = len(names)
			names, arguments = append(names, d.Call.Name), append(arguments, "")
		}
		arguments[at[d.Call.Index]] += d.Call.Arguments
	}
	return names, arguments
}

// TestRedactionOfArguments: if the options say so, secrets in the arguments of calls are
// hidden, however the calls are cut and interleaved, and nothing else is lost.
func TestRedactionOfArguments(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{Arguments: true})
	secret := `{"key":"` + secrets["aws"] + `","n":1}`
	for n := 1; n < len(secret); n++ {
		deltas := []holdfast.Delta{
			{Call: &holdfast.CallDelta{Index: 0, Name: "login"}},
			{Call: &holdfast.CallDelta{Index: 1, ID: "c", Name: "look", Arguments: `{"q":`}},
		}
		for rest := secret; rest != ""; {
			piece := rest[:min(n, len(rest))]
			rest = rest[len(piece):]
			deltas = append(deltas, holdfast.Delta{Call: &holdfast.CallDelta{Index: 0, Arguments: piece}})
		}
		deltas = append(deltas, holdfast.Delta{Call: &holdfast.CallDelta{Index: 1, Arguments: `"AKIA"}`}},
			holdfast.Delta{
				Call:   &holdfast.CallDelta{Index: 0, Name: "again", Arguments: `{}`},
				Usage:  &holdfast.Usage{},
				Finish: holdfast.FinishToolCalls,
			})
		got, err := stream(t, t.Context(), m, nil, deltas...)
		names, arguments := callsOf(got)
		if err != nil || strings.Join(names, " ") != "login look again" ||
			strings.Join(arguments, " ") != `{"key":"[redacted:api_key]","n":1} {"q":"AKIA"} {}` {
			t.Fatalf("in pieces of %d: %q %q, %v", n, names, arguments, err)
		}
		if last := got[len(got)-1]; last.Finish != holdfast.FinishToolCalls || last.Usage == nil || last.Call != nil {
			t.Fatalf("the last delta is %+v", last)
		}
	}
}

// TestRedactionOfOwnArguments: the arguments of a call that the model's side carries out are whole with the
// piece that says so, and those of the others at the end of their message.
func TestRedactionOfOwnArguments(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{Arguments: true})
	half, rest := secrets["aws"][:12], secrets["aws"][12:]
	own := holdfast.ToolSpec{Name: "login"}
	got, err := stream(t, t.Context(), m, nil,
		holdfast.Delta{Call: &holdfast.CallDelta{Index: 0, Name: "login", Arguments: `{"key":"` + half}},
		holdfast.Delta{Call: &holdfast.CallDelta{Index: 0, Arguments: rest + `"}`, Own: &own}},
		holdfast.Delta{Call: &holdfast.CallDelta{Index: 1, Name: "look", Arguments: `{"q":"` + half}},
		holdfast.Delta{More: true})
	names, arguments := callsOf(got)
	if err != nil || strings.Join(names, " ") != "login look" ||
		strings.Join(arguments, " ") != `{"key":"[redacted:api_key]"} {"q":"`+half {
		t.Errorf("%q %q, %v", names, arguments, err)
	}
	if last := got[len(got)-1]; !last.More {
		t.Errorf("the last delta is %+v", last)
	}
	for i, d := range got {
		if d.Call != nil && d.Call.Own != nil && !strings.HasSuffix(d.Call.Arguments, `"}`) {
			t.Errorf("delta %d ends the call with %q", i, d.Call.Arguments)
		}
	}
}

// TestRedactionOfArgumentsStops: a reader that stops gets nothing more.
func TestRedactionOfArgumentsStops(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{Arguments: true})
	held := holdfast.Delta{Call: &holdfast.CallDelta{Name: "login", Arguments: `{"key":"` + secrets["aws"][:12]}}
	for name, next := range map[string]holdfast.Delta{
		"another call": {Call: &holdfast.CallDelta{Name: "again"}},
		"the end":      {Finish: holdfast.FinishToolCalls},
	} {
		model := m.Model(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if yield(held, nil) && yield(next, nil) {
					t.Errorf("%s: it went on", name)
				}
			}
		})
		var got []holdfast.Delta
		for d := range model(t.Context(), &holdfast.ModelRequest{}) {
			if got = append(got, d); len(got) == 2 {
				break
			}
		}
		if rest := got[len(got)-1].Call; len(got) != 2 || rest == nil || rest.Name != "" ||
			rest.Arguments != secrets["aws"][:12] {
			t.Errorf("%s: before it came %+v", name, got)
		}
	}
}
