package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/indexing"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// reads is a store that counts what is read of it.
type reads struct {
	*memstore.Store
	walks, lists, heads atomic.Int64
}

func (s *reads) Walk(ctx context.Context, after string, limit int) ([]store.Head, string, error) {
	s.walks.Add(1)
	return s.Store.Walk(ctx, after, limit)
}

func (s *reads) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	s.lists.Add(1)
	return s.Store.Find(ctx, q)
}

func (s *reads) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	s.heads.Add(1)
	return s.Store.Head(ctx, key)
}

// standing has agents after each of whose first runs a thread has the status that the agent is named for.
func standing() []holdfast.Agent {
	sleep := looptest.Tool("f", holdfast.EffectPure, func(ctx context.Context) (string, error) {
		select {
		case <-ctx.Done():
		case <-time.After(24 * time.Hour):
		}
		return "", ctx.Err()
	})
	ask := looptest.Tool("f", holdfast.EffectPure, func(context.Context) (string, error) {
		return "", &holdfast.Interrupt{Reason: "input_required"}
	})
	fails := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) { yield(holdfast.Delta{}, errors.New("no")) }
	})
	calls := func() holdfast.Model { return looptest.TwoCalls("f", "f") }
	return []holdfast.Agent{
		{Name: "idle", Model: looptest.Say(holdfast.Delta{Text: "fine"})},
		{Name: "running", Model: calls(), Tools: []holdfast.Tool{sleep}},
		{Name: "interrupted", Model: calls(), Tools: []holdfast.Tool{ask}},
		{Name: "stopped", Model: fails},
	}
}

// statusStore starts an engine whose index is complete, or is not.
func statusStore(t *testing.T, complete bool) (*looptest.Engine, *reads) {
	t.Helper()
	s := &reads{Store: memstore.New()}
	progress := []byte(`{"pass":1,"lists":9}`) // a later version walks
	if complete {
		progress = indexing.Completed()
	}
	looptest.Must(s.Progress(t.Context(), progress))(t)
	e := looptest.Start(t, s, func(c *looptest.Config) { c.DataFormat = thread.Format }, standing()...)
	time.Sleep(time.Minute)
	if e.Keeper.Index().Complete != complete {
		t.Fatalf("the index: %+v", e.Keeper.Index())
	}
	return e, s
}

// stand begins a run of an agent on a new thread, and waits until it has its status.
func stand(t *testing.T, e *looptest.Engine, who holdfast.Principal, id, agent string) {
	t.Helper()
	if _, err := e.Owner.Post(t.Context(), who, agent,
		looptest.RunInput(id, "r", looptest.UserSays("u", "hi"))); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	if got := looptest.Must(e.Keeper.Thread(t.Context(), who, id))(t).Status; string(got) != agent {
		t.Fatalf("%s is %s, not %s", id, got, agent)
	}
}

// paged returns all threads of a list, in pages of limit.
func paged(t *testing.T, limit int, page func(before time.Time, limit int) (*threads.List, error)) (ids []string) {
	t.Helper()
	for before, n := (time.Time{}), 0; n < 100; n++ {
		list := looptest.Must(page(before, limit))(t)
		if len(list.Threads) > limit {
			t.Errorf("%d threads on a page of %d", len(list.Threads), limit)
		}
		for i := range list.Threads {
			ids = append(ids, strings.TrimSpace(list.Threads[i].ID+" "+list.Threads[i].User))
		}
		if before = list.Next; before.IsZero() {
			return ids
		}
	}
	t.Fatal("there is no end")
	return nil
}

// TestThreadsIn: a user's threads, and a tenant's, by what they do, in pages, with the index and without.
func TestThreadsIn(t *testing.T) {
	for _, complete := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := statusStore(t, complete)
			own, every := map[string][]string{}, map[string][]string{}
			users := []holdfast.Principal{looptest.Alice, looptest.Alice, bob,
				{Tenant: "other", User: looptest.Alice.User}}
			for i := range 16 {
				who, agent := users[i%4], standing()[i/4%2*2+i%2].Name
				id := fmt.Sprint(i)
				stand(t, e, who, id, agent)
				if who == looptest.Alice {
					own[agent] = append([]string{id}, own[agent]...)
				}
				if who.Tenant == looptest.Alice.Tenant {
					every[agent] = append([]string{id + " " + who.User}, every[agent]...)
				}
			}
			for _, a := range standing() {
				status := threads.Status(a.Name)
				for _, limit := range []int{1, 2, 100} {
					got := paged(t, limit, func(before time.Time, limit int) (*threads.List, error) {
						return upkeep.Mine{Keeper: e.Keeper}.ThreadsIn(t.Context(), looptest.Alice, status, before,
							limit)
					})
					if want := own[a.Name]; !slices.Equal(got, want) || len(want) == 0 {
						t.Errorf("%s, pages of %d, index %v: %q, want %q", status, limit, complete, got, want)
					}
					got = paged(t, limit, func(before time.Time, limit int) (*threads.List, error) {
						return upkeep.Everybody{Keeper: e.Keeper}.ThreadsIn(t.Context(), looptest.Alice.Tenant, status,
							before, limit)
					})
					if want := every[a.Name]; !slices.Equal(got, want) {
						t.Errorf("of all, %s, pages of %d, index %v: %q, want %q", status, limit, complete, got, want)
					}
				}
			}
		})
	}
}

// TestTenantsCostTheirOwn: what is read for an operator of a tenant does not depend on how many threads
// another tenant has, nor on how many the tenant has beside those of the page.
func TestTenantsCostTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := statusStore(t, true)
		for _, a := range standing() {
			stand(t, e, looptest.Alice, "first "+a.Name, a.Name)
		}
		cost := func() (costs []string) {
			all := upkeep.Everybody{Keeper: e.Keeper}
			for _, page := range []func() error{
				func() error {
					_, err := all.Threads(t.Context(), looptest.Alice.Tenant, time.Time{}, 4)
					return err
				},
				func() error {
					_, err := all.ThreadsIn(t.Context(), looptest.Alice.Tenant, threads.StatusRunning, time.Time{}, 4)
					return err
				},
				func() error {
					_, err := all.ThreadsIn(t.Context(), looptest.Alice.Tenant, threads.StatusStopped, time.Time{}, 4)
					return err
				},
				func() error {
					_, err := upkeep.Mine{Keeper: e.Keeper}.ThreadsIn(t.Context(), looptest.Alice, threads.StatusIdle,
						time.Time{}, 4)
					return err
				},
			} {
				walks, lists, heads := s.walks.Load(), s.lists.Load(), s.heads.Load()
				if err := page(); err != nil {
					t.Fatal(err)
				}
				costs = append(costs, fmt.Sprint(s.walks.Load()-walks, s.lists.Load()-lists, s.heads.Load()-heads))
			}
			return costs
		}
		alone := cost()
		for i := range 100 {
			stand(t, e, holdfast.Principal{Tenant: "other", User: "eve"}, fmt.Sprint("t", i), standing()[i%4].Name)
		}
		if beside := cost(); !slices.Equal(beside, alone) || strings.HasPrefix(alone[0], "0 0 0") {
			t.Errorf("walks, lists and heads: %q, and beside another tenant's threads %q", alone, beside)
		}
	})
}
