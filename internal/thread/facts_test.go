package thread

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

func TestRunOwners(t *testing.T) {
	rec := &Run{}
	for i := range 60 {
		before := rec.Processes
		rec.OwnedBy(&store.Commit{
			Process:   fmt.Sprint("p", i),
			Fence:     store.Fence{Epoch: uint64(i), Nonce: "abcdefgh"},
			UpdatedAt: time.Unix(int64(i), 0),
		})
		if len(before) > 0 && before[0].Process != "p0" {
			t.Fatalf("the list of another copy has changed: %+v", before)
		}
	}
	if n := len(rec.Processes); n != maxProcesses || rec.Processes[0].Process != "p0" ||
		rec.Processes[1].Process != "p11" || rec.Processes[n-1].Process != "p59" || rec.Processes[0].Tag != "abcdef" {
		t.Errorf("%d: %+v", n, rec.Processes)
	}
}

func TestTakeoverValue(t *testing.T) {
	c := &store.Commit{Process: "p2", Fence: store.Fence{Epoch: 7}, UpdatedAt: time.UnixMilli(5000)}
	for _, row := range []struct {
		from store.Head
		want string
	}{
		{store.Head{Process: "p1", UpdatedAt: time.UnixMilli(3500)}, `{"epoch":7,"from":"p1","iteration":3,` +
			`"outageMs":1500,"process":"p2","reason":"why"}`},
		{store.Head{UpdatedAt: time.UnixMilli(6000)}, `{"epoch":7,"iteration":3,"outageMs":0,` +
			`"process":"p2","reason":"why"}`},
	} {
		if got := string(MustJSON(Takeover(&row.from, c, 3, "why"))); got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
}

// TestStartAgain: only calls that an owner had started, and that start again, are counted.
func TestStartAgain(t *testing.T) {
	st := &State{Work: Work{Calls: []Call{
		{ID: "a"}, {ID: "b", Attempts: 2}, {ID: "once"}, {ID: "kept", Kept: json.RawMessage(`1`)},
		{ID: "asks", Interrupt: &agui.Interrupt{}}, {ID: "outside", Outside: &OutsideCall{}}, {ID: "planned"},
	}}}
	started := map[string]bool{"a": true, "b": true, "once": true, "kept": true, "asks": true, "outside": true}
	again := map[string]bool{"a": true, "b": true, "asks": true, "outside": true}
	(&Resumable{Started: started, Repeatable: again}).StartAgain(st)
	got := ""
	for _, c := range st.Calls {
		got += fmt.Sprint(c.ID, c.Attempts, " ")
	}
	if want := "a2 b3 once0 kept2 asks0 outside0 planned0 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFacts: the metadata of a result says what the log does not say otherwise, beside what it
// says of the result.
func TestFacts(t *testing.T) {
	failed := FailedMark(true, "x")
	for _, row := range []struct {
		call     Call
		metadata json.RawMessage
		want     string
	}{
		{Call{}, nil, ``},
		{Call{Attempts: 1}, failed, string(failed)},
		{Call{Attempts: 2}, nil, `{"holdfast":{"attempts":2}}`},
		{Call{Attempts: 2, Frontend: true}, nil, ``},
		{Call{Key: "k"}, nil, `{"holdfast":{"key":"key"}}`},
		{Call{Edited: "k", Attempts: 3}, json.RawMessage(`{"mine":1,"holdfast":{"failed":true,"code":"x"}}`),
			`{"holdfast":{"attempts":3,"code":"x","failed":true,"key":"key"},"mine":1}`},
	} {
		got := row.call.WithFacts(row.metadata, "key")
		if string(got) != row.want {
			t.Errorf("%+v: %s, want %s", row.call, got, row.want)
		}
		facts, mark := FactsOf(&agui.ToolCallResult{Base: agui.Base{Metadata: got}})
		if row.call.Attempts > 1 && !row.call.Frontend && facts.Attempts != row.call.Attempts ||
			mark.Failed != (len(row.metadata) > 0) {
			t.Errorf("%s is read as %+v and %+v", got, facts, mark)
		}
	}
	if facts, mark := FactsOf(&agui.ToolCallResult{Base: agui.Base{Metadata: json.RawMessage(`[]`)}}); facts !=
		(CallFacts{}) || mark != (ResultMark{}) {
		t.Errorf("what is not ours is read as %+v and %+v", facts, mark)
	}
}
