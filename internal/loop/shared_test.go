package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// blobless is a store whose blobs cannot be read.
type blobless struct{ *memstore.Store }

func (s blobless) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	if kind == store.KindBlob {
		return nil, errors.New("the store is away")
	}
	return s.Store.Value(ctx, key, kind, id)
}

// TestStateComesFromTheFeed: a watcher that is up to date gets the state that a call leaves
// without the store, which may be away by then.
func TestStateComesFromTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := looptest.Tool("count", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			time.Sleep(time.Second) // the clock of the test: until the watcher waits
			return "counted", holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`{"n":1}`), nil
			})
		})
		agent := holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("count", `{}`), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{count},
		}
		e := looptest.Start(t, blobless{memstore.New()}, nil, agent)
		events := looptest.Started(t, e, "t")
		looptest.Succeeded(t, events)
		if !slices.ContainsFunc(events, func(ev agui.Event) bool {
			s, ok := ev.(agui.StateSnapshot)
			return ok && string(s.Snapshot) == `{"n":1}`
		}) {
			t.Errorf("the state is not shown: %v", events)
		}
	})
}
