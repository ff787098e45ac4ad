package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/sharedstate"
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

// TestModelSeesWhatToolsStore: each request has the shared state as the calls before it have left it, for
// an agent that asks for it, and for no other.
func TestModelSeesWhatToolsStore(t *testing.T) {
	for name, c := range map[string]struct {
		show *sharedstate.Options
		want []string
	}{
		"all":     {&sharedstate.Options{Show: "all"}, []string{`{"by":"page"}`, `{"by":"tool"}`}},
		"nothing": {nil, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			says := looptest.Say(looptest.Calls("sign", `{}`), holdfast.Delta{Text: "done"})
			agent := holdfast.Agent{
				Name:  "a",
				State: c.show,
				Model: holdfast.ModelFunc(func(ctx context.Context,
					req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					seen = append(seen, string(req.State))
					return says.Stream(ctx, req)
				}),
				Tools: []holdfast.Tool{looptest.Tool("sign", holdfast.EffectPure,
					func(ctx context.Context) (string, error) {
						return "signed", holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
							return json.RawMessage(`{"by":"tool"}`), nil
						})
					})},
			}
			e := looptest.Start(t, memstore.New(), nil, agent)
			in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
			in.State = json.RawMessage(`{"by":"page"}`)
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
			if !slices.Equal(seen, c.want) {
				t.Errorf("the model has seen %q, want %q", seen, c.want)
			}
		})
	}
}
