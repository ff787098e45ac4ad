package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// tally is a state of the tests.
type tally struct {
	Iterations int    `json:"iterations"`
	Secret     string `json:"secret,omitempty"`
}

// stateful is a middleware that counts iterations in a state.
func stateful(spec state.Spec[tally]) (holdfast.Middleware, *state.Key[tally]) {
	key := state.Register(spec)
	return holdfast.Middleware{
		Name: "test.stateful", States: []holdfast.State{key},
		AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
			if _, err := key.Update(ctx, func(s tally) tally { s.Iterations++; return s }); err != nil {
				panic(err)
			}
		},
	}, key
}

// counted reads the state out of a thread's newest checkpoint.
func counted(t *testing.T, e *looptest.Engine, id, name string) string {
	t.Helper()
	list := looptest.Checkpoints(t, e, id)
	cp := looptest.Must(e.Keeper.Checkpoint(t.Context(), looptest.Alice, id, list[len(list)-1].ID))(t)
	var form struct {
		States map[string]json.RawMessage `json:"states"`
	}
	if err := json.Unmarshal(cp.MiddlewareState, &form); err != nil {
		t.Fatalf("%s: %v", cp.MiddlewareState, err)
	}
	return string(form.States[name])
}

// TestScopes: a state of the thread keeps counting; a state of a run starts over with new
// messages, and not with a resume.
func TestScopes(t *testing.T) {
	forThread, _ := stateful(state.Spec[tally]{Name: "test.thread"})
	forRun, _ := stateful(state.Spec[tally]{Name: "test.run", Scope: state.ScopeRun})
	fails := 1
	flaky := holdfast.Middleware{
		Name: "test.flaky",
		BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
			if fails--; it.Number == 1 && fails <= 0 && it.Granted > 0 {
				return errors.New("down")
			}
			return nil
		},
	}
	store := memstore.New()
	e := looptest.Start(t, store, nil, looptest.Pinger(1, forThread, forRun, flaky))
	want := func(when, thread, run string) {
		t.Helper()
		if a, b := counted(t, e, "t", "test.thread"), counted(t, e, "t", "test.run"); a != thread || b != run {
			t.Errorf("%s: thread %s, run %s; want %s, %s", when, a, b, thread, run)
		}
	}
	looptest.Failed(t, looptest.Started(t, e, "t"), codes.MiddlewareFailed)
	want("stopped", `{"iterations":1}`, `{"iterations":1}`)
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
	want("resumed", `{"iterations":2}`, `{"iterations":2}`)
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", looptest.UserSays("u2", "again"))))
	want("a new message", `{"iterations":3}`, `{"iterations":1}`)
	sound(t, store, "t")
}

// TestUnlistedStateEndsTheRun: a middleware forgot to list its state. The run says so, and
// stores nothing of it; as soon as it is listed, the same thread goes on.
func TestUnlistedStateEndsTheRun(t *testing.T) {
	key := state.Register(state.Spec[tally]{Name: "test.forgotten", Redact: func(tally) any { return "hidden" }})
	forgetful := holdfast.Middleware{
		Name: "test.forgetful",
		BeforeIteration: func(ctx context.Context, _ *holdfast.Iteration) error {
			_, err := key.Update(ctx, func(tally) tally { return tally{Secret: "hunter2"} })
			return err
		},
	}
	db := memstore.New()
	e := looptest.Start(t, db, nil, looptest.Pinger(1, forgetful))
	looptest.Failed(t, looptest.Started(t, e, "t"), codes.StateNotListed)
	list := looptest.Checkpoints(t, e, "t")
	if cp := looptest.Must(e.Keeper.Checkpoint(t.Context(), looptest.Alice, "t",
		list[len(list)-1].ID))(t); cp.MiddlewareState != nil {
		t.Errorf("there is state: %s", cp.MiddlewareState)
	}
	looptest.Must(0, e.Shutdown(t.Context()))(t)
	forgetful.States = []holdfast.State{key}
	e = looptest.Start(t, db, nil, looptest.Pinger(1, forgetful))
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
	if got := counted(t, e, "t", "test.forgotten"); got != `"hidden"` {
		t.Errorf("the listed state is shown as %s", got)
	}
	sound(t, db, "t")
}

// TestStatesTravel: a rewind brings back what the states were, a fork begins with it,
// and neither changes the other.
func TestStatesTravel(t *testing.T) {
	m, _ := stateful(state.Spec[tally]{Name: "test.count"})
	store := memstore.New()
	e := looptest.Start(t, store, nil, looptest.Pinger(3, m))
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	var at string
	for _, cp := range looptest.Checkpoints(t, e, "t") {
		if cp.Iteration == 1 && cp.Metadata.Source == "loop" {
			at = cp.ID
		}
	}
	fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: at, Thread: "f"}))(t)
	if got := counted(t, e, fork.Thread.ID, "test.count"); got != `{"iterations":1}` {
		t.Errorf("the fork begins with %s", got)
	}
	sound(t, store, "f")
	looptest.Succeeded(t, looptest.Resumed(t, e, "f", "f1"))
	if a, b := counted(t, e, "f", "test.count"), counted(t, e, "t", "test.count"); a != `{"iterations":4}` || b != a {
		t.Errorf("the fork has %s, the thread %s", a, b)
	}
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: at}))(t)
	if got := counted(t, e, "t", "test.count"); got != `{"iterations":1}` {
		t.Errorf("back there it is %s", got)
	}
	looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
	sound(t, store, "t")
	looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
	if got := counted(t, e, "t", "test.count"); got != `{"iterations":4}` {
		t.Errorf("gone on from there it is %s", got)
	}
}

// TestIterationsAreClosedOnce: the owner dies after the last result of an iteration is
// committed, and before its checkpoint. The next one closes the iteration: the hooks
// see it, with its results, and it is counted once.
func TestIterationsAreClosedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		m, _ := stateful(state.Spec[tally]{Name: "test.count"})
		saw := make(chan string, 10)
		watch := func(dies bool) holdfast.Middleware {
			return holdfast.Middleware{
				Name: "test.watch",
				AfterIteration: func(ctx context.Context, it *holdfast.Iteration, done *holdfast.IterationResult) {
					if dies {
						time.Sleep(time.Second) // the result is committed
						first.Dead.Store(true)
						return
					}
					for _, c := range done.Calls {
						saw <- fmt.Sprintf("%d %s %s %q %t", it.Number, c.Call.Name, c.Call.Arguments, c.Result.Text,
							c.Result.Failed)
					}
				},
			}
		}
		agent := func(dies bool) holdfast.Agent {
			a := looptest.Pinger(1, m, watch(dies))
			a.Tools = []holdfast.Tool{holdfast.NewTool("ping", "ping", func(context.Context, struct {
				N int `json:"n"`
			}) (string, error) {
				return "", errors.New("no answer")
			}, holdfast.WithEffect(holdfast.EffectOnce))}
			return a
		}
		one := looptest.Start(t, first, nil, agent(true))
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		two := looptest.Start(t, shared, nil, agent(false))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := counted(t, two, "t", "test.count"); got != `{"iterations":2}` {
			t.Errorf("counted %s", got)
		}
		if got := <-saw; got != `0 ping {"n":0} "no answer" true` {
			t.Errorf("the hook saw %s", got)
		}
		info := looptest.Must(two.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
		if info.Iteration != 2 {
			t.Errorf("the thread is at iteration %d", info.Iteration)
		}
		sound(t, shared, "t")
	})
}

// logged is an engine whose log can be read.
func logged(
	t *testing.T, store store.Store, change func(*looptest.Config), agents ...holdfast.Agent,
) (*looptest.Engine, *process.Log) {
	t.Helper()
	out := &process.Log{}
	e := looptest.Start(t, store, func(c *looptest.Config) {
		c.Log = slog.New(slog.NewTextHandler(out,
			&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
		if change != nil {
			change(c)
		}
	}, agents...)
	return e, out
}

// changes notes how schemas have changed.
func changes(j *looptest.Notebook) observe.Observer {
	return observe.Observer{SchemaChanged: func(_ holdfast.Iteration, change *state.SchemaChange) {
		j.Note(fmt.Sprintf("upgrade=%t removed=%v added=%v changed=%v", change.Upgrade, change.Removed, change.Added,
			change.Changed))
	}}
}

// schemaRecords are the CUSTOM records of a stream that say that the schema changed.
func schemaRecords(events []agui.Event) []string {
	var out []string
	for _, ev := range events {
		if c, ok := ev.(agui.Custom); ok && c.Name == "holdfast.schema_changed" {
			out = append(out, string(c.Value))
		}
	}
	return out
}

// TestDeployments: a thread goes from one deployment to the next and back. Every change is
// told once, in log, stream and metrics, and nothing is lost.
func TestDeployments(t *testing.T) {
	kept := func(version int, migrations map[int]state.Migration) holdfast.Middleware {
		m, _ := stateful(state.Spec[tally]{Name: "acme.kept", Version: version, Migrations: migrations})
		return m
	}
	named := func(name string) holdfast.Middleware {
		m, _ := stateful(state.Spec[tally]{Name: name})
		return m
	}
	double := state.Migrate(func(old tally) (tally, error) { old.Iterations *= 10; return old, nil })
	store, turn := memstore.New(), 0
	deploy := func(middleware ...holdfast.Middleware) (events []agui.Event, log string, told []string) {
		turn++
		seen := &looptest.Notebook{}
		e, out := logged(t, store, func(c *looptest.Config) { c.Observer = changes(seen) },
			looptest.Pinger(0, middleware...))
		defer func() { _ = e.Shutdown(t.Context()) }()
		events = looptest.Posted(t, e, looptest.RunInput("t", fmt.Sprintf("r%d", turn),
			looptest.UserSays(fmt.Sprintf("u%d", turn), "go")))
		looptest.Succeeded(t, events)
		return events, out.String(), seen.Take()
	}
	quiet := func(when string, events []agui.Event, log string, told []string) {
		t.Helper()
		if strings.Contains(log, "middleware") || len(told)+len(schemaRecords(events)) > 0 {
			t.Errorf("%s: %s %q %q", when, log, told, schemaRecords(events))
		}
	}
	events, log, told := deploy(kept(1, nil), named("acme.gone"))
	quiet("a new thread", events, log, told)
	events, log, told = deploy(kept(1, nil), named("acme.gone"))
	quiet("unchanged", events, log, told)

	events, log, told = deploy(kept(2, map[int]state.Migration{1: double}), named("acme.fresh"))
	for _, want := range []string{
		`level=WARN msg="the checkpoint has the state of middleware that is not here any more; it is kept, and ` +
			`nobody reads it (expected after a middleware was removed)" thread=t run=r3 ` +
			`iteration=0 count=1 states=gone`,
		`level=INFO msg="there is middleware that the checkpoint does not know; its state begins with the initial ` +
			`value" thread=t run=r3 iteration=0 count=1 states=fresh`,
		`level=INFO msg="a state has another version than in the checkpoint" thread=t run=r3 ` +
			`iteration=0 state=kept from=1 to=2`,
	} {
		if strings.Count(log, want) != 1 {
			t.Errorf("the log has not once %s:\n%s", want, log)
		}
	}
	if want := "upgrade=false removed=[acme.gone] added=[acme.fresh] changed=[{acme.kept 1 2}]"; !slices.Equal(told,
		[]string{want}) {
		t.Errorf("the observer was told %q", told)
	}
	records := schemaRecords(events)
	if len(records) != 1 || !strings.Contains(records[0],
		`"oldSignature":"acme.gone,acme.kept","newSignature":"acme.fresh,acme.kept","removed":["acme.gone"],`+
			`"added":["acme.fresh"],"changed":[{"name":"acme.kept","from":1,"to":2}],"timestamp":"`) ||
		!strings.Contains(records[0], `"isUpgrade":false`) {
		t.Errorf("the stream says %q", records)
	}
	e, _ := logged(t, store, nil, looptest.Pinger(0, kept(2, nil), named("acme.fresh")))
	for name, want := range map[string]string{"acme.kept": `{"iterations":21}`, "acme.gone": `{"iterations":2}`,
		"acme.fresh": `{"iterations":1}`} {
		if got := counted(t, e, "t", name); got != want {
			t.Errorf("after the second deployment %s is %s, want %s", name, got, want)
		}
	}
	_ = e.Shutdown(t.Context())

	// Back: the state that was migrated is newer than this version knows.
	e, _ = logged(t, store, nil, looptest.Pinger(0, kept(1, nil), named("acme.gone")))
	before := stateOfHead(t, store)
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r4", looptest.UserSays("u4", "go"))); looptest.Code(err) != codes.StateTooNew ||
		!strings.Contains(err.Error(), `"acme.kept" has version 2`) ||
		!strings.Contains(err.Error(), "up to version 1") {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(before, stateOfHead(t, store)) {
		t.Error("something was written")
	}
	if len(looptest.Texts(t, e, "t")) != 6 {
		t.Error("the thread cannot be read any more")
	}
	_ = e.Shutdown(t.Context())
	e, _ = logged(t, store, func(c *looptest.Config) { c.ResetNewerStates = true },
		looptest.Pinger(0, kept(1, nil), named("acme.gone")))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r5", looptest.UserSays("u5", "go"))))
	for name, want := range map[string]string{"acme.kept": `{"iterations":1}`, "acme.gone": `{"iterations":3}`,
		"acme.fresh": `{"iterations":1}`} {
		if got := counted(t, e, "t", name); got != want {
			t.Errorf("after the rollback %s is %s, want %s", name, got, want)
		}
	}
	_ = e.Shutdown(t.Context())
	turn = 5
	deploy(kept(2, nil), named("acme.fresh"))
	e, _ = logged(t, store, nil, looptest.Pinger(0, kept(2, nil), named("acme.fresh")))
	if got := counted(t, e, "t", "acme.kept"); got != `{"iterations":22}` {
		t.Errorf("known again, the state that was set aside is %s", got)
	}
	sound(t, store, "t")
}

func stateOfHead(t *testing.T, db store.Store) []byte {
	t.Helper()
	return looptest.Must(db.Head(t.Context(), store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}))(t).State
}

// TestSchemaModes: fail refuses before anything is written, silent says nothing, and a
// thread that is older than schemas is upgraded in every mode.
func TestSchemaModes(t *testing.T) {
	one, _ := stateful(state.Spec[tally]{Name: "acme.one"})
	two, _ := stateful(state.Spec[tally]{Name: "acme.two"})
	modes := func(mode loop.SchemaMode) func(*looptest.Config) {
		return func(c *looptest.Config) { c.SchemaMode = mode }
	}
	t.Run("fail", func(t *testing.T) {
		store := memstore.New()
		e := looptest.Start(t, store, nil, looptest.Pinger(0, one))
		looptest.Succeeded(t, looptest.Started(t, e, "t"))
		_ = e.Shutdown(t.Context())
		e = looptest.Start(t, store, modes(loop.SchemaFail), looptest.Pinger(0, two))
		before := stateOfHead(t, store)
		_, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r2", looptest.UserSays("u2", "go")))
		if looptest.Code(err) != codes.SchemaChanged ||
			!strings.Contains(err.Error(), "removed: one; added: two; other version: none") {
			t.Errorf("got %v", err)
		}
		// A list without names is a list.
		if got := string(thread.MustJSON(holdfast.AsError(err).Details)); got !=
			`{"added":["acme.two"],"changed":[],"removed":["acme.one"]}` {
			t.Errorf("the details are %s", got)
		}
		if !bytes.Equal(before, stateOfHead(t, store)) {
			t.Error("something was written")
		}
	})
	t.Run("silent", func(t *testing.T) {
		store := memstore.New()
		e := looptest.Start(t, store, nil, looptest.Pinger(0, one))
		looptest.Succeeded(t, looptest.Started(t, e, "t"))
		_ = e.Shutdown(t.Context())
		e, log := logged(t, store, modes(loop.SchemaSilent), looptest.Pinger(0, two))
		events := looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "go")))
		looptest.Succeeded(t, events)
		if strings.Contains(log.String(), "middleware") || len(schemaRecords(events)) > 0 {
			t.Errorf("it said %s %q", log, schemaRecords(events))
		}
		if got := counted(t, e, "t", "acme.one"); got != `{"iterations":1}` {
			t.Errorf("the state that nobody reads is %s", got)
		}
	})
	for _, mode := range []loop.SchemaMode{loop.SchemaWarn, loop.SchemaFail, loop.SchemaSilent} {
		t.Run("older than schemas, "+string(mode), func(t *testing.T) {
			store := memstore.New()
			e := looptest.Start(t, store, nil, looptest.Pinger(0))
			looptest.Succeeded(t, looptest.Started(t, e, "t"))
			_ = e.Shutdown(t.Context())
			e, log := logged(t, store, modes(mode), looptest.Pinger(0, one))
			events := looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "go")))
			looptest.Succeeded(t, events)
			said := strings.Count(log.String(),
				`level=INFO msg="resuming from a checkpoint that is older than schema versioning; it is upgraded to `+
					`the current schema" thread=t run=r2`)
			if want := map[bool]int{true: 0, false: 1}[mode == loop.SchemaSilent]; said != want ||
				len(schemaRecords(events)) != want {
				t.Errorf("said %d times, %d records\n%s", said, len(schemaRecords(events)), log)
			}
			if want := `"isUpgrade":true,"oldSignature":""`; mode != loop.SchemaSilent &&
				!strings.Contains(schemaRecords(events)[0], want) {
				t.Errorf("the record is %s", schemaRecords(events)[0])
			}
			log.Take()
			looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", looptest.UserSays("u3", "go"))))
			if strings.Contains(log.String(), "schema") {
				t.Errorf("it is said again: %s", log)
			}
		})
	}
}

// TestTakeoverSaysWhatChanged: a process of another deployment takes a run over. It
// says what has changed, or, in mode fail, ends the run without starting anything.
func TestTakeoverSaysWhatChanged(t *testing.T) {
	for _, mode := range []loop.SchemaMode{loop.SchemaWarn, loop.SchemaFail} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				first := &looptest.Mortal{Store: shared}
				one, _ := stateful(state.Spec[tally]{Name: "acme.one"})
				two, _ := stateful(state.Spec[tally]{Name: "acme.two"})
				hangs := looptest.Pinger(1, one)
				inner := hangs.Model
				hangs.Model = holdfast.ModelFunc(func(ctx context.Context,
					req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					if req.Iteration == 1 {
						<-ctx.Done()
					}
					return inner.Stream(ctx, req)
				})
				a := looptest.Start(t, first, nil, hangs)
				if _, err := a.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // the checkpoint is committed
				synctest.Wait()
				first.Dead.Store(true)
				b, log := logged(t, shared, func(c *looptest.Config) { c.SchemaMode = mode }, looptest.Pinger(1, two))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				reply, err := b.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
				events := looptest.Collect(t, reply, err)
				if mode == loop.SchemaFail {
					looptest.Failed(t, events, codes.SchemaChanged)
					return
				}
				looptest.Succeeded(t, events)
				if len(schemaRecords(events)) != 1 || !strings.Contains(log.String(), "states=one") {
					t.Errorf("%q\n%s", schemaRecords(events), log)
				}
				for name, want := range map[string]string{"acme.one": `{"iterations":1}`,
					"acme.two": `{"iterations":1}`} {
					if got := counted(t, b, "t", name); got != want {
						t.Errorf("%s is %s, want %s", name, got, want)
					}
				}
			})
		})
	}
}

// TestAgentsKeepTheirStates: two agents take turns on a thread. Nothing is said, and
// each finds its own states.
func TestAgentsKeepTheirStates(t *testing.T) {
	one, _ := stateful(state.Spec[tally]{Name: "acme.one", Redact: func(tally) any { return "hidden" }})
	two, _ := stateful(state.Spec[tally]{Name: "acme.two"})
	a, b := looptest.Pinger(0, one), looptest.Pinger(0, two)
	b.Name = "b"
	db := memstore.New()
	e, log := logged(t, db, nil, a, b)
	for i, agent := range []string{"a", "b", "a", "b"} {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, agent,
			looptest.RunInput("t", fmt.Sprintf("r%d", i), looptest.UserSays(fmt.Sprintf("u%d", i), "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
	}
	if strings.Contains(log.String(), "middleware") {
		t.Errorf("it said %s", log)
	}
	// Here the other agent's state is not known; that it must not be shown is.
	if one, two := counted(t, e, "t", "acme.one"), counted(t, e, "t", "acme.two"); one != `"[redacted]"` ||
		two != `{"iterations":2}` {
		t.Errorf("one %s, two %s", one, two)
	}
	if st := string(stateOfHead(t, db)); !strings.Contains(st, `"acme.one":{"iterations":2}`) {
		t.Errorf("the head has %s", st)
	}
	in, err := audit.Inspect(t.Context(), db, store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}, "")
	if err != nil || !strings.Contains(string(in.Middleware), `"acme.one":"[redacted]"`) ||
		!strings.Contains(string(in.Middleware), `"acme.two":{"iterations":2}`) {
		t.Errorf("inspected it is %s, %v", in.Middleware, err)
	}
}

// TestSchemaBytes: once a thread has its schema, a checkpoint spends at most 16 bytes
// on saying which.
func TestSchemaBytes(t *testing.T) {
	m, _ := stateful(state.Spec[tally]{Name: "acme.count"})
	db := memstore.New()
	e := looptest.Start(t, db, nil, looptest.Pinger(3, m))
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	key := store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}
	blobs := looptest.Must(db.Values(t.Context(), key, store.KindBlob, "", 0))(t)
	if len(blobs) != 1 {
		t.Errorf("the schema is stored %d times", len(blobs))
	}
	for _, v := range looptest.Must(db.Values(t.Context(), key, store.KindCheckpoint, "", 0))(t) {
		var cp struct {
			State map[string]json.RawMessage `json:"state"`
		}
		if err := json.Unmarshal(v.Data, &cp); err != nil {
			t.Fatal(err)
		}
		meta := 0
		for _, name := range []string{"sig", "stateVersions", "redacted"} {
			if raw, ok := cp.State[name]; ok {
				meta += len(`,"":`) + len(name) + len(raw)
			}
		}
		if meta == 0 || meta > 16 {
			t.Errorf("checkpoint %s has %d bytes of schema: %s", v.ID, meta, v.Data)
		}
	}
}

// TestMigrationsNeeded: before a deployment, what stored threads need is known.
func TestMigrationsNeeded(t *testing.T) {
	version := func(v int, migrations map[int]state.Migration) holdfast.Agent {
		m, _ := stateful(state.Spec[tally]{Name: "acme.count", Version: v, Migrations: migrations})
		return looptest.Pinger(0, m)
	}
	same := state.Migrate(func(old tally) (tally, error) { return old, nil })
	db := memstore.New()
	e := looptest.Start(t, db, nil, version(2, nil))
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	for name, c := range map[string]struct {
		agent holdfast.Agent
		want  string
	}{
		"the same": {version(2, nil), "[]"},
		"one step": {version(3, map[int]state.Migration{2: same}), "[{{acme.count 2 3} 0}]"},
		"a hole":   {version(4, map[int]state.Migration{2: same}), "[{{acme.count 2 4} 3}]"},
		"too new":  {version(1, nil), "[{{acme.count 2 1} 0}]"},
	} {
		schemas := looptest.Must(thread.Schemas([]holdfast.Agent{c.agent}))(t)
		got := looptest.Must(audit.Migrations(t.Context(), db,
			store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}, schemas))(t)
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
}

// TestTwoStatesOfOneName are refused when the engine is made, with both types.
func TestTwoStatesOfOneName(t *testing.T) {
	one, _ := stateful(state.Spec[tally]{Name: "acme.same"})
	two := holdfast.Middleware{
		Name:   "test.other",
		States: []holdfast.State{state.Register(state.Spec[journalState]{Name: "acme.same"})},
	}
	_, err := owner.New(loop.Config{Agents: []holdfast.Agent{looptest.Pinger(0, one, two)},
		NewID: func(string) string { return "x" }})
	if err == nil || !strings.Contains(err.Error(), "loop_test.tally") ||
		!strings.Contains(err.Error(), "loop_test.journalState") || !strings.Contains(err.Error(), `agent "a"`) {
		t.Errorf("got %v", err)
	}
}

type journalState struct{ Lines []string }
