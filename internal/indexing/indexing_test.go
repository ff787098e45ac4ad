package indexing_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/indexing"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// unlisting is a store as a process of the version without an index uses it.
type unlisting struct{ *memstore.Store }

func (u unlisting) Commit(ctx context.Context, c *store.Commit) error {
	old := *c
	old.Listings = nil
	return u.Store.Commit(ctx, &old)
}

func (u unlisting) AgreeFormat(ctx context.Context, process string, terms store.FormatTerms) (store.Formats, error) {
	if terms.Reads = thread.FormatIndexed - 1; terms.Wants > terms.Reads {
		terms.Wants = terms.Reads
	}
	return u.Store.AgreeFormat(ctx, process, terms)
}

// asking is an agent that asks a person.
func asking() holdfast.Agent {
	ask := looptest.Tool("ask", holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
		if holdfast.CallFrom(ctx).Answer == nil {
			return "", &holdfast.Interrupt{Reason: "input_required", Message: "Sure?"}
		}
		return "yes", nil
	})
	return holdfast.Agent{Name: "a", Model: looptest.TwoCalls("ask", "ask"), Tools: []holdfast.Tool{ask}}
}

// ask has threads wait for Alice.
func ask(t *testing.T, e *looptest.Engine, ids ...string) {
	t.Helper()
	for _, id := range ids {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput(id, "r", looptest.UserSays("u", "hello")))
		looptest.Collect(t, reply, err)
	}
}

// asks returns how many threads the index says wait for Alice.
func asks(t *testing.T, s store.Store) int {
	t.Helper()
	q := store.Query{
		List:  store.List{Name: store.ListAsking, Tenant: looptest.Alice.Tenant, Group: looptest.Alice.User},
		Limit: 10_000,
	}
	return len(looptest.Must(s.Find(t.Context(), q))(t))
}

// newest has a process ask for the newest data format.
func newest(c *looptest.Config) { c.DataFormat = thread.Format }

// TestIndexing: threads of a version without an index are entered once no process of that version can
// write any more, and not before; a process of that version is refused from then on.
func TestIndexing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		old := looptest.Start(t, unlisting{shared}, nil, asking())
		ask(t, old, "a", "b")
		e := looptest.Start(t, shared, newest, asking())
		ask(t, e, "c")
		time.Sleep(time.Minute)
		if got := e.Keeper.Index(); asks(t, shared) != 1 || got.Complete || got.Pass != 0 {
			t.Fatalf("while the other version writes, %d threads are listed: %+v", asks(t, shared), got)
		}
		ask(t, old, "d")
		// The other version is back in the place of this one, before this one returns.
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask(t, old, "e")
		etag := func() string { return looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "a"))(t).ETag }
		before := etag()
		e = looptest.Start(t, shared, newest, asking())
		if err := old.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		got := e.Keeper.Index()
		if asks(t, shared) != 5 || !got.Complete || got.Entered != 4 || got.Pass != 2 || got.Threads != 5 {
			t.Errorf("%d threads are listed: %+v", asks(t, shared), got)
		}
		if etag() != before {
			t.Errorf("the ETag of a thread was %s before it was entered, and is %s", before, etag())
		}
		err := shared.Announce(t.Context(), "again", time.Hour)
		if err == nil {
			_, err = unlisting{shared}.AgreeFormat(t.Context(), "again", store.FormatTerms{})
		}
		if !errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("the other version starts: %v", err)
		}
	})
}

// halting is a store that lets a walk come past some pages only.
type halting struct {
	*memstore.Store
	pages atomic.Int64
}

func (h *halting) Walk(ctx context.Context, after string, limit int) ([]store.Head, string, error) {
	if h.pages.Add(-1) < 0 {
		return nil, "", errors.New("away")
	}
	return h.Store.Walk(ctx, after, limit/25)
}

// TestIndexingGoesOn: another process goes on where the walk was left, one at a time does, and the walk
// takes its time.
func TestIndexingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		old := looptest.Start(t, unlisting{shared}, nil, asking())
		var ids []string
		for i := range 100 {
			ids = append(ids, fmt.Sprint(i))
		}
		ask(t, old, ids...)
		if err := old.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := &halting{Store: shared}
		first.pages.Store(12)
		a := looptest.Start(t, first, newest, asking())
		time.Sleep(5 * time.Second)
		left := a.Keeper.Index()
		if n := asks(t, shared); n != 48 || left.Threads != 48 {
			t.Fatalf("%d are listed: %+v", n, left)
		}
		second := &halting{Store: shared}
		second.pages.Store(1000)
		b := looptest.Start(t, second, newest, asking())
		time.Sleep(20 * time.Second)
		time.Sleep(time.Minute)
		if got := b.Keeper.Index(); asks(t, shared) != 100 || !got.Complete || got.Entered > 100 {
			t.Errorf("%d are listed: %+v", asks(t, shared), got)
		}
		if pages := 1000 - second.pages.Load(); pages > 2+2*25 {
			t.Errorf("the second one has looked at %d pages", pages)
		}
	})
}

// TestIndexingOfOtherLists: what was completed before there were all of today's lists is walked again, and
// what a later version has begun is left to it.
func TestIndexingOfOtherLists(t *testing.T) {
	for name, c := range map[string]struct {
		progress string
		listed   int
		complete bool
	}{
		"completed by an earlier version": {`{"complete":true,"pass":2,"threads":9}`, 2, true},
		"begun by an earlier version":     {`{"pass":1,"threads":9,"after":"z"}`, 2, true},
		"completed":                       {string(indexing.Completed()), 0, true},
		"completed by a later version":    {`{"complete":true,"lists":9}`, 0, true},
		"begun by a later version":        {`{"pass":1,"lists":9}`, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				old := looptest.Start(t, unlisting{shared}, nil, asking())
				ask(t, old, "a", "b")
				if err := old.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				looptest.Must(shared.Progress(t.Context(), []byte(c.progress)))(t)
				e := looptest.Start(t, shared, newest, asking())
				time.Sleep(time.Minute)
				if n, got := asks(t, shared), e.Keeper.Index(); n != c.listed || got.Complete != c.complete {
					t.Errorf("%d threads are listed: %+v", n, got)
				}
			})
		})
	}
}
