package loop_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// mailStore counts the looks into inboxes, and posts to a thread right after its first
// commit, when its run is not listed yet.
type mailStore struct {
	store.Store
	looks atomic.Int64
	post  *store.InboxItem
}

func (s *mailStore) Inbox(ctx context.Context, key store.ThreadKey) ([]store.InboxItem, error) {
	s.looks.Add(1)
	return s.Store.Inbox(ctx, key)
}

func (s *mailStore) Commit(ctx context.Context, c *store.Commit) error {
	err := s.Store.Commit(ctx, c)
	if item := s.post; err == nil && item != nil {
		s.post = nil
		return s.Post(ctx, c.Key, *item)
	}
	return err
}

// TestNewThreadHasNoMail: the run that makes a thread does not look into its inbox, and the
// next one does, because something may have been left there.
func TestNewThreadHasNoMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &mailStore{Store: memstore.New()}
		e := looptest.Start(t, s, nil, holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "hi"})})
		for i, run := range []string{"r1", "r2"} {
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", run, looptest.UserSays("u"+run, "go")))
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
			synctest.Wait()
			if n := s.looks.Load(); n != int64(i) {
				t.Errorf("after %s there were %d looks into the inbox, want %d", run, n, i)
			}
		}
	})
}

// TestMailBeforeTheRunIsListed: a cancel that comes right after the first commit of a new
// thread is not lost.
func TestMailBeforeTheRunIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, err := json.Marshal(map[string]string{"type": "cancel", "run": "r1"})
		if err != nil {
			t.Fatal(err)
		}
		s := &mailStore{Store: memstore.New(), post: &store.InboxItem{ID: "i1", Data: data}}
		model := looptest.Slowly([]holdfast.Delta{{Text: "one "}, {Text: "two"}, {Finish: holdfast.FinishStop}})
		e := looptest.Start(t, s, nil, holdfast.Agent{Name: "a", Model: model})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		events := looptest.Collect(t, reply, err)
		end, is := events[len(events)-1].(agui.RunFinished)
		if !is || end.Outcome == nil || end.Outcome.Type != agui.OutcomeCancelled || s.looks.Load() == 0 {
			t.Errorf("the run ends with %#v after %d looks into its inbox", events[len(events)-1], s.looks.Load())
		}
	})
}
