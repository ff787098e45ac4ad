package server_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/threads"
)

// timeZero is no time.
var timeZero time.Time

// TestThreads: a program reads, marks, forks, rewinds, prunes and deletes threads without
// HTTP.
func TestThreads(t *testing.T) {
	s, ctx := running(t, hello), t.Context()
	for _, text := range []string{"hi", "again"} {
		all(t, s.Run(ctx, me, server.Input{Thread: "t", Text: text}))
	}
	if info := must(s.Thread(ctx, me, "t"))(t); info.Status != threads.StatusIdle || info.Size == nil {
		t.Errorf("%+v", info)
	}
	if list := must(s.Messages(ctx, me, "t"))(t); len(list) != 4 {
		t.Errorf("%d messages", len(list))
	}
	if runs := must(s.Runs(ctx, me, "t"))(t); len(runs) != 2 {
		t.Errorf("%d runs", len(runs))
	}
	marked := must(s.Mark(ctx, me, "t", threads.Mark{Label: "here", State: json.RawMessage(`{"n":1}`)}))(t)
	if state := must(s.State(ctx, me, "t"))(t); string(state.State) != `{"n":1}` {
		t.Errorf("the state is %s", state.State)
	}
	list := must(s.Checkpoints(ctx, me, "t", "", timeZero, 0))(t)
	if len(list) < 3 || list[0].ID != marked.ID {
		t.Fatalf("%+v", list)
	}
	if d := must(s.Checkpoint(ctx, me, "t", marked.ID))(t); len(d.History) != 4 || d.Metadata.Label != "here" {
		t.Errorf("%+v", d)
	}
	fork := must(s.Fork(ctx, me, "t", threads.Travel{Checkpoint: marked.ID, Thread: "f"}))(t)
	if fork.Thread.ID != "f" || fork.Thread.Parent != "t" {
		t.Errorf("%+v", fork.Thread)
	}
	// Its log has no record yet, and its cursor can still be used.
	if info := must(s.Thread(ctx, me, "f"))(t); info.Cursor != "" || fork.Thread.Cursor != "" {
		t.Errorf("the fork's cursor is %q, %q", info.Cursor, fork.Thread.Cursor)
	}
	if shown := all(t, s.Events(ctx, me, "f", fork.Thread.Run, fork.Thread.Cursor)); len(shown) == 0 {
		t.Error("the fork is not shown")
	}
	if kids := must(s.Children(ctx, me, "t"))(t); len(kids) != 1 || kids[0].ID != "f" {
		t.Errorf("%+v", kids)
	}
	must(s.Rewind(ctx, me, "t", threads.Travel{Message: messageID(t, must(s.Messages(ctx, me, "t"))(t)[1])}))(t)
	if left := must(s.Messages(ctx, me, "t"))(t); len(left) != 2 {
		t.Errorf("%d messages after the rewind", len(left))
	}
	if would := must(s.Prune(ctx, me, "t", "", 1, true))(t); !would.DryRun || would.Checkpoints == 0 {
		t.Errorf("%+v", would)
	}
	if done := must(s.Prune(ctx, me, "t", "", 1, false))(t); done.Checkpoints == 0 {
		t.Errorf("%+v", done)
	}
	if list := must(s.Checkpoints(ctx, me, "t", "", timeZero, 10))(t); len(list) != 1 {
		t.Errorf("%d checkpoints after the prune", len(list))
	}
	later := time.Now().Add(time.Hour)
	if would := must(s.DeleteOlderThan(ctx, me, later, true))(t); !would.DryRun {
		t.Errorf("%+v", would)
	}
	if n := must(s.Delete(ctx, me, "t", "", true))(t); n != 2 {
		t.Errorf("deleted %d", n)
	}
	all(t, s.Run(ctx, me, server.Input{Thread: "old", Text: "hi"}))
	if done := must(s.DeleteInactive(ctx, me, later, false))(t); done.Threads != 1 {
		t.Errorf("%+v", done)
	}
	if list := must(s.Threads(ctx, me, timeZero, 0))(t); len(list) != 0 {
		t.Errorf("left: %+v", list)
	}
}

func messageID(t *testing.T, message json.RawMessage) string {
	t.Helper()
	var m struct{ ID string }
	if err := json.Unmarshal(message, &m); err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// TestThreadErrors: what the HTTP interface refuses, the methods refuse with the same codes,
// and nobody sees the threads of others.
func TestThreadErrors(t *testing.T) {
	s, ctx := running(t, hello), t.Context()
	all(t, s.Run(ctx, me, server.Input{Thread: "t", Text: "hi"}))
	other := holdfast.Principal{Tenant: me.Tenant, User: "somebody else"}
	fail := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		codes.NotFound + " read":          fail(s.Thread(ctx, other, "t")),
		codes.NotFound + " messages":      fail(s.Messages(ctx, other, "t")),
		codes.NotFound + " delete":        fail(s.Delete(ctx, other, "t", "", false)),
		codes.NotFound + " cancel":        fail(s.Cancel(ctx, me, "t", "nope")),
		codes.NotFound + " checkpoint":    fail(s.Checkpoint(ctx, me, "t", "9")),
		codes.InvalidInput + " keep":      fail(s.Prune(ctx, me, "t", "", 0, false)),
		codes.InvalidInput + " limit":     fail(s.Threads(ctx, me, timeZero, -1)),
		codes.InvalidInput + " limit 2":   fail(s.Checkpoints(ctx, me, "t", "", timeZero, -1)),
		codes.InvalidInput + " two":       fail(s.Rewind(ctx, me, "t", threads.Travel{Checkpoint: "1", Message: "m"})),
		codes.InvalidInput + " id":        fail(s.Fork(ctx, me, "t", threads.Travel{Thread: "a\x00b"})),
		codes.InvalidInput + " label":     fail(s.Mark(ctx, me, "t", threads.Mark{Label: "\x1b[31m"})),
		codes.InvalidInput + " state":     fail(s.Mark(ctx, me, "t", threads.Mark{State: json.RawMessage("{")})),
		codes.CheckpointConflict + " tag": fail(s.Delete(ctx, me, "t", "older", false)),
	} {
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Code != want[:len(e.Code)] {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}
