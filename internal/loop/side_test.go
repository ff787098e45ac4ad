package loop_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// Side runs, and requests that choose which tools the model may call.

// suggestProps is what a page sends to be told what its user could say next.
const suggestProps = `{"theme":"dark","toolChoice":{"type":"function","function":{"name":"suggest"}}}`

// suggests returns the input of such a page.
func suggests(id, run string, messages ...agui.Message) *agui.RunAgentInput {
	in := looptest.RunInput(id, run, messages...)
	in.ForwardedProps = json.RawMessage(suggestProps)
	in.Tools = []agui.Tool{{Name: "suggest", Description: "what to say"}, {Name: "paint"}}
	return in
}

// askedModel is a model that notes what it is asked, and answers as do says.
type askedModel struct {
	mu  sync.Mutex
	all []*holdfast.ModelRequest
	do  func(ctx context.Context, req *holdfast.ModelRequest) []holdfast.Delta
}

func (m *askedModel) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		m.mu.Lock()
		m.all = append(m.all, req)
		m.mu.Unlock()
		for _, d := range m.do(ctx, req) {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (m *askedModel) asked() []*holdfast.ModelRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// answersWith returns a model that gives the same deltas each time, until a tool has answered.
func answersWith(deltas ...holdfast.Delta) *askedModel {
	return &askedModel{do: func(_ context.Context, req *holdfast.ModelRequest) []holdfast.Delta {
		if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
			return []holdfast.Delta{{Text: "done", Finish: holdfast.FinishStop}}
		}
		return deltas
	}}
}

// suggestion is the call that such a page waits for.
func suggestion(more ...holdfast.Delta) []holdfast.Delta {
	call := holdfast.Delta{Call: &holdfast.CallDelta{ID: "s", Name: "suggest", Arguments: `{"suggestions":[]}`}}
	return append(append([]holdfast.Delta{call}, more...), holdfast.Delta{Finish: holdfast.FinishToolCalls})
}

// charger is an agent with a tool that must never run by itself.
func charger(j *looptest.Notebook, m holdfast.Model, mw ...holdfast.Middleware) holdfast.Agent {
	charge := looptest.Tool("charge", holdfast.EffectOnce, func(context.Context) (string, error) {
		j.Note("charged")
		return "ok", nil
	})
	return holdfast.Agent{Name: "a", Model: m, Tools: []holdfast.Tool{charge}, Middleware: mw}
}

// threadsOf returns the ids of all threads of a store.
func threadsOf(t *testing.T, s store.Store) (ids []string) {
	t.Helper()
	list, err := s.Threads(t.Context(), looptest.Alice, time.Time{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		ids = append(ids, list[i].Key.Thread)
	}
	return ids
}

// offered returns the names of the tools of a request.
func offered(req *holdfast.ModelRequest) (names []string) {
	for i := range req.Tools {
		names = append(names, req.Tools[i].Name)
	}
	return names
}

// TestSideRun: a request that forces one of its own tools on a new thread is answered with that
// tool only, and leaves nothing behind.
func TestSideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j looptest.Notebook
		s, m := memstore.New(), answersWith(suggestion()...)
		e := looptest.Start(t, s, nil, charger(&j, m))
		history := []agui.Message{
			looptest.UserSays("u1", "hello"),
			agui.FromDomain(holdfast.Message{ID: "a1", Role: holdfast.RoleAssistant, Text: "hi"}),
			looptest.UserSays("u2", "charge 1"),
		}
		for _, version := range []string{agui.ProtocolVersion, ""} {
			in := suggests("side", "r1", history...)
			in.ProtocolVersion = version
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
			frames, events := looptest.FramesOf(t, reply, err)
			if err := agui.Verify(slices.Values(events)); err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				if f.ID != "" {
					t.Errorf("a frame has the cursor %s", f.ID)
				}
			}
			var kinds []string
			for _, ev := range events {
				kinds = append(kinds, string(agui.EventType(ev)))
			}
			if got, want := strings.Join(kinds, " "),
				"RUN_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END RUN_FINISHED"; got != want {
				t.Errorf("dialect %q: got %s", version, got)
			}
			if end := looptest.LastOf(events).(agui.RunFinished); !reply.Side || reply.RunID != "r1" ||
				end.Outcome != nil && len(end.Outcome.PendingToolCallIDs) > 0 {
				t.Errorf("the reply is %+v and ends with %+v", reply, end)
			}
		}
		for _, req := range m.asked() {
			if got := offered(req); !slices.Equal(got, []string{"suggest"}) || req.ToolChoice != "required" ||
				req.ChosenTool != "suggest" || len(req.Messages) != 3 {
				t.Errorf("the model was asked with %q, %q, %q and %d messages", got, req.ToolChoice, req.ChosenTool,
					len(req.Messages))
			}
		}
		if got := len(m.asked()); got != 2 {
			t.Errorf("the model was asked %d times; the same request again simply runs again", got)
		}
		if got := threadsOf(t, s); len(got) > 0 {
			t.Errorf("the store has the threads %q", got)
		}
		synctest.Wait()
		if e.Owner.Running() != 0 {
			t.Error("a run is still there")
		}
		// The thread with the id is one like any other once somebody makes it.
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("side", "r1", looptest.UserSays("u1", "hello"))))
		if got := j.Take(); len(got) > 0 {
			t.Errorf("tools have run: %q", got)
		}
	})
}

// TestSideRunRefusesOtherCalls: whatever the model calls, no tool of the server runs, and the
// model is not asked again.
func TestSideRunRefusesOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j looptest.Notebook
		s := memstore.New()
		m := answersWith(suggestion(holdfast.Delta{Call: &holdfast.CallDelta{Index: 1, ID: "c", Name: "charge",
			Arguments: "{}"}}, holdfast.Delta{Call: &holdfast.CallDelta{Index: 2, ID: "p", Name: "paint",
			Arguments: "{}"}})...)
		e := looptest.Start(t, s, nil, charger(&j, m))
		events := looptest.Posted(t, e, suggests("t", "r", looptest.UserSays("u", "charge 1")))
		looptest.Succeeded(t, events)
		var refused []string
		for _, ev := range events {
			if r, ok := ev.(agui.ToolCallResult); ok {
				refused = append(refused, r.ToolCallID+": "+string(r.Content))
			}
		}
		slices.Sort(refused)
		if len(refused) != 2 || !strings.HasPrefix(refused[0], `c: "Not started`) ||
			!strings.HasPrefix(refused[1], `p: "Not started`) {
			t.Errorf("the refused calls are %q", refused)
		}
		if len(m.asked()) != 1 || len(j.Take()) > 0 || len(threadsOf(t, s)) > 0 {
			t.Errorf("asked %d times, stored %q", len(m.asked()), threadsOf(t, s))
		}
	})
}

// TestSideRunEndsWithItsClient: the model's request is cancelled when nobody reads the answer.
func TestSideRunEndsWithItsClient(t *testing.T) {
	for _, name := range []string{"its context ends", "it stops reading"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j looptest.Notebook
				ended := make(chan error, 1)
				m := &askedModel{}
				slow := holdfast.ModelFunc(func(ctx context.Context,
					req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					return func(yield func(holdfast.Delta, error) bool) {
						if yield(holdfast.Delta{Text: "thinking"}, nil) {
							<-ctx.Done()
							ended <- context.Cause(ctx)
							yield(holdfast.Delta{}, ctx.Err())
						}
					}
				})
				s := memstore.New()
				e := looptest.Start(t, s, nil, charger(&j, slow))
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				reply, err := e.Owner.Post(ctx, looptest.Alice, "", suggests("t", "r", looptest.UserSays("u", "hi")))
				if err != nil {
					t.Fatal(err)
				}
				for frames := range reply.Frames {
					if len(frames) > 0 && strings.Contains(string(frames[len(frames)-1].Data), "thinking") {
						if name == "it stops reading" {
							break
						}
						leave()
					}
				}
				<-ended
				synctest.Wait()
				if e.Owner.Running() != 0 || len(threadsOf(t, s)) > 0 || len(m.asked()) > 0 {
					t.Errorf("%d run, %q stored", e.Owner.Running(), threadsOf(t, s))
				}
			})
		})
	}
}

// TestSideRunIsCutOff: a shutdown tells the client that there is nothing to come back to.
func TestSideRunIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j looptest.Notebook
		slow := holdfast.ModelFunc(func(ctx context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				yield(holdfast.Delta{Text: "thinking"}, nil)
				<-ctx.Done()
			}
		})
		e := looptest.Start(t, memstore.New(), nil, charger(&j, slow))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", suggests("t", "r", looptest.UserSays("u", "hi")))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			synctest.Wait()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = e.Shutdown(ctx)
		}()
		_, events := looptest.FramesOf(t, reply, nil)
		if end, ok := looptest.LastOf(events).(agui.RunError); !ok || end.Code != "shutting_down" ||
			!strings.Contains(end.FullText(), "again") {
			t.Errorf("the stream ends with %s", agui.Append(nil, looptest.LastOf(events)))
		}
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			suggests("t", "r", looptest.UserSays("u", "hi"))); looptest.Code(err) != "shutting_down" {
			t.Errorf("a later one gets %v", err)
		}
	})
}

// TestSideRunCounts: it takes a place among the runs of its user while it lasts.
func TestSideRunCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j looptest.Notebook
		goOn := make(chan struct{})
		m := answersWith()
		m.do = func(ctx context.Context, req *holdfast.ModelRequest) []holdfast.Delta {
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return suggestion()
		}
		s := memstore.New()
		e := looptest.Start(t, s, func(c *looptest.Config) {
			c.Limits = limited(t, s, func(q *quota.Config) { q.PerUser.Runs, q.PerUser.Threads = 1, 1 })
		}, charger(&j, m))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", suggests("t", "r", looptest.UserSays("u", "hi")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			suggests("t2", "r", looptest.UserSays("u", "hi"))); looptest.Code(err) != "limit_exceeded" {
			t.Errorf("another one gets %v", err)
		}
		close(goOn)
		looptest.FramesOf(t, reply, nil)
		synctest.Wait()
		looptest.FramesOf(t, looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			suggests("t2", "r", looptest.UserSays("u", "hi"))))(t), nil)
		synctest.Wait()
		if usage := e.Owner.Running(); usage != 0 || len(threadsOf(t, s)) > 0 {
			t.Errorf("%d run, %q stored", usage, threadsOf(t, s))
		}
	})
}

// TestSideRunHooks: hooks see a side run as they see any other; nobody can be asked in it.
func TestSideRunHooks(t *testing.T) {
	ask := func(context.Context, *holdfast.Iteration) error { return &holdfast.Interrupt{Message: "may it?"} }
	for name, c := range map[string]struct {
		hook holdfast.Middleware
		code string // of the error that it ends in
		text string // in the stream
	}{
		"a hook changes the request": {hook: holdfast.Middleware{Name: "m",
			Model: func(next holdfast.ModelCall) holdfast.ModelCall {
				return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					if !holdfast.IterationFrom(ctx).Side {
						t.Error("the hook cannot tell that it is a side run")
					}
					return next(ctx, req)
				}
			}}, text: "TOOL_CALL_END"},
		"a hook refuses": {hook: holdfast.Middleware{Name: "m",
			BeforeIteration: func(context.Context, *holdfast.Iteration) error {
				return holdfast.Errorf("budget_exceeded", "no more")
			}}, code: "budget_exceeded"},
		"a hook asks before the answer": {hook: holdfast.Middleware{Name: "m", BeforeIteration: ask},
			code: "middleware_failed"},
		"a hook asks about the call": {hook: holdfast.Middleware{Name: "m",
			Batch: func(_ context.Context, b *holdfast.Batch) error {
				b.Ask(0, &holdfast.Interrupt{Message: "may it?"})
				return nil
			}}, text: "nobody can be asked"},
		"a hook denies the call": {hook: holdfast.Middleware{Name: "m",
			Batch: func(_ context.Context, b *holdfast.Batch) error {
				b.Deny(0, "forbidden here")
				return nil
			}}, text: "forbidden here"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j looptest.Notebook
				s := memstore.New()
				e := looptest.Start(t, s, nil, charger(&j, answersWith(suggestion()...), c.hook))
				events := looptest.Posted(t, e, suggests("t", "r", looptest.UserSays("u", "hi")))
				if c.code != "" {
					looptest.Failed(t, events, c.code)
				} else {
					looptest.Succeeded(t, events)
				}
				if shown := looptest.Show(events); !strings.Contains(shown, c.text) {
					t.Errorf("the stream does not have %q:\n%s", c.text, shown)
				}
				if len(threadsOf(t, s)) > 0 {
					t.Error("something was stored")
				}
			})
		})
	}
}

// TestToolChoice: on a thread with history, or for a tool of the server, the choice is honoured
// for the first answer, and the run is stored like any other.
func TestToolChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j looptest.Notebook
		m := answersWith(looptest.Calls("charge", "{}"))
		e := looptest.Start(t, memstore.New(), nil, charger(&j, m))
		in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
		in.ForwardedProps = json.RawMessage(`{"toolChoice":{"type":"function","name":"charge"}}`)
		looptest.Succeeded(t, looptest.Posted(t, e, in))
		if got := j.Take(); !slices.Equal(got, []string{"charged"}) {
			t.Fatalf("the forced tool of the server ran as %q", got)
		}
		again := suggests("t", "r2", looptest.UserSays("u2", "more"))
		looptest.Succeeded(t, looptest.Posted(t, e, again))
		if got := j.Take(); len(got) > 0 {
			t.Errorf("a tool ran that the request does not let the model call: %q", got)
		}
		none := looptest.RunInput("t", "r3", looptest.UserSays("u3", "and more"))
		none.ForwardedProps = json.RawMessage(`{"toolChoice":"none"}`)
		looptest.Succeeded(t, looptest.Posted(t, e, none))
		if got := j.Take(); len(got) > 0 {
			t.Errorf("a tool ran although none may be called: %q", got)
		}
		var got []string
		for _, req := range m.asked() {
			got = append(got, strings.Join([]string{req.Run, req.ToolChoice, req.ChosenTool,
				strings.Join(offered(req), "+")}, " "))
		}
		want := []string{
			"r1 required charge charge",
			"r1   charge",
			"r2 required suggest charge+paint+suggest",
			"r2   charge+paint+suggest",
			"r3 none  charge",
			"r3 none  charge",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the model was asked with\n%q, want\n%q", got, want)
		}
		if texts := looptest.Texts(t, e, "t"); len(texts) < 9 {
			t.Errorf("the thread has only %q", texts)
		}
	})
}

// TestToolChoiceAfterACrash: a process that takes a run over asks the model in the same way.
func TestToolChoiceAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j looptest.Notebook
		shared := memstore.New()
		dying := &looptest.Mortal{Store: shared}
		first := looptest.Start(t, dying, nil, charger(&j, waits()))
		in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
		in.ForwardedProps = json.RawMessage(`{"toolChoice":{"type":"function","function":{"name":"charge"}}}`)
		looptest.Must(first.Owner.Post(t.Context(), looptest.Alice, "", in))(t)
		synctest.Wait()
		dying.Dead.Store(true)
		m := answersWith(looptest.Calls("charge", "{}"))
		looptest.Start(t, shared, nil, charger(&j, m))
		time.Sleep(10 * time.Second)
		var got []string
		for _, req := range m.asked() {
			got = append(got, req.ToolChoice+" "+req.ChosenTool)
		}
		if !slices.Equal(got, []string{"required charge", " "}) {
			t.Errorf("after the takeover the model was asked with %q", got)
		}
	})
}

// TestToolChoiceIsChecked: a choice that cannot be kept is refused before anything is stored.
func TestToolChoiceIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j looptest.Notebook
		s := memstore.New()
		e := looptest.Start(t, s, nil, charger(&j, answersWith(suggestion()...)),
			holdfast.Agent{Name: "bare", Model: answersWith(suggestion()...)})
		for props, want := range map[string]string{
			`{"toolChoice":"charge"}`:                                       `"required"`,
			`{"toolChoice":{"type":"tool","name":"charge"}}`:                `"required"`,
			`{"toolChoice":{"type":"function","function":{"name":"gone"}}}`: "GET /agents",
		} {
			in := looptest.RunInput("t", "r", looptest.UserSays("u", "hi"))
			in.ForwardedProps = json.RawMessage(props)
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", in); looptest.Code(err) != "invalid_input" ||
				!strings.Contains(holdfast.AsError(err).Hint, want) {
				t.Errorf("%s: %+v", props, err)
			}
		}
		in := looptest.RunInput("t", "r", looptest.UserSays("u", "hi"))
		in.ForwardedProps = json.RawMessage(`{"toolChoice":"required"}`)
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "bare", in); looptest.Code(err) != "invalid_input" {
			t.Errorf("required without tools: %v", err)
		}
		in = looptest.RunInput("t", "r", looptest.UserSays("u", "hi"))
		in.Side = true
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", in); looptest.Code(err) != "invalid_input" ||
			!strings.Contains(err.Error(), "beside") {
			t.Errorf("the route of side runs takes another one: %v", err)
		}
		if got := threadsOf(t, s); len(got) > 0 {
			t.Errorf("stored: %q", got)
		}
	})
}
