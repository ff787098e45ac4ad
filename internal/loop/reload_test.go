package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// edition is an agent of which every part says of which edition it is: its instructions, its
// model, its tool, whose name is the edition's too, and its middleware. A run that saw parts
// of two would say so in its answer. Before it answers, the model waits for gate.
func edition(name, v string, gate <-chan struct{}) holdfast.Agent {
	model := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if last := req.Messages[len(req.Messages)-1]; last.Role == holdfast.RoleUser {
				yield(looptest.Calls("tool-"+v, "{}"), nil)
				return
			}
			if gate != nil {
				select {
				case <-gate:
				case <-ctx.Done():
					yield(holdfast.Delta{}, context.Cause(ctx))
					return
				}
			}
			said := strings.Join(req.Instructions, "+") + " " + v + " "
			for _, t := range req.Tools {
				said += t.Name
			}
			said += " " + req.Messages[len(req.Messages)-1].PlainText()
			yield(holdfast.Delta{Text: said, Finish: holdfast.FinishStop}, nil)
		}
	})
	return holdfast.Agent{
		Name:         name,
		Instructions: "by-" + v,
		Model:        model,
		Tools: []holdfast.Tool{
			looptest.Tool("tool-"+v, holdfast.EffectPure, func(context.Context) (string, error) {
				return "result-" + v,
					nil
			}),
		},
		Middleware: []holdfast.Middleware{{Name: "signs", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				req.Instructions = append(req.Instructions, "signed-"+v)
				return next(ctx, req)
			}
		}}},
	}
}

// said is what an edition answers.
func said(v string) string {
	return fmt.Sprintf("by-%[1]s+signed-%[1]s %[1]s tool-%[1]s result-%[1]s", v)
}

// use replaces the agents of an engine.
func use(t *testing.T, e *looptest.Engine, agents ...holdfast.Agent) (unused <-chan struct{}) {
	t.Helper()
	return e.Owner.Use(looptest.Must(e.Owner.NewAgents(agents, nil, nil))(t))
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestReload: a run ends with the agent that it began with, in all its parts; the next run has
// the new one. The earlier agents are unused exactly when the last run that has them has ended.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		e := looptest.Start(t, memstore.New(), nil, edition("a", "1", gate))
		in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // in its second iteration
		unused := use(t, e, edition("a", "2", nil))
		next, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t2", "r2", looptest.UserSays("u2", "go")))
		looptest.Succeeded(t, looptest.Collect(t, next, err))
		looptest.WantTexts(t, e, "t2", "user:go", "assistant:", "tool:result-2", "assistant:"+said("2"))
		if tools := e.Owner.Tools("a"); len(tools) != 1 || tools[0].Name != "tool-2" {
			t.Errorf("the tools are %+v", tools)
		}
		synctest.Wait()
		if closed(unused) {
			t.Error("agents are unused although a run has one of them")
		}
		close(gate)
		looptest.Succeeded(t, looptest.Collect(t, reply, nil))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:result-1", "assistant:"+said("1"))
		<-unused
		next, err = e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r3", looptest.UserSays("u3", "again")))
		looptest.Succeeded(t, looptest.Collect(t, next, err))
		if texts := looptest.Texts(t, e, "t"); texts[len(texts)-1] != "assistant:"+said("2") {
			t.Errorf("the thread goes on with %q", texts)
		}
		synctest.Wait()
		if !closed(use(t, e, edition("a", "3", nil))) {
			t.Error("agents that no run has are still used")
		}
	})
}

// TestReloadKeepsModels: a try that follows a failure, and a fallback, ask the models that the
// run began with.
func TestReloadKeepsModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []string
		model := func(name string, err error) holdfast.Model {
			return holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					mu.Lock()
					asked = append(asked, name)
					mu.Unlock()
					if err != nil {
						yield(holdfast.Delta{}, err)
						return
					}
					yield(holdfast.Delta{Text: name, Finish: holdfast.FinishStop}, nil)
				}
			})
		}
		broken := &holdfast.ModelError{Retryable: true, RetryAfter: time.Second, Err: errors.New("not now")}
		e := looptest.Start(t, memstore.New(), nil,
			holdfast.Agent{Name: "a", Model: model("first", broken), Fallbacks: []holdfast.Model{model("second", nil)}})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // between two tries
		unused := use(t, e, holdfast.Agent{Name: "a", Model: model("new", nil)})
		looptest.Succeeded(t, looptest.Collect(t, reply, nil))
		<-unused
		mu.Lock()
		defer mu.Unlock()
		if last := asked[len(asked)-1]; asked[0] != "first" || last != "second" || len(asked) < 2 {
			t.Errorf("asked were %q", asked)
		}
	})
}

// TestReloadRemoves: a run whose agent is removed ends as it would have, and can be watched
// until then by the request that began it. A thread that waits for an answer of that agent
// says what to do, loses nothing, and goes on when the agent is back.
func TestReloadRemoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		asks := holdfast.Agent{
			Name:  "asks",
			Model: looptest.Say(looptest.Calls("ask", "{}"), holdfast.Delta{Text: "thanks"}),
			Tools: []holdfast.Tool{
				looptest.Tool("ask", holdfast.EffectPure, func(ctx context.Context) (string, error) {
					if answer := holdfast.CallFrom(ctx).Answer; answer != nil {
						return string(answer.Payload), nil
					}
					return "", &holdfast.Interrupt{Message: "well?"}
				}),
			},
		}
		e := looptest.Start(t, memstore.New(), nil, edition("a", "1", gate), asks)
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "asks",
			looptest.RunInput("waits", "r1", looptest.UserSays("u1", "go")))
		question := questionOf(t, looptest.Collect(t, reply, err))
		in := looptest.RunInput("runs", "r1", looptest.UserSays("u1", "go"))
		if reply, err = e.Owner.Post(t.Context(), looptest.Alice, "a", in); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		unused := use(t, e, edition("b", "2", nil))

		answer := looptest.RunInput("waits", "r2")
		answer.Resume = []agui.ResumeEntry{
			{InterruptID: question, Status: agui.ResumeResolved, Payload: []byte(`"yes"`)},
		}
		before := looptest.Texts(t, e, "waits")
		for _, name := range []string{"", "asks"} {
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, name,
				answer); looptest.Code(err) != codes.AgentNotFound {
				t.Errorf("an answer to the removed agent (%q): %v", name, err)
			}
		}
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			answer); !strings.Contains(holdfast.AsError(err).Hint, "Nothing is lost") {
			t.Errorf("the error does not say what to do: %v", err)
		}
		looptest.WantTexts(t, e, "waits", before...)
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "a",
			looptest.RunInput("other", "r1", looptest.UserSays("u", "go"))); looptest.Code(err) != codes.AgentNotFound {
			t.Errorf("a new run of the removed agent: %v", err)
		}
		for _, name := range []string{"", "a"} {
			again, err := e.Owner.Post(t.Context(), looptest.Alice, name, in)
			if err != nil {
				t.Fatalf("the request that began a run cannot watch it (%q): %v", name, err)
			}
			go func() { // it ends with the run
				for range again.Frames {
				}
			}()
		}
		next, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("new", "r1", looptest.UserSays("u", "go")))
		looptest.Succeeded(t, looptest.Collect(t, next, err))
		looptest.WantTexts(t, e, "new", "user:go", "assistant:", "tool:result-2",
			"assistant:"+said("2")) // of the new default
		close(gate)
		looptest.Succeeded(t, looptest.Collect(t, reply, nil))
		<-unused

		use(t, e, edition("b", "2", nil), asks)
		next, err = e.Owner.Post(t.Context(), looptest.Alice, "", answer)
		looptest.Succeeded(t, looptest.Collect(t, next, err))
		looptest.WantTexts(t, e, "waits", "user:go", "assistant:", `tool:"yes"`, "assistant:thanks")
	})
}

// questionOf returns the id of the one question with which a stream ends.
func questionOf(t *testing.T, events []agui.Event) string {
	t.Helper()
	f, ok := looptest.LastOf(events).(agui.RunFinished)
	if !ok || f.Outcome == nil || len(f.Outcome.Interrupts) != 1 {
		t.Fatalf("no question:\n%s", looptest.Show(events))
	}
	return f.Outcome.Interrupts[0].ID
}

// TestReloadAnswered: what waits is answered by the new agent.
func TestReloadAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := func(v string) holdfast.Agent {
			return holdfast.Agent{
				Name:  "a",
				Model: looptest.Say(looptest.Calls("ask", "{}"), holdfast.Delta{Text: "model-" + v}),
				Tools: []holdfast.Tool{
					looptest.Tool("ask", holdfast.EffectPure, func(ctx context.Context) (string, error) {
						if holdfast.CallFrom(ctx).Answer != nil {
							return "tool-" + v, nil
						}
						return "", &holdfast.Interrupt{Message: "well?"}
					}),
				},
			}
		}
		e := looptest.Start(t, memstore.New(), nil, agent("1"))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		question := questionOf(t, looptest.Collect(t, reply, err))
		synctest.Wait()
		if !closed(use(t, e, agent("2"))) {
			t.Error("a thread that waits uses its agents")
		}
		answer := looptest.RunInput("t", "r2")
		answer.Resume = []agui.ResumeEntry{
			{InterruptID: question, Status: agui.ResumeResolved, Payload: []byte(`"yes"`)},
		}
		reply, err = e.Owner.Post(t.Context(), looptest.Alice, "", answer)
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:tool-2", "assistant:model-2")
	})
}

// TestReloadOutside: a result from outside for a run that is under way is held to the contract
// that the run has offered, although there is another one, or none, by now. For a thread that
// rests it is that of the new agent, and without one it waits on.
func TestReloadOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &postbox{}
		slow := looptest.Tool("slow", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return "slow", ctx.Err()
		})
		strict := outsideAgent(finance(p, holdfast.Outside{}), slow)
		strict.Model = callsThese("slow {}", `approve {"amount":1}`)
		other := edition("other", "2", nil)
		e := looptest.Start(t, memstore.New(), withURLs, strict)
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(time.Minute)
		use(t, e, other)
		if _, err := finish(e, p.token(), `{"approved":"perhaps"}`); looptest.Code(err) != codes.InvalidInput {
			t.Errorf("a result that the run's contract does not take: %v", err)
		}
		looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
		time.Sleep(2 * time.Hour)
		settled(t, e, "t")
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:{"approved":true}`, "tool:slow", "assistant:done")

		use(t, e, outsideAgent(finance(p, holdfast.Outside{})))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("rests", "r1", looptest.UserSays("u1", "go")))
		waitingFor(t, looptest.Collect(t, reply, err))
		synctest.Wait() // a run is held to its own contract until it has left
		use(t, e, other)
		if _, err := finish(e, p.token(), `{"approved":true}`); looptest.Code(err) != codes.AgentNotFound {
			t.Errorf("a result for an agent that is gone: %v", err)
		}
		use(t, e, outsideAgent(finance(p, holdfast.Outside{Result: []byte(`{"type":"string"}`)})))
		if _, err := finish(e, p.token(), `{"approved":true}`); looptest.Code(err) != codes.InvalidInput {
			t.Errorf("a result that the new contract does not take: %v", err)
		}
		looptest.Must(finish(e, p.token(), `"yes"`))(t)
		settled(t, e, "rests")
		looptest.WantTexts(t, e, "rests", "user:go", "assistant:", "tool:yes", "assistant:done")
	})
}

// TestReloadTakenOver: a run that is taken over goes on with the agent of that time.
func TestReloadTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		one := looptest.Start(t, first, nil, edition("a", "1", make(chan struct{})))
		two := looptest.Start(t, shared, nil, edition("a", "1", nil))
		looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		synctest.Wait()
		use(t, two, edition("a", "2", nil))
		first.Dead.Store(true)
		time.Sleep(10 * time.Second)
		settled(t, two, "t")
		looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:result-1",
			"assistant:by-2+signed-2 2 tool-2 result-1")
	})
}

// TestReloadMistake: agents that cannot be used change nothing.
func TestReloadMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), nil, edition("a", "1", nil))
		bad := edition("b", "2", nil)
		bad.Output = &holdfast.Output{Schema: []byte(`{"type":7}`)}
		if _, err := e.Owner.NewAgents([]holdfast.Agent{edition("a", "2", nil), bad}, nil, nil); err == nil ||
			!strings.Contains(err.Error(), `"b"`) {
			t.Errorf("got %v", err)
		}
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:result-1", "assistant:"+said("1"))
	})
}

// TestReloadWhileRunsBegin: however runs and reloads come together, each run has one edition
// in all its parts, none is refused, and no agents stay in use.
func TestReloadWhileRunsBegin(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, edition("a", "0", nil))
	const reloads, clients, each = 100, 8, 12
	var clientsDone, reloading sync.WaitGroup
	all := make(chan (<-chan struct{}), reloads)
	reloading.Go(func() {
		defer close(all)
		for i := range reloads {
			all <- use(t, e, edition("a", fmt.Sprint(i+1), nil))
		}
	})
	for c := range clients {
		clientsDone.Go(func() {
			for i := range each {
				id := fmt.Sprintf("t%d-%d", c, i)
				reply, err := e.Owner.Post(t.Context(), looptest.Alice, []string{"", "a"}[i%2],
					looptest.RunInput(id, "r", looptest.UserSays("u", "go")))
				if err != nil {
					t.Errorf("a run is refused: %v", err)
					return
				}
				for _, err := range reply.Frames {
					if err != nil {
						t.Error(err)
					}
				}
				texts := looptest.Texts(t, e, id)
				last := texts[len(texts)-1]
				v := strings.TrimPrefix(strings.SplitN(last, "+", 2)[0], "assistant:by-")
				if last != "assistant:"+said(v) || texts[2] != "tool:result-"+v {
					t.Errorf("a run with parts of two editions: %q", texts)
				}
			}
		})
	}
	clientsDone.Wait()
	reloading.Wait()
	for unused := range all {
		<-unused // or the test never ends
	}
}

// TestReloadAtShutdown: a shutdown that cuts runs off ends their use of agents, and so does
// one that does not know whether a run has begun.
func TestReloadAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		db := &looptest.Mortal{Store: memstore.New()}
		e := looptest.Start(t, db, nil, edition("a", "1", never))
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		unused := use(t, e, edition("a", "2", nil))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = e.Shutdown(ctx)
		<-unused
	})
}

// TestReloadUnsure: a run whose first commit may have landed keeps its agent until it is known,
// and then runs with it.
func TestReloadUnsure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &vague{Store: memstore.New()}
		e := looptest.Start(t, db, nil, edition("a", "1", nil))
		db.set(true)
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); looptest.Code(err) != codes.StoreUnavailable {
			t.Fatalf("got %v", err)
		}
		unused := use(t, e, edition("a", "2", nil))
		synctest.Wait()
		if closed(unused) {
			t.Fatal("the agent of a run that may have begun is unused")
		}
		db.set(false)
		reply, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectV1)
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		<-unused
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:result-1", "assistant:"+said("1"))
	})
}

// TestReloadForgets: agents are not kept for a run whose first commit never landed.
func TestReloadForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &vague{Store: memstore.New(), loses: true}
		e := looptest.Start(t, db, nil, edition("a", "1", nil))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		db.set(true)
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r2", looptest.UserSays("u2", "go"))); looptest.Code(err) != codes.StoreUnavailable {
			t.Fatalf("got %v", err)
		}
		unused := use(t, e, edition("a", "2", nil))
		synctest.Wait()
		if closed(unused) {
			t.Fatal("the agent of a run that may have begun is unused")
		}
		db.set(false)
		<-unused // after a while, or the test never ends
	})
}

// vague is a store that, while vague is set, does not say what became of a commit: it has
// landed or, if the store loses it, not.
type vague struct {
	store.Store
	loses        bool
	mu           sync.Mutex
	vague, tried bool
}

func (v *vague) set(on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.vague, v.tried = on, false
}

func (v *vague) Commit(ctx context.Context, c *store.Commit) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tried = true
	if v.vague && v.loses {
		return errors.New("no answer")
	}
	err := v.Store.Commit(ctx, c)
	if v.vague {
		return errors.New("no answer")
	}
	return err
}

func (v *vague) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.vague && v.tried {
		return nil, errors.New("no answer")
	}
	return v.Store.Head(ctx, key)
}
