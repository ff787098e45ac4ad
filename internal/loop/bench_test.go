package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// longThread stores a thread of n messages, with calls and results, that stopped.
func longThread(b *testing.B, db store.Store, n int) []store.Message {
	b.Helper()
	key := store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}
	c := &store.Commit{
		Key:       key,
		ID:        "c0",
		Expect:    store.Position{Next: 1},
		User:      looptest.Alice.User,
		Fence:     store.Fence{Epoch: 1, Nonce: "abcdefgh"},
		UpdatedAt: time.Now(),
		Records:   [][]byte{agui.Append(nil, agui.RunStarted{ThreadID: "t", RunID: "r0"})},
	}
	parent := ""
	add := func(m holdfast.Message) {
		stored := agui.FromDomain(m)
		c.Messages = append(c.Messages, store.Message{ID: m.ID, Parent: parent, Data: stored.AppendJSON(nil)})
		parent = m.ID
	}
	add(holdfast.Message{ID: "u", Role: holdfast.RoleUser, Text: "go"})
	for i := 0; len(c.Messages) < n; i++ {
		call := fmt.Sprintf("call%d", i)
		add(holdfast.Message{
			ID:   fmt.Sprintf("a%d", i),
			Role: holdfast.RoleAssistant,
			Text: strings.Repeat("some words of an answer ", 8),
			Calls: []holdfast.ToolCall{
				{ID: call, Name: "look", Arguments: []byte(`{"query":"the weather in Lisbon","limit":10}`)},
			},
		})
		add(holdfast.Message{
			ID:     fmt.Sprintf("t%d", i),
			Role:   holdfast.RoleTool,
			CallID: call,
			Text:   strings.Repeat(`{"row":1,"value":"text"} `, 16),
		})
	}
	st := thread.New()
	if err := errors.Join(st.Begin("r0", "a"), st.Stop(thread.CutOff(0))); err != nil {
		b.Fatal(err)
	}
	st.Leaf, st.Iteration, st.Count = parent, len(c.Messages)/2, len(c.Messages)
	st.Boundary = store.Cursor{Number: 1, Tag: c.Fence.Tag()}
	c.State = st.Encode()
	c.Put = []store.Value{
		{
			Kind: store.KindRun,
			ID:   "r0",
			Data: thread.MustJSON(thread.Run{Format: thread.Format, ID: "r0", Agent: "a", User: looptest.Alice.User}),
		},
	}
	if err := db.Commit(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	return c.Messages
}

// benched starts an engine that does as little as it can beside what is measured.
func benched(b *testing.B, db store.Store, agent holdfast.Agent) *owner.Engine {
	b.Helper()
	return looptest.Start(b, db, func(c *looptest.Config) {
		c.Lease, c.KeepAlive, c.ArchiveAfter, c.ModelTries = time.Hour, time.Hour, time.Hour, 1
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}, agent).Owner
}

// BenchmarkResume: from an empty-messages POST to a thread of a thousand messages to
// the model's request, beside decoding the same history once. The bar is 2.5 x.
func BenchmarkResume(b *testing.B) {
	for _, kind := range []string{"memory", "file"} {
		b.Run(kind, func(b *testing.B) {
			var db store.Store = memstore.New()
			if kind == "file" {
				embedded, err := filestore.Open(filepath.Join(b.TempDir(), "data"), filestore.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = embedded.Close() })
				db = embedded
			}
			longThread(b, db, 1001)
			asked := make(chan int, 1)
			model := holdfast.ModelFunc(func(_ context.Context,
				req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				asked <- len(req.Messages)
				return func(yield func(holdfast.Delta, error) bool) {
					yield(holdfast.Delta{}, &holdfast.ModelError{Public: "no"})
				}
			})
			e := benched(b, db, holdfast.Agent{Name: "a", Model: model})
			for i := 0; b.Loop(); i++ {
				reply, err := e.Post(b.Context(), looptest.Alice, "", looptest.RunInput("t", fmt.Sprintf("run%d", i)))
				if err != nil {
					b.Fatal(err)
				}
				if n := <-asked; n != 1001 {
					b.Fatalf("the model was shown %d messages", n)
				}
				b.StopTimer()
				for range reply.Whole() { // to its end
				}
				wait.Until(b, "the end of the run", func() bool { return e.Running() == 0 })
				b.StartTimer()
			}
		})
	}
	b.Run("decoding", func(b *testing.B) {
		messages := longThread(b, memstore.New(), 1001)
		for b.Loop() {
			for i := range messages {
				m, err := agui.DecodeMessage(messages[i].Data)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := m.Domain(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// counting counts the commits that are more than appends of tokens.
type counting struct {
	store.Store
	commits []string
}

func (c *counting) Commit(ctx context.Context, commit *store.Commit) error {
	if commit.State != nil {
		c.commits = append(c.commits, fmt.Sprintf("%d messages", len(commit.Messages)))
	}
	return c.Store.Commit(ctx, commit)
}

// TestCommitsPerIteration: an iteration with k parallel tools takes k+1 commits beside
// those of its words: the answer with the intents, and each result, the last one with the
// checkpoint.
func TestCommitsPerIteration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const k = 4
		store := &counting{Store: memstore.New()}
		var turn []holdfast.Delta
		var tools []holdfast.Tool
		for i := range k {
			name := fmt.Sprintf("tool%d", i)
			turn = append(turn, holdfast.Delta{Text: "word "},
				holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: "{}"}})
			tools = append(tools, looptest.Tool(name, holdfast.EffectIdempotent, func(context.Context) (string, error) {
				time.Sleep(time.Duration(i+1) * time.Second)
				return "done", nil
			}))
		}
		turn = append(turn, holdfast.Delta{Finish: holdfast.FinishToolCalls})
		last := []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}}
		e := looptest.Start(t, store, nil,
			holdfast.Agent{Name: "a", Model: looptest.Slowly(turn, turn, turn, last), Tools: tools})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		// The run's beginning is one more, and so is its end, with the last answer.
		if n := len(store.commits); n > 1+3*(k+1)+1 {
			t.Errorf("3 iterations with %d tools and an answer took %d commits: %q", k, n, store.commits)
		}
	})
}

// TestCommitsOfPureTools: an iteration with pure tools that answer quickly is one commit,
// beside those of its words.
func TestCommitsOfPureTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: memstore.New()}
		tool := looptest.Tool("tool", holdfast.EffectPure, func(context.Context) (string, error) {
			time.Sleep(time.Millisecond)
			return "done", nil
		})
		turn := []holdfast.Delta{
			{Text: "word "},
			{Call: &holdfast.CallDelta{Name: "tool", Arguments: "{}"}},
			{Finish: holdfast.FinishToolCalls},
		}
		last := []holdfast.Delta{{Text: "done"}, {Finish: holdfast.FinishStop}}
		e := looptest.Start(t, store, nil,
			holdfast.Agent{Name: "a", Model: looptest.Slowly(turn, turn, turn, last), Tools: []holdfast.Tool{tool}})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		if n := len(store.commits); n != 1+3+1 {
			t.Errorf("3 iterations with a tool and an answer took %d commits: %q", n, store.commits)
		}
	})
}
