package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// reading counts how many messages are read: all of a thread, and single ones.
type reading struct {
	store.Store
	whole, single int
	pruned        string // a message that is not there any more
}

func (s *reading) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	s.whole++
	all, err := s.Store.Messages(ctx, key)
	return slices.DeleteFunc(all, func(m store.Message) bool { return m.ID == s.pruned }), err
}

func (s *reading) MessagesOf(ctx context.Context, key store.ThreadKey, ids []string) ([]store.Message, error) {
	s.single += len(ids)
	if slices.Contains(ids, s.pruned) {
		return nil, fmt.Errorf("message %s: %w", s.pruned, store.ErrNotFound)
	}
	return s.Store.MessagesOf(ctx, key, ids)
}

// TestResultsAreReadOnce: the log has a result once, in its message. A watcher in another
// process reads the results that it is about to be sent, and never the whole thread.
func TestResultsAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		shared, calls := memstore.New(), 0
		tool := looptest.Tool("tool", holdfast.EffectPure, func(context.Context) (string, error) {
			time.Sleep(time.Second)
			calls++
			return fmt.Sprintf("%d %s", calls, strings.Repeat("x", 200)), nil
		})
		var turns [][]holdfast.Delta
		for range n {
			turns = append(turns, []holdfast.Delta{
				{Call: &holdfast.CallDelta{Name: "tool", Arguments: "{}"}},
				{Finish: holdfast.FinishToolCalls},
			})
		}
		turns = append(turns, []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}})
		agent := holdfast.Agent{Name: "a", Model: looptest.Slowly(turns...), Tools: []holdfast.Tool{tool}}
		one := looptest.Start(t, shared, nil, agent)
		counted := &reading{Store: shared}
		two := looptest.Start(t, counted, nil, agent)
		owners, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		live := func() ([]agui.Frame, []agui.Event) {
			reply, err := two.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
			return looptest.FramesOf(t, reply, err)
		}
		_, events := live()
		shown := looptest.Collect(t, owners, nil)
		if !slices.Equal(results(events), results(shown)) || len(results(events)) != n {
			t.Errorf("another process shows the results %q, the owner %q", results(events), results(shown))
		}
		if counted.whole > 0 || counted.single > n {
			t.Errorf("the thread was read %d times, and %d single messages, for %d results", counted.whole,
				counted.single, n)
		}
		counted.single = 0
		if _, events = live(); !slices.Equal(results(events), results(shown)) || counted.whole > 0 ||
			counted.single != n {
			t.Errorf("a replay shows %q and has read the thread %d times, and %d single messages", results(events),
				counted.whole, counted.single)
		}
		for _, ev := range events {
			if r, is := ev.(agui.ToolCallResult); is && counted.pruned == "" {
				counted.pruned = r.MessageID
			}
		}
		_, events = live()
		if got := results(events); len(got) != n || !strings.Contains(got[0], "was pruned") ||
			got[1] != results(shown)[1] {
			t.Errorf("after one was pruned, the results are %q", got)
		}
	})
}

// results returns the texts of the results among the events.
func results(events []agui.Event) (texts []string) {
	for _, ev := range events {
		if r, is := ev.(agui.ToolCallResult); is {
			var text string
			_ = json.Unmarshal(r.Content, &text) // it stays empty if it is none
			texts = append(texts, text)
		}
	}
	return texts
}
