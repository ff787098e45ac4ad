package thread

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// TestOutsideCall follows a call from its first token to its end. A state that was copied
// before a change keeps what it had.
func TestOutsideCall(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	st := New()
	st.Calls = []Call{{ID: "c", Name: "approve"}}
	call := &st.Calls[0]
	call.Issue("one", now.Add(time.Hour))
	before := st.Clone()
	for range 2 * maxTokens {
		call.Issue("more", now.Add(2*time.Hour))
	}
	if len(before.Calls[0].Outside.Tokens) != 1 || len(call.Outside.Tokens) != maxTokens ||
		!call.Outside.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v, %+v", before.Calls[0].Outside, call.Outside)
	}
	if call.WaitsOutside() || len(st.OutsideCalls()) != 0 {
		t.Error("it waits before it is handed out")
	}
	call.HandedOut(now.Add(3*time.Hour), true)
	if list := st.OutsideCalls(); len(list) != 1 || !list[0].ExpiresAt.Equal(now.Add(time.Hour)) ||
		!list[0].Abandonable || list[0].Tool != "approve" {
		t.Errorf("it is shown as %+v", list)
	}
	if st.GoesOn(now) || !st.GoesOn(now.Add(time.Hour)) || call.OutsideEnd(now.Add(2*time.Hour)).End != EndExpired {
		t.Error("it does not expire in time")
	}
	if text := call.TextClosed("other", now); text != TextGivenUp {
		t.Errorf("given up: %q", text)
	}
	if text := call.TextClosed("other", now.Add(time.Hour)); text != TextExpired {
		t.Errorf("expired: %q", text)
	}
	call.Finish(OutsideResult{Text: "yes", Hash: "h", Run: "r", At: now})
	if text := call.TextClosed("other", now.Add(9*time.Hour)); text != "other" || call.Expired(now.Add(9*time.Hour)) {
		t.Errorf("finished, it expires: %q", text)
	}
	if end := call.OutsideEnd(now.Add(time.Minute)); end.End != EndFinished || end.Hash != "h" || !end.At.Equal(now) ||
		len(end.Tokens) != maxTokens {
		t.Errorf("it ended as %+v", end)
	}
	if !st.GoesOn(now) {
		t.Error("nothing goes on with the result")
	}
	again, err := DecodeState(st.Encode())
	if err != nil || again.Calls[0].Finished() == nil || *again.Calls[0].Finished() != *call.Finished() {
		t.Errorf("read again: %+v %v", again, err)
	}
	call.TakeIn()
	if call.Finished() == nil || call.Outside.Tokens != nil {
		t.Errorf("taken in, a result is lost or URLs still work: %+v", call.Outside)
	}
}

// TestGoesOn: a thread that waits for anything else is left alone.
func TestGoesOn(t *testing.T) {
	done := Call{ID: "c", Outside: &OutsideCall{Waits: true, Result: &OutsideResult{}}}
	for name, c := range map[string]struct {
		calls []Call
		want  bool
	}{
		"finished":             {[]Call{done}, true},
		"no outside calls":     {[]Call{{ID: "x"}}, false},
		"another one waits":    {[]Call{done, {ID: "x", Outside: &OutsideCall{Waits: true}}}, false},
		"the frontend's waits": {[]Call{done, {ID: "x", Frontend: true}}, false},
		"a person is asked":    {[]Call{done, {ID: "x", Interrupt: &agui.Interrupt{ID: "i"}}}, false},
	} {
		st := New()
		st.Calls = c.calls
		if got := st.GoesOn(time.Now()); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if err := st.Begin("r", "a"); err != nil || st.GoesOn(time.Now()) {
			t.Errorf("%s: a running thread: %v", name, err)
		}
	}
}

// TestRestTakenIn: a state whose outside call was taken in is stopped, so that a run hands
// the call out again; one that waits stays idle.
func TestRestTakenIn(t *testing.T) {
	reason := holdfast.Errorf(codes.MidExecution, "went back")
	st := New()
	st.Calls = []Call{{ID: "c", Outside: &OutsideCall{Waits: true, Tokens: []string{"h"}}}}
	st.Rest(reason)
	if st.Status() != "idle" {
		t.Errorf("waiting, it is %s", st.Status())
	}
	st.Calls[0].TakeIn()
	st.Rest(reason)
	if st.Status() != "stopped" || st.Calls[0].Outside != nil {
		t.Errorf("taken in, it is %s, %+v", st.Status(), st.Calls[0].Outside)
	}
}

// TestResultHash: how a result is written makes no difference; what it says does.
func TestResultHash(t *testing.T) {
	hash := ResultHash(json.RawMessage(`{"a":1,"b":[true]}`), false)
	if hash != ResultHash(json.RawMessage(` { "b" : [ true ], "a" : 1 } `), false) {
		t.Error("spaces and order count")
	}
	for _, one := range []string{`{"a":1.0,"b":[true]}`, `{"a":1e0,"b":[true]}`, `{"a":10.00E-1,"b":[true]}`,
		`{"\u0061":0.1e+1,"b":[true]}`} {
		if ResultHash(json.RawMessage(one), false) != hash {
			t.Errorf("%s has another hash", one)
		}
	}
	same := func(a, b string) bool {
		return ResultHash(json.RawMessage(a), false) == ResultHash(json.RawMessage(b), false)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`0`, `-0.0e7`, true}, {`100`, `1e2`, true}, {`0.001`, `1E-3`, true}, {`-1.50`, `-15e-1`, true},
		{`1`, `-1`, false}, {`1`, `"1"`, false}, {`1`, `10`, false},
		{`9007199254740993`, `9007199254740992`, false}, {`1e99999999999999999999`, `1e99999999999999999999`, true},
		{`1e99999999999999999999`, `1e99999999999999999998`, false},
		{`[[1.0]]`, `[[1]]`, true},
	} {
		if same(c.a, c.b) != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, !c.want)
		}
	}
	for _, other := range []string{`{"a":2,"b":[true]}`, `{"a":1}`, `"{}"`, `null`} {
		if ResultHash(json.RawMessage(other), false) == hash {
			t.Errorf("%s has the same hash", other)
		}
	}
	if ResultHash(json.RawMessage(`"x"`), true) == ResultHash(json.RawMessage(`"x"`), false) ||
		strings.Contains(hash, "true") {
		t.Error("an error counts as a result")
	}
}
