package loop_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/threads"
)

// page is a page as a stock client has it: what streams have shown, and what the person has done.
type page struct {
	t        *testing.T
	e        *looptest.Engine
	id       string
	messages []agui.Message
	state    string
	version  string // that the streams have named last
	told     []agui.Custom
}

// post sends a message with the state; options go into forwardedProps.holdfast. It returns the code of the
// error, if there is one.
func (p *page) post(run, state, options string) string {
	p.t.Helper()
	said := append(slices.Clone(p.messages), looptest.UserSays("u"+run, "go"))
	in := looptest.RunInput(p.id, run, said...)
	in.State = json.RawMessage(state)
	if options != "" {
		in.ForwardedProps = json.RawMessage(`{"holdfast":` + options + `}`)
	}
	reply, err := p.e.Owner.Post(p.t.Context(), looptest.Alice, "", in)
	if err != nil {
		return looptest.Code(err)
	}
	events := looptest.Collect(p.t, reply, nil)
	looptest.Succeeded(p.t, events)
	p.messages, p.state, p.told = said, state, nil
	p.take(events)
	p.load()
	return ""
}

// take takes what a stream shows.
func (p *page) take(events []agui.Event) {
	for _, ev := range events {
		var shown struct {
			Holdfast struct {
				StateVersion string `json:"stateVersion"`
			} `json:"holdfast"`
		}
		switch ev := ev.(type) {
		case agui.StateSnapshot:
			p.state = string(ev.Snapshot)
			_ = json.Unmarshal(ev.Metadata, &shown)
			p.version = shown.Holdfast.StateVersion
		case agui.StateDelta:
			next, err := jsonpatch.Apply([]byte(p.state), ev.Delta)
			if err != nil {
				p.t.Fatal(err)
			}
			p.state = string(next)
			_ = json.Unmarshal(ev.Metadata, &shown)
			p.version = shown.Holdfast.StateVersion
		case agui.Custom:
			if ev.Name == "holdfast.state_conflict" {
				p.told = append(p.told, ev)
			}
		}
	}
}

// load has the page show all messages of the thread.
func (p *page) load() {
	p.messages = nil
	for _, raw := range looptest.Must(p.e.Messages(p.t.Context(), looptest.Alice, p.id))(p.t) {
		m, err := agui.DecodeMessage(raw)
		if err != nil {
			p.t.Fatal(err)
		}
		m.DropMarks()
		p.messages = append(p.messages, m)
	}
}

// stored returns the state and its version as the thread has them.
func (p *page) stored() (state, version string) {
	s := looptest.Must(p.e.Keeper.State(p.t.Context(), looptest.Alice, p.id))(p.t)
	return string(s.State), s.Version
}

// setter is an agent whose tool sets members of the state as it is told.
func setter(rule string, sets ...string) holdfast.Agent {
	var says []holdfast.Delta
	for i, merge := range sets {
		if merge != "" {
			says = append(says, looptest.Calls("set", merge))
		}
		says = append(says, holdfast.Delta{Text: "done " + string(rune('0'+i))})
	}
	return holdfast.Agent{
		Name:  "a",
		State: &sharedstate.Options{Conflict: rule},
		Model: looptest.Say(says...),
		Tools: []holdfast.Tool{holdfast.NewTool("set", "sets",
			func(ctx context.Context, in map[string]any) (string, error) {
				merge, err := json.Marshal(in)
				if err != nil {
					return "", err
				}
				return "set", holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
					return jsonpatch.Merge(state, merge)
				})
			})},
	}
}

// TestPageStateIsMerged: what a page sends is merged into the state field by field, against the version that it
// had, and a version that its stream names may be named by it.
func TestPageStateIsMerged(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, setter("", `{"tool":1}`, `{"tool":2}`, "", "", "", ""))
	one := &page{t: t, e: e, id: "t"}
	if code := one.post("r1", `{"page":1,"big":12345678901234567890}`, ""); code != "" {
		t.Fatal(code)
	}
	two := &page{t: t, e: e, id: "t", messages: one.messages, state: one.state, version: one.version}
	state, version := one.stored()
	if one.state != state || one.version != version || state != `{"page":1,"big":12345678901234567890,"tool":1}` {
		t.Fatalf("the page has %s %s, and the thread %s %s", one.state, one.version, state, version)
	}
	// The browser cannot hold the large number, and has not touched it.
	if code := one.post("r2", `{"tool":1,"page":2,"big":12345678901234567000}`, ""); code != "" {
		t.Fatal(code)
	}
	if want := `{"page":2,"big":12345678901234567890,"tool":2}`; one.state != want {
		t.Errorf("the page has %s, want %s", one.state, want)
	}
	if state, version = one.stored(); one.state != state || one.version != version {
		t.Errorf("the page has %s %s, and the thread %s %s", one.state, one.version, state, version)
	}
	// The other page has not seen that run. It names its version; its messages would say as much.
	two.load()
	for i, options := range []string{`{"stateVersion":"` + two.version + `"}`, ""} {
		if code := two.post("r"+string(rune('3'+i)), `{"page":1,"big":12345678901234567000,"tool":1,"two":`+
			string(rune('0'+i))+`}`, options); code != "" {
			t.Fatal(code)
		}
		if i == 0 {
			if want := `{"page":2,"big":12345678901234567890,"tool":2,"two":0}`; two.state != want {
				t.Errorf("the other page has %s, want %s", two.state, want)
			}
		}
	}
	one.load()
	for _, same := range []string{"", "null", "{}", ` { } `} {
		state, version := one.stored()
		if code := one.post("same"+same, same, ""); code != "" {
			t.Fatal(code)
		}
		if now, is := one.stored(); now != state || is != version {
			t.Errorf("%q changes the state to %s", same, now)
		}
	}
}

// TestStateConflict: where a page and somebody else have changed the same place, the agent's rule says what
// holds. A chat is never refused, and what was dropped is told.
func TestStateConflict(t *testing.T) {
	for name, c := range map[string]struct {
		rule, options string
		code, want    string
		kept          string
	}{
		"refuse": {code: codes.StateConflict, want: `{"a":2,"b":1}`},
		"chat":   {options: `,"chat":true`, want: `{"a":3,"b":1}`, kept: "page"},
		"page":   {rule: "page", want: `{"a":3,"b":1}`, kept: "page"},
		"agent":  {rule: "agent", want: `{"a":2,"b":1}`, kept: "agent"},
	} {
		t.Run(name, func(t *testing.T) {
			e := looptest.Start(t, memstore.New(), nil, setter(c.rule, "", `{"a":2}`, ""))
			one := &page{t: t, e: e, id: "t"}
			one.post("r1", `{"a":1,"b":1}`, "")
			had := one.version
			one.post("r2", one.state, "")
			code := one.post("r3", `{"a":3,"b":1}`, `{"stateVersion":"`+had+`"`+c.options+`}`)
			if state, _ := one.stored(); code != c.code || state != c.want || code == "" && one.state != state {
				t.Errorf("the code is %q, the state %s, and the page has %s", code, state, one.state)
			}
			if c.kept == "" {
				return
			}
			want := `{"conflicts":[{"path":"/a","page":3,"stored":2}],"count":1,"kept":"` + c.kept + `"}`
			if len(one.told) != 1 || string(one.told[0].Value) != want {
				t.Errorf("the stream says %+v, want %s", one.told, want)
			}
		})
	}
}

// TestStateConflictSaysBoth: a refusal has both values and the version to go on from, with which the same
// request is taken.
func TestStateConflictSaysBoth(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, setter("", "", `{"a":2}`, ""))
	one := &page{t: t, e: e, id: "t"}
	long := strings.Repeat("x", 2000)
	one.post("r1", `{"a":1,"long":"y"}`, "")
	had := one.version
	one.post("r2", one.state, "")
	in := looptest.RunInput("t", "r3", append(slices.Clone(one.messages), looptest.UserSays("u3", "go"))...)
	in.State = json.RawMessage(`{"a":3,"long":"` + long + `"}`)
	in.ForwardedProps = json.RawMessage(`{"holdfast":{"stateVersion":"` + had + `"}}`)
	_, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
	details, _ := json.Marshal(holdfast.AsError(err).Details)
	want := `{"conflicts":[{"path":"/a","page":3,"stored":2}],"count":1,"stateVersion":"` + one.version +
		`","threadId":"t"}`
	if string(details) != want {
		t.Fatalf("the details are %s, want %s", details, want)
	}
	if code := one.post("r3", string(in.State), `{"stateVersion":"`+one.version+`"}`); code != "" {
		t.Fatal(code)
	}
	if state, _ := one.stored(); state != string(in.State) {
		t.Errorf("the state is %.50s", state)
	}
	// A version that there is not says nothing of what the page has seen: what differs is told.
	if code := one.post("r4", `{"a":4}`, `{"stateVersion":"s_none"}`); code != codes.StateConflict {
		t.Errorf("with an unknown version the code is %q", code)
	}
	for _, odd := range []string{`"` + strings.Repeat("s", 300) + `"`, `"s+99999999"`, `"a\u0000b"`} {
		if code := one.post("r5", `{"a":4}`, `{"stateVersion":`+odd+`}`); code != codes.StateConflict {
			t.Errorf("with the version %.20s the code is %q", odd, code)
		}
	}
}

// TestPatchBetweenRuns: what is changed between two runs is not undone by a page that has not seen it, and the
// next run shows it.
func TestPatchBetweenRuns(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, setter("", "", "", "", ""))
	one := &page{t: t, e: e, id: "t"}
	one.post("r1", `{"a":1,"b":1}`, "")
	patch := func(merge string) {
		t.Helper()
		_, err := upkeep.States{Keeper: e.Keeper}.Patch(t.Context(), looptest.Alice, "t",
			threads.StatePatch{Patch: json.RawMessage(merge), Merge: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"b":2}`)
	patch(`{"c":3}`)
	if code := one.post("r2", `{"a":2,"b":1}`, ""); code != "" || one.state != `{"a":2,"b":2,"c":3}` {
		t.Errorf("the code is %q, and the page has %s", code, one.state)
	}
	patch(`{"c":4}`)
	if code := one.post("r3", one.state, ""); code != "" || one.state != `{"a":2,"b":2,"c":4}` {
		t.Errorf("the code is %q, and a page that changes nothing has %s", code, one.state)
	}
	patch(`{"c":5}`)
	if code := one.post("r4", "", ""); code != "" || one.state != `{"a":2,"b":2,"c":5}` {
		t.Errorf("the code is %q, and a page that sends nothing has %s", code, one.state)
	}
}
