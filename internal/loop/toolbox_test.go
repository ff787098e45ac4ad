package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// set is a toolset whose list a test changes.
type set struct {
	list atomic.Pointer[[]holdfast.Tool]
	asks atomic.Int64
}

func (s *set) Tools() []holdfast.Tool {
	s.asks.Add(1)
	if l := s.list.Load(); l != nil {
		return *l
	}
	panic("not connected")
}

func (s *set) put(tools ...holdfast.Tool) { s.list.Store(&tools) }

// specced counts how often a tool is asked for its specification.
type specced struct {
	holdfast.Tool
	asks *atomic.Int64
}

func (s specced) Spec() holdfast.ToolSpec {
	s.asks.Add(1)
	return s.Tool.Spec()
}

// nameless is a tool without a name.
type nameless struct{ holdfast.Tool }

func (nameless) Spec() holdfast.ToolSpec { return holdfast.ToolSpec{} }

func replying(name, text string) holdfast.Tool {
	return looptest.Tool(name, holdfast.EffectPure, func(context.Context) (string, error) { return text, nil })
}

// names returns the tools that a model is offered.
func names(req *holdfast.ModelRequest) string {
	var all []string
	for _, t := range req.Tools {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}

// TestToolset: a run has the tools that there were when it began, in the order of their
// names; a new run has the new ones. The list is converted once for each change, and a tool
// whose name is taken is left out, which the log says once.
func TestToolset(t *testing.T) {
	var log bytes.Buffer
	var specs atomic.Int64
	counted := func(name, text string) holdfast.Tool { return specced{replying(name, text), &specs} }
	one, two := &set{}, &set{}
	one.put(counted("b", "b"), counted("own", "not used"))
	two.put(replying("b", "not used"), nameless{replying("x", "no name")})
	var offered []string
	agent := holdfast.Agent{
		Name:     "a",
		Tools:    []holdfast.Tool{replying("own", "own")},
		Toolsets: []holdfast.Toolset{one, two},
	}
	agent.Model = holdfast.ModelFunc(func(_ context.Context,
		req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		offered = append(offered, names(req))
		if req.Iteration == 0 && len(offered) == 1 {
			one.put(counted("a", "a")) // while the run goes on
			return looptest.Say(looptest.Calls("b", "{}")).Stream(t.Context(), req)
		}
		return looptest.Say(holdfast.Delta{Text: "done"}).Stream(t.Context(), req)
	})
	e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	}, agent)
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:b", "assistant:done")
	for n := range 5 {
		looptest.Succeeded(t, looptest.Started(t, e, fmt.Sprint("t", n)))
	}
	if want := []string{
		"b own",
		"b own",
		"a b own",
		"a b own",
		"a b own",
		"a b own",
		"a b own",
	}; !slices.Equal(offered, want) {
		t.Errorf("offered %q", offered)
	}
	// Once for each list, and once more where a tool's own declaration decides.
	if got := specs.Load(); got > 12 {
		t.Errorf("tools were asked %d times what they are", got)
	}
	if got := strings.Count(log.String(), "a tool is left out"); got != 3+1 { // own, b and no name; then no name again
		t.Errorf("the log says %d times that a tool is left out:\n%s", got, log.String())
	}
	if got := e.Owner.Tools("a"); len(got) != 3 || got[1].Name != "b" || len(e.Owner.Tools("nobody")) != 0 {
		t.Errorf("the tools are %+v", got)
	}
}

// TestToolsetPanics: a toolset that cannot say which tools it has keeps those that it had,
// and takes no other tools away.
func TestToolsetPanics(t *testing.T) {
	s := &set{}
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:     "a",
		Model:    looptest.Say(holdfast.Delta{Text: "done"}),
		Tools:    []holdfast.Tool{replying("own", "x")},
		Toolsets: []holdfast.Toolset{s},
	})
	for n, want := range []int{1, 2, 2} {
		if n == 1 {
			s.put(replying("more", "x"))
		}
		if n == 2 {
			s.list.Store(nil)
		}
		looptest.Succeeded(t, looptest.Started(t, e, fmt.Sprint("t", n)))
		if got := len(e.Owner.Tools("a")); got != want {
			t.Errorf("%d tools, want %d", got, want)
		}
	}
}

// TestToolVanished: a tool is not there any more when a call to it is looked at again. The
// result says so; of a call that had started, what the tool had declared decides.
func TestToolVanished(t *testing.T) {
	for effect, want := range map[holdfast.Effect]string{
		holdfast.EffectPure:       `There is no tool "work" any more; the call was not made again.`,
		holdfast.EffectIdempotent: `There is no tool "work" any more. The call had been started`,
		"":                        `There is no tool "work" any more. The call had been started`,
		holdfast.EffectOnce:       thread.TextInDoubt,
		holdfast.EffectQuery:      thread.TextInDoubt,
	} {
		for _, doubt := range []holdfast.Doubt{holdfast.DoubtTell, holdfast.DoubtAsk} {
			t.Run(fmt.Sprint(effect, " ", doubt), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mortal, s := &looptest.Mortal{Store: memstore.New()}, &set{}
					hang := holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
						<-ctx.Done()
						return "", ctx.Err()
					}, holdfast.WithEffect(effect), holdfast.WithInDoubt(doubt))
					s.put(hang)
					agent := holdfast.Agent{
						Name:     "a",
						Model:    looptest.Say(looptest.Calls("work", "{}"), holdfast.Delta{Text: "done"}),
						Toolsets: []holdfast.Toolset{s},
					}
					one := looptest.Start(t, mortal, nil, agent)
					looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
						looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
					time.Sleep(time.Second)
					mortal.Dead.Store(true)
					s.put()
					two := looptest.Start(t, mortal.Store, nil, agent)
					time.Sleep(10 * time.Second)
					info := settled(t, two, "t")
					if asks := doubt == holdfast.DoubtAsk && want == thread.TextInDoubt; asks {
						if info.Status != threads.StatusInterrupted {
							t.Fatalf("nobody is asked: %+v", info)
						}
						return
					}
					// A pure call has no intent, so nothing shows that it had started.
					if effect == holdfast.EffectPure {
						want = `There is no tool "work".`
					}
					if got := looptest.Texts(t, two, "t"); len(got) != 4 || !strings.HasPrefix(got[2], "tool:"+want) {
						t.Errorf("the history is %q", got)
					}
					sound(t, mortal.Store, "t")
				})
			})
		}
	}
}

// TestToolVanishedBeforeItsAnswer: a person allows a call whose tool is gone meanwhile.
func TestToolVanishedBeforeItsAnswer(t *testing.T) {
	s := &set{}
	s.put(holdfast.NewTool("ask", "asks", func(ctx context.Context, _ struct{}) (string, error) {
		return "", &holdfast.Interrupt{Message: "Well?"}
	}))
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:     "a",
		Model:    looptest.Say(looptest.Calls("ask", "{}"), holdfast.Delta{Text: "done"}),
		Toolsets: []holdfast.Toolset{s},
	})
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	s.put()
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", "1", open...)))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:There is no tool "ask".`, "assistant:done")
}

// lateSet is a toolset whose tools come when the test says so, or never.
type lateSet struct {
	set
	came   chan struct{}
	waited atomic.Int64
}

func newLateSet() *lateSet {
	s := &lateSet{came: make(chan struct{})}
	s.put()
	return s
}

func (s *lateSet) AwaitTool(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, "late_") {
		return nil
	}
	s.waited.Add(1)
	select {
	case <-s.came:
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("it has not started")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestToolComesLate: the process dies in the middle of calls, and the toolset of one of
// their tools is not there yet in the next one. The other calls do not wait for it, and
// nothing is lost; if it does not come, the call ends as one whose tool is gone. A new run
// waits for nothing.
func TestToolComesLate(t *testing.T) {
	for comes, want := range map[time.Duration]string{0: "tool:late", 5 * time.Second: "tool:late",
		time.Hour: `tool:There is no tool "late_work" any more. The call`} {
		t.Run(comes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dead, quick := make(chan struct{}), make(chan time.Time, 2)
				hang := func(name string, f func()) holdfast.Tool {
					return looptest.Tool(name, holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
						select {
						case <-dead: // in the second process
							f()
							return strings.TrimSuffix(name, "_work"), nil
						case <-ctx.Done():
							return "", ctx.Err()
						}
					})
				}
				work, other := hang("late_work", func() {}), hang("other_work", func() { quick <- time.Now() })
				var offered atomic.Value // what the model was offered last
				model := holdfast.ModelFunc(func(ctx context.Context,
					req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					offered.Store(names(req))
					if len(req.Messages) > 1 {
						return looptest.Say(holdfast.Delta{Text: "done"}).Stream(ctx, req)
					}
					return func(yield func(holdfast.Delta, error) bool) {
						_ = yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "late_work", Arguments: "{}"}},
							nil) && yield(
							holdfast.Delta{
								Call:   &holdfast.CallDelta{Index: 1, Name: "other_work", Arguments: "{}"},
								Finish: holdfast.FinishToolCalls,
							},
							nil,
						)
					}
				})
				mortal, one := &looptest.Mortal{Store: memstore.New()}, newLateSet()
				one.put(work)
				agent := holdfast.Agent{
					Name:     "a",
					Model:    model,
					Tools:    []holdfast.Tool{other},
					Toolsets: []holdfast.Toolset{one},
				}
				first := looptest.Start(t, mortal, nil, agent)
				looptest.Must(first.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
				time.Sleep(time.Second)
				mortal.Dead.Store(true)
				close(dead)
				<-quick // nobody hears of this one

				two := newLateSet()
				if comes == 0 {
					two.put(work)
				}
				agent.Toolsets = []holdfast.Toolset{two}
				second := looptest.Start(t, mortal.Store, nil, agent)
				began := <-quick // it waits for nobody
				synctest.Wait()  // the other one waits by now
				if waits := two.waited.Load(); waits != 0 != (comes > 0) {
					t.Errorf("waited %d times", waits)
				}
				looptest.Succeeded(t, looptest.Posted(t, second,
					looptest.RunInput("new", "n1", looptest.UserSays("u1", "hello"), looptest.UserSays("u2", "again"))))
				if took := time.Since(began); took > time.Second {
					t.Errorf("a new run took %s", took)
				}
				time.Sleep(min(comes, time.Minute))
				two.put(work)
				close(two.came)
				synctest.Wait()
				settled(t, second, "t")
				if got := looptest.Texts(t, second, "t"); len(got) != 5 ||
					!strings.HasPrefix(got[3], want) && !strings.HasPrefix(got[2], want) || got[4] != "assistant:done" {
					t.Errorf("the history is %q", got)
				}
				if waits := two.waited.Load(); waits > 1 {
					t.Errorf("waited %d times", waits)
				}
				last := "late_work other_work"
				if comes > time.Minute {
					last = "other_work"
				}
				if got := offered.Load(); got != last {
					t.Errorf("the model was offered %q", got)
				}
				sound(t, mortal.Store, "t")
			})
		})
	}
}

// TestToolAwaitedInVain: a run that is cancelled while a call waits for its tool ends.
func TestToolAwaitedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mortal, one := &looptest.Mortal{Store: memstore.New()}, newLateSet()
		one.put(looptest.Tool("late_work", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}))
		agent := holdfast.Agent{
			Name:     "a",
			Model:    looptest.Say(looptest.Calls("late_work", "{}"), holdfast.Delta{Text: "done"}),
			Toolsets: []holdfast.Toolset{one},
		}
		first := looptest.Start(t, mortal, nil, agent)
		looptest.Must(first.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(time.Second)
		mortal.Dead.Store(true)
		two := newLateSet()
		agent.Toolsets = []holdfast.Toolset{two}
		second := looptest.Start(t, mortal.Store, nil, agent)
		for two.waited.Load() == 0 {
			time.Sleep(time.Second)
		}
		looptest.Must(second.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
		time.Sleep(2 * time.Second)
		if info := settled(t, second, "t"); info.Status == threads.StatusRunning {
			t.Errorf("it still runs: %+v", info)
		}
		sound(t, mortal.Store, "t")
	})
}

// TestKeptAndVanished: a call that has kept something had begun, so when its tool is gone
// nobody says that it was not made.
func TestKeptAndVanished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mortal, s := &looptest.Mortal{Store: memstore.New()}, &set{}
		s.put(looptest.Tool("work", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
			if err := holdfast.Keep(ctx, []byte(`"a handle"`)); err != nil {
				return "", err
			}
			<-ctx.Done()
			return "", ctx.Err()
		}))
		agent := holdfast.Agent{
			Name:     "a",
			Model:    looptest.Say(looptest.Calls("work", "{}"), holdfast.Delta{Text: "done"}),
			Toolsets: []holdfast.Toolset{s},
		}
		one := looptest.Start(t, mortal, nil, agent)
		looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(time.Second)
		mortal.Dead.Store(true)
		s.put()
		two := looptest.Start(t, mortal.Store, nil, agent)
		time.Sleep(10 * time.Second)
		settled(t, two, "t")
		if got := looptest.Texts(t, two, "t"); len(got) != 4 || got[2] != "tool:"+thread.TextInDoubt {
			t.Errorf("the history is %q", got)
		}
		sound(t, mortal.Store, "t")
	})
}

// BenchmarkToolset is a run's beginning up to its model call, with tools of a toolset that
// has not changed ("same"), or that is another one for each run ("new").
func BenchmarkToolset(b *testing.B) {
	for _, n := range []int{0, 1000} {
		for _, fresh := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d tools, %s", n, map[bool]string{false: "same", true: "new"}[fresh]),
				func(b *testing.B) {
					s := &set{}
					tools := make([]holdfast.Tool, n)
					for i := range tools {
						tools[i] = replying(fmt.Sprintf("tool_%04d", i), "x")
					}
					s.put(tools...)
					asked := make(chan struct{}, 1)
					model := holdfast.ModelFunc(func(_ context.Context,
						_ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
						asked <- struct{}{}
						return func(yield func(holdfast.Delta, error) bool) {
							yield(holdfast.Delta{Text: "x", Finish: holdfast.FinishStop}, nil)
						}
					})
					e, err := looptest.New(looptest.Config{ArchiveAfter: time.Minute, Config: loop.Config{
						Store:            memstore.New(),
						Agents:           []holdfast.Agent{{Name: "a", Model: model, Toolsets: []holdfast.Toolset{s}}},
						Frequency:        loop.PerIteration,
						KeepCheckpoints:  1,
						Lease:            time.Minute,
						MaxRuns:          100,
						MaxParallelTools: 8,
						ModelTries:       1,
						StoreTimeout:     time.Minute,
						BufferBytes:      1 << 20,
						TailBytes:        1 << 16,
						KeepAlive:        time.Minute,
						Log:              slog.New(slog.DiscardHandler),
						Now:              clock.Wall,
						NewID: func(prefix string) string {
							return fmt.Sprintf("%s%08d", prefix, looptest.Serial.Add(1))
						},
					}})
					if err == nil {
						err = e.Start(b.Context())
					}
					if err != nil {
						b.Fatal(err)
					}
					b.ResetTimer()
					for i := range b.N {
						if fresh {
							s.put(slices.Clone(tools)...)
						}
						if _, err := e.Owner.Post(b.Context(), looptest.Alice, "",
							looptest.RunInput(fmt.Sprint("t", i), "r", looptest.UserSays("u", "go"))); err != nil {
							b.Fatal(err)
						}
						<-asked
					}
					b.StopTimer()
					if err := e.Shutdown(context.Background()); err != nil {
						b.Fatal(err)
					}
				})
		}
	}
}
