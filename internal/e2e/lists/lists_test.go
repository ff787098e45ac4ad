// Package lists measures how long the first page of a list takes beside very many threads: of open
// questions, of a user's threads and of a tenant's. make lists does it on both stores.
package lists

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/indexing"
	"github.com/holdfast-agents/holdfast/internal/inspector"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
)

// pages is how often each page is read, pageSize how many threads it has, and bar how long it may take.
const (
	pages    = 300
	pageSize = 50
	bar      = 20 * time.Millisecond
)

// TestLists writes the threads through the contract of the stores. Half of them are Alice's, of which a
// tenth asks; the others are of a thousand users and of a hundred tenants. They were last active a minute
// apart.
func TestLists(t *testing.T) {
	threads, _ := strconv.Atoi(os.Getenv("HOLDFAST_LISTS"))
	if threads == 0 {
		t.Skip("make lists measures it")
	}
	for name, open := range map[string]func() (store.Store, error){
		"embedded": func() (store.Store, error) {
			return filestore.Open(filepath.Join(t.TempDir(), "data"), filestore.Options{})
		},
		"Redis": func() (store.Store, error) {
			return redisstore.Open(t.Context(), redistest.Start(t).URL(), redisstore.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			measure(t, name, db, threads)
		})
	}
}

// asker asks a person whose message says so.
func asker() holdfast.Agent {
	ask := looptest.Tool("ask", holdfast.EffectIdempotent, func(context.Context) (string, error) {
		return "", &holdfast.Interrupt{Reason: "input_required", Message: "Sure?"}
	})
	return holdfast.Agent{Name: "asker", Model: looptest.TwoCalls("ask", "ask"), Tools: []holdfast.Tool{ask}}
}

// measure prints a row for each list.
func measure(t *testing.T, name string, db store.Store, threads int) {
	// All of them are written with the index, so nothing has to be entered.
	looptest.Must(db.Progress(t.Context(), indexing.Completed()))(t)
	newest := func(c *looptest.Config) { c.DataFormat = thread.Format }
	e := looptest.Start(t, db, newest, asker(),
		holdfast.Agent{Name: "calm", Model: looptest.Say(holdfast.Delta{Text: "fine"})})
	states := map[string]*thread.State{}
	for _, agent := range []string{"asker", "calm"} {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, agent,
			looptest.RunInput(agent, "r", looptest.UserSays("u", "hello")))
		looptest.Collect(t, reply, err)
		states[agent] = looptest.Must(thread.DecodeState(looptest.Must(db.Head(t.Context(),
			looptest.KeyOf(agent)))(t).State))(t)
	}
	write(t, db, states, threads)
	in := inspector.New(inspector.Config{Store: db, Indexed: func() bool { return true }})
	lists := []struct {
		name string
		read func() (int, error)
	}{
		{"questions of a user", func() (int, error) {
			list, err := in.Questions(t.Context(), looptest.Alice, time.Time{}, pageSize)
			if err != nil {
				return 0, err
			}
			return len(list.Questions) / 2, nil
		}},
		{"threads of a user", func() (int, error) {
			list, err := e.Keeper.Threads(t.Context(), looptest.Alice, time.Time{}, pageSize)
			return len(list), err
		}},
		{"threads of a tenant", func() (int, error) {
			list, err := upkeep.Everybody{Keeper: e.Keeper}.Threads(t.Context(), looptest.Alice.Tenant, time.Time{},
				pageSize)
			return len(list), err
		}},
		{"a tenant's that wait", func() (int, error) {
			list, err := upkeep.Everybody{Keeper: e.Keeper}.ThreadsIn(t.Context(), looptest.Alice.Tenant,
				"interrupted", time.Time{}, pageSize)
			if err != nil {
				return 0, err
			}
			return len(list.Threads), nil
		}},
	}
	wait.For(t, func() error {
		if at := e.Keeper.Index(); !at.Complete {
			return fmt.Errorf("the index is not complete: %+v", at)
		}
		return nil
	})
	for _, list := range lists {
		var took []time.Duration
		for range pages {
			began := time.Now()
			n, err := list.read()
			if took = append(took, time.Since(began)); n != pageSize || err != nil {
				t.Fatalf("%s: %d, %v", list.name, n, err)
			}
		}
		slices.Sort(took)
		p99 := took[len(took)*99/100]
		fmt.Printf("| %s | %s | %d | %.1f ms | %.1f ms |\n", list.name, name, threads, ms(took[len(took)/2]), ms(p99))
		if p99 > bar {
			t.Errorf("%s: p99 is %v, at most %v is allowed", list.name, p99, bar)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// write writes the threads.
func write(t *testing.T, db store.Store, states map[string]*thread.State, threads int) {
	t.Helper()
	newest := time.Now().Add(-time.Hour)
	const atOnce = 64
	routine.Each(threads, atOnce, func(i int) {
		tenant, user, agent := looptest.Alice.Tenant, looptest.Alice.User, "calm"
		switch {
		case i%20 == 0:
			agent = "asker"
		case i%4 == 1:
			user = fmt.Sprint("user", i%1000)
		case i%4 == 3:
			tenant = fmt.Sprint("tenant", i%100)
		}
		c := &store.Commit{
			Key:       store.ThreadKey{Tenant: tenant, Thread: fmt.Sprint("t", i)},
			ID:        fmt.Sprint("c", i),
			Expect:    store.Position{Next: 1},
			User:      user,
			Fence:     store.Fence{Epoch: 1, Nonce: "f"},
			UpdatedAt: newest.Add(-time.Duration(i) * time.Minute),
		}
		thread.Save(c, states[agent])
		if err := db.Commit(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
}
