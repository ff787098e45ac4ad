package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/threads"
)

// Idempotency keys: no two calls of a server share one, and a call keeps its own through
// crashes, resumes and forks.

// payer is an agent whose model pays for every message of the user, under the call ids
// call_0, call_1 and so on.
func payer(pay holdfast.Tool) holdfast.Agent {
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "paid", Finish: holdfast.FinishStop}, nil)
				return
			}
			id := "call_" + fmt.Sprint(strings.Count(roles(req.Messages), "user")-1)
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{ID: id, Name: "pay", Arguments: "{}"},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{pay}}
}

// noting is the tool pay, which notes the key of each call and then does f.
func noting(j *looptest.Notebook, f func(ctx context.Context) (string, error)) holdfast.Tool {
	return looptest.Tool("pay", holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
		j.Note(holdfast.CallFrom(ctx).Key)
		return f(ctx)
	})
}

// asking is a tool's work that asks a person first.
func asking(ctx context.Context) (string, error) {
	if holdfast.CallFrom(ctx).Answer == nil {
		return "", &holdfast.Interrupt{Message: "pay?"}
	}
	return "paid", nil
}

func quickly(context.Context) (string, error) { return "paid", nil }

// hanging is a tool's work that ends with its process.
func hanging(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }

// keyOf returns the only key that was noted.
func keyOf(t *testing.T, j *looptest.Notebook) string {
	t.Helper()
	keys := j.Take()
	if len(keys) != 1 {
		t.Fatalf("the tool was called for %q, want one call", keys)
	}
	return keys[0]
}

// asked returns the open questions of a thread.
func asked(info *threads.Info) (open []agui.Interrupt) {
	for _, question := range info.Interrupts {
		open = append(open, agui.Interrupt{ID: question.ID})
	}
	return open
}

// TestKeysAreOfOneThread: the ids of thread, run and call are the same each time, and the
// threads are not.
func TestKeysAreOfOneThread(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), nil, payer(noting(j, quickly)))
	seen := map[string]holdfast.Principal{}
	for _, who := range []holdfast.Principal{
		looptest.Alice, looptest.Alice, {Tenant: looptest.Alice.Tenant, User: "bob"}, {Tenant: "evil", User: "alice"},
		{Tenant: "evil", User: "mallory"},
	} {
		reply, err := e.Owner.Post(t.Context(), who, "",
			looptest.RunInput("pay", "r1", looptest.UserSays("m", "charge 1")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		key := keyOf(t, j)
		if before, double := seen[key]; double {
			t.Errorf("%v and %v have the key %s", before, who, key)
		}
		seen[key] = who
		looptest.Must(e.Keeper.Delete(t.Context(), who, "pay", "", false))(t)
	}
}

// TestKeyAfterATakeover: the call that runs again has the same key.
func TestKeyAfterATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		first := &looptest.Mortal{Store: memstore.New()}
		one := looptest.Start(t, first, nil, payer(noting(j, hanging)))
		looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		synctest.Wait()
		made := keyOf(t, j)
		first.Dead.Store(true)
		two := looptest.Start(t, first.Store, nil, payer(noting(j, quickly)))
		time.Sleep(10 * time.Second)
		if again := keyOf(t, j); again != made {
			t.Errorf("the call was made under %s, and again under %s", made, again)
		}
		looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:paid", "assistant:paid")
	})
}

// TestKeysOfAFork: a call that the fork inherits is the same call, which a service may have
// carried out already. A later call of the fork is another one.
func TestKeysOfAFork(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), nil, payer(noting(j, asking)))
	looptest.OpenOf(t, looptest.Started(t, e, "t"))
	made := keyOf(t, j)
	looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Thread: "f1"}))(t)
	looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "f1", threads.Travel{Thread: "f2"}))(t)
	later := map[string]string{}
	for _, id := range []string{"t", "f1", "f2"} {
		info := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, id))(t)
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers(id, "r2", "true", asked(info)...)))
		if got := keyOf(t, j); got != made {
			t.Errorf("in %s the open call has the key %s, it was made under %s", id, got, made)
		}
		looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput(id, "r3", looptest.UserSays("u2", "again"))))
		key := keyOf(t, j)
		if other, double := later[key]; double {
			t.Errorf("%s and %s have called under the same key", other, id)
		}
		later[key] = id
	}
}

// TestKeysInTheLog: a person who finds a key at a service finds its call.
func TestKeysInTheLog(t *testing.T) {
	var log bytes.Buffer
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}, payer(noting(j, quickly)))
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	if want := `msg="tool call starts" thread=t run=r1 iteration=0 call=call_0 tool=pay key=` + keyOf(t, j) +
		"\n"; !strings.Contains(log.String(), want) {
		t.Errorf("the log does not have %s:\n%s", want, &log)
	}
}

// TestIncarnationOfHooks: middleware can tell a thread from another one of its name, and
// from itself before a rewind, and not from itself before a takeover.
func TestIncarnationOfHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		spy := holdfast.Middleware{
			Name: "test.spy",
			BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
				seen = append(seen, fmt.Sprint(it.Incarnation, " ", it.Rewinds))
				return nil
			},
		}
		agent := func(f func(context.Context) (string, error)) holdfast.Agent {
			a := payer(noting(&looptest.Notebook{}, f))
			a.Middleware = []holdfast.Middleware{spy}
			return a
		}
		last := func() string {
			t.Helper()
			defer func() { seen = nil }()
			if len(slices.Compact(seen)) != 1 {
				t.Fatalf("the run was in %q", seen)
			}
			return seen[0]
		}
		first := &looptest.Mortal{Store: memstore.New()}
		one := looptest.Start(t, first, nil, agent(hanging))
		looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		synctest.Wait()
		begun := last()
		first.Dead.Store(true)
		two := looptest.Start(t, first.Store, nil, agent(quickly))
		time.Sleep(10 * time.Second)
		if got := last(); got != begun || !strings.HasSuffix(got, " 0") || strings.HasPrefix(got, " ") {
			t.Errorf("after a takeover it is %q, it was %q", got, begun)
		}
		looptest.Must(two.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
		looptest.Succeeded(t, looptest.Resumed(t, two, "t", "r2"))
		if got, want := last(), strings.TrimSuffix(begun, "0")+"1"; got != want {
			t.Errorf("after a rewind it is %q, want %q", got, want)
		}
		looptest.Must(two.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Thread: "f", Message: "u1"}))(t)
		looptest.Succeeded(t, looptest.Resumed(t, two, "f", "r3"))
		fork := last()
		looptest.Must(two.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false))(t)
		looptest.Succeeded(t, looptest.Started(t, two, "t"))
		if again := last(); fork == begun || again == begun || again == fork || !strings.HasSuffix(fork+again, " 0") {
			t.Errorf("the thread is %q, its fork %q, and after a DELETE %q", begun, fork, again)
		}
	})
}
