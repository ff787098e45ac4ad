package loop_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// TestJoin: a page that knows a run, and not where it is in it, is shown what is stored in its own form, and the
// answer under way from its start; one that comes back with a cursor gets the rest.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := strings.Fields("one two three four five six")
		second := []holdfast.Delta{{Finish: holdfast.FinishStop}}
		for i := range words {
			second = append([]holdfast.Delta{{Text: words[len(words)-1-i] + " "}}, second...)
		}
		first := []holdfast.Delta{{Text: "I look. "}, looptest.Calls("look", "{}")}
		look := looptest.Tool("look", holdfast.EffectPure, func(context.Context) (string, error) { return "seen", nil })
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name: "a", Model: looptest.Slowly(first, second), Tools: []holdfast.Tool{look},
		})
		posted, err := e.Owner.Post(t.Context(), looptest.Alice, "a",
			looptest.RunInput("t", "r", looptest.UserSays("u", "go")))
		if err != nil {
			t.Fatal(err)
		}
		join := func(after store.Cursor) ([]agui.Frame, []string) {
			t.Helper()
			shown := func(history iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
				return func(yield func([]byte, error) bool) {
					for m, err := range history {
						if !yield([]byte(`{"mine":`+string(m)+`}`), err) {
							return
						}
					}
				}
			}
			reply, err := owner.Joins{Engine: e.Owner}.Join(t.Context(), looptest.Alice, "t", "r", after,
				agui.DialectLegacy, shown)
			if err != nil {
				t.Fatal(err)
			}
			if reply == nil {
				return nil, nil
			}
			var frames []agui.Frame
			var types []string
			for batch, err := range reply.Whole() {
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range batch {
					frames, types = append(frames, f), append(types, string(agui.TypeOf(f.Data)))
				}
			}
			return frames, types
		}
		time.Sleep(60 * time.Millisecond) // in the middle of the second answer
		frames, types := join(store.Cursor{})
		want := "RUN_STARTED MESSAGES_SNAPSHOT STATE_SNAPSHOT TEXT_MESSAGE_START"
		if got := strings.Join(types, " "); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "RUN_FINISHED") {
			t.Errorf("it sees %s", got)
		}
		snapshot := string(frames[1].Data)
		if strings.Count(snapshot, `{"mine":`) != 3 || !strings.Contains(snapshot, "seen") ||
			strings.Contains(snapshot, "one") || frames[1].ID != "" || frames[3].ID == "" {
			t.Errorf("it is shown %s", snapshot)
		}
		said := ""
		for _, f := range frames {
			if ev, ok := looptest.Must(agui.DecodeEvent(f.Data))(t).(agui.TextMessageContent); ok {
				said += ev.Delta
			}
		}
		if strings.TrimSpace(said) != strings.Join(words, " ") {
			t.Errorf("it reads %q", said)
		}
		looptest.Collect(t, posted, nil)
		after := looptest.Must(store.ParseCursor(frames[len(frames)-3].ID))(t)
		if _, types := join(after); len(types) != 2 {
			t.Errorf("after a cursor it sees %q", types)
		}
		if _, types := join(looptest.Must(store.ParseCursor(frames[len(frames)-1].ID))(t)); types != nil {
			t.Errorf("after the end it sees %q", types)
		}
		if _, types := join(store.Cursor{}); strings.Join(types,
			" ") != "RUN_STARTED MESSAGES_SNAPSHOT STATE_SNAPSHOT RUN_FINISHED" {
			t.Errorf("when the run has ended, it sees %q", types)
		}
	})
}
