package loop_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// readCounter counts what is read of threads.
type readCounter struct {
	store.Store
	reads atomic.Int64
}

func (c *readCounter) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	c.reads.Add(1)
	return c.Store.Head(ctx, key)
}

func (c *readCounter) Records(
	ctx context.Context, key store.ThreadKey, after store.Cursor, limit int,
) ([]store.Record, error) {
	c.reads.Add(1)
	return c.Store.Records(ctx, key, after, limit)
}

func (c *readCounter) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	c.reads.Add(1)
	return c.Store.Value(ctx, key, kind, id)
}

// TestComingBackToALivingRun: clients that come back to a run that lives here, with the
// cursor of any of its records, get exactly the rest without a read of the store, however
// many they are. Others than its user, and cursors that it has not, do not come so far.
func TestComingBackToALivingRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readCounter{Store: memstore.New()}
		words := []holdfast.Delta{
			{Text: "one "},
			{Text: "two "},
			{Text: "three "},
			{Text: "four"},
			{Finish: holdfast.FinishStop},
		}
		e := looptest.Start(t, s, nil, holdfast.Agent{Name: "a", Model: looptest.Slowly(words)})
		first, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		rest := make(chan []string)
		reads := int64(-1)
		watchers := 0
		for frames := range first.Whole() {
			for _, f := range frames {
				ids = append(ids, f.ID)
				if agui.TypeOf(f.Data) != agui.TypeTextMessageContent {
					continue
				}
				if reads < 0 {
					reads = s.reads.Load()
				}
				for _, id := range ids {
					cursor, err := store.ParseCursor(id)
					if err != nil {
						t.Fatal(err)
					}
					reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", cursor, agui.DialectV1)
					if err != nil {
						t.Fatal(err)
					}
					watchers++
					go func() {
						got := []string{id}
						for frames := range reply.Frames {
							for _, f := range frames {
								got = append(got, f.ID)
							}
						}
						rest <- got
					}()
				}
				if n := s.reads.Load(); n != reads {
					t.Errorf("%d reads for those who came back", n-reads)
				}
			}
			if watchers > 0 && watchers < 10 {
				if _, err := e.Owner.Events(t.Context(), holdfast.Principal{User: "mallory"}, "t", "r1",
					cursorOf(t, ids[0]), agui.DialectV1); holdfast.AsError(err).Code != codes.NotFound {
					t.Errorf("another user gets %v", err)
				}
				reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1",
					store.Cursor{Number: 2, Tag: "nobody"}, agui.DialectV1)
				if err != nil || reply == nil {
					t.Fatalf("a foreign cursor gets %v", err)
				}
				reads = s.reads.Load()
			}
		}
		if watchers < 10 {
			t.Fatalf("only %d came back", watchers)
		}
		for range watchers {
			got := <-rest
			for i, id := range got {
				if at := len(ids) - len(got) + i; at < 0 || ids[at] != id {
					t.Fatalf("after %s came %q, want the rest of %q", got[0], got[1:], ids)
				}
			}
		}
		reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", cursorOf(t, ids[len(ids)-1]),
			agui.DialectV1)
		if reply != nil || err != nil {
			t.Errorf("after the last record: %v, %v; want nothing", reply, err)
		}
	})
}

func cursorOf(t *testing.T, id string) store.Cursor {
	t.Helper()
	c, err := store.ParseCursor(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
