package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/threads"
)

// spender is an agent that pays what the last user message says, once, and then answers with
// what came of it. Each answer has a number, so that a new one differs.
func spender(j *looptest.Notebook, middleware ...holdfast.Middleware) holdfast.Agent {
	answers := 0
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			last := req.Messages[len(req.Messages)-1]
			if n, pays := strings.CutPrefix(last.PlainText(), "pay "); pays && last.Role == holdfast.RoleUser {
				yield(looptest.Calls("pay", `{"n":`+n+`}`), nil)
				return
			}
			answers++
			yield(
				holdfast.Delta{
					Text:   fmt.Sprintf("%s, answer %d", last.PlainText(), answers),
					Finish: holdfast.FinishStop,
				},
				nil,
			)
		}
	})
	pay := holdfast.NewTool("pay", "pay", func(_ context.Context, args struct {
		N int `json:"n"`
	}) (string, error) {
		j.Note(fmt.Sprintf("paid %d", args.N))
		return fmt.Sprintf("paid %d", args.N), nil
	}, holdfast.WithEffect(holdfast.EffectOnce))
	return holdfast.Agent{
		Name:       "a",
		Model:      model,
		Tools:      []holdfast.Tool{pay},
		Policy:     holdfast.Policy{Chat: true},
		Middleware: middleware,
	}
}

// branched returns what a stream says about having branched.
func branched(
	t *testing.T, events []agui.Event,
) (said struct{ ParentMessageID, LeftMessageID, LeftCheckpointID string }) {
	t.Helper()
	for _, ev := range events {
		if c, ok := ev.(agui.Custom); ok && c.Name == "holdfast.branched" {
			if err := json.Unmarshal(c.Value, &said); err != nil {
				t.Fatal(err)
			}
			return said
		}
	}
	t.Fatalf("the stream does not say that it branched:\n%s", looptest.Show(events))
	return said
}

// TestRegenerate: the last answer is made again, with the results of its once tool. The old
// branch can be reached.
func TestRegenerate(t *testing.T) {
	j, store := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, store, nil, spender(j))
	u1 := looptest.UserSays("u1", "pay 10")
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", u1)))
	events := looptest.Posted(t, e, looptest.RunInput("t", "r2", u1))
	looptest.Succeeded(t, events)
	looptest.WantTexts(t, e, "t", "user:pay 10", "assistant:", "tool:paid 10", "assistant:paid 10, answer 2")
	said := branched(t, events)
	if said.ParentMessageID != "u1" || said.LeftMessageID == "" {
		t.Errorf("it said %+v", said)
	}
	if got := looptest.Reduce(events); !strings.Contains(strings.Join(got, "|"), "answer 2") ||
		strings.Contains(strings.Join(got, "|"), "answer 1") {
		t.Errorf("a client shows %q", got)
	}
	sound(t, store, "t")
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: said.LeftCheckpointID}))(t)
	looptest.WantTexts(t, e, "t", "user:pay 10", "assistant:", "tool:paid 10", "assistant:paid 10, answer 1")
	if got := j.Take(); len(got) != 1 {
		t.Errorf("the tool ran: %q", got)
	}
}

// TestRegenerateByFlag: without the policy, branch makes the last answer again, and the tools
// run as the new answer asks; without both, the old answer is shown.
func TestRegenerateByFlag(t *testing.T) {
	j := &looptest.Notebook{}
	agent := spender(j)
	agent.Policy.Chat = false
	e := looptest.Start(t, memstore.New(), nil, agent)
	u1 := looptest.UserSays("u1", "hello")
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", u1)))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", u1)))
	looptest.WantTexts(t, e, "t", "user:hello", "assistant:hello, answer 1")
	in := looptest.RunInput("t", "r3", u1)
	in.ForwardedProps = []byte(`{"holdfast":{"branch":true}}`)
	events := looptest.Posted(t, e, in)
	looptest.Succeeded(t, events)
	branched(t, events)
	looptest.WantTexts(t, e, "t", "user:hello", "assistant:hello, answer 2")
}

// TestRepeatsOfEditedCalls: when the history branches, a call counts with the arguments that it
// was carried out with, not with those that the model had written.
func TestRepeatsOfEditedCalls(t *testing.T) {
	j, store := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, store, nil, spender(j, looptest.AsksLeave(time.Time{}, "pay")))
	u1 := looptest.UserSays("u1", "pay 10")
	open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", u1)))
	looptest.Succeeded(t, looptest.Posted(t, e,
		looptest.Answers("t", "r2", `{"approved":true,"editedArgs":{"n":7}}`, open...)))
	open = looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", u1)))
	if len(open) != 1 || !strings.Contains(open[0].Message, `{"n":7}: paid 7`) {
		t.Fatalf("asked %+v", open)
	}
	in := looptest.RunInput("t", "r4")
	in.Resume = []agui.ResumeEntry{{InterruptID: open[0].ID, Status: agui.ResumeCancelled}}
	looptest.Succeeded(t, looptest.Posted(t, e, in))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r5", looptest.UserSays("u1", "pay 7"))))
	looptest.WantTexts(t, e, "t", "user:pay 7", "assistant:", "tool:paid 7", "assistant:paid 7, answer 3")
	if got := strings.Join(j.Take(), ", "); got != "paid 7" {
		t.Errorf("the tool did %q", got)
	}
	sound(t, store, "t")
}

// TestEdit: an edited message branches. An equal call gets the recorded result; a different
// one asks, and the question says what has happened. The next message is free again.
func TestEdit(t *testing.T) {
	j, store := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, store, nil, spender(j))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 10"))))
	events := looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u1", "pay 20")))
	branched(t, events)
	open := looptest.OpenOf(t, events)
	if strings.Contains(string(open[0].ResponseSchema), "additionalProperties") {
		t.Fatalf("assistant-ui shows no buttons for the schema %s", open[0].ResponseSchema)
	}
	if len(open) != 1 || open[0].Reason != "tool_call" || !strings.Contains(open[0].Message, `{"n":10}: paid 10`) ||
		!strings.Contains(string(open[0].Metadata), `"happened"`) {
		t.Fatalf("asked %+v", open)
	}
	sound(t, store, "t")
	looptest.Succeeded(t, looptest.Posted(t, e,
		looptest.Answers("t", "r3", `{"approved":false,"reason":"not twice"}`, open...)))
	looptest.WantTexts(t, e, "t", "user:pay 20", "assistant:", "tool:The person did not allow this call: not twice",
		"assistant:The person did not allow this call: not twice, answer 2")
	if got := j.Take(); len(got) != 1 {
		t.Errorf("the tool ran: %q", got)
	}
	last := looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)
	first := looptest.Must(agui.DecodeMessage(last[0]))(t)
	// Back to the first wording, after another: its result is still there.
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r4", looptest.UserSays(first.ID, "pay 10"))))
	looptest.WantTexts(t, e, "t", "user:pay 10", "assistant:", "tool:paid 10", "assistant:paid 10, answer 3")
	// Once more the different one, and yes.
	last = looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)
	first = looptest.Must(agui.DecodeMessage(last[0]))(t)
	open = looptest.OpenOf(t, looptest.Posted(t, e,
		looptest.RunInput("t", "r5", looptest.UserSays(first.ID, "pay 30"))))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r6", `{"approved":true}`, open...)))
	// A new message's own calls are made without a question.
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r7", looptest.UserSays("u9", "pay 10"))))
	if got := strings.Join(j.Take(), ", "); got != "paid 30, paid 10" {
		t.Errorf("the tool ran: %q", got)
	}
	sound(t, store, "t")
}

// TestEditAsksOnce: where a middleware asks for leave anyway, its question says what has
// happened, and a call whose result is recorded needs no leave.
func TestEditAsksOnce(t *testing.T) {
	asks := holdfast.Middleware{Name: "test.leave", Batch: func(_ context.Context, b *holdfast.Batch) error {
		for i := range b.Calls {
			b.Ask(i, &holdfast.Interrupt{Reason: "test:leave", Message: "May it?"})
		}
		return nil
	}}
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), nil, spender(j, asks))
	u1 := looptest.UserSays("u1", "pay 10")
	open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", u1)))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", `true`, open...)))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", u1)))
	open = looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r4", looptest.UserSays("u1", "pay 20"))))
	if open[0].Reason != "test:leave" || !strings.HasPrefix(open[0].Message, "May it? Note") {
		t.Errorf("asked %+v", open[0])
	}
	if got := strings.Join(j.Take(), ", "); got != "paid 10" {
		t.Errorf("the tool ran: %q", got)
	}
}

// TestRetry: a list that ends in the last user message and shows nothing of its answer is
// the request sent again: while the run lives it attaches, and after a failure it resumes.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		agent := spender(j)
		agent.Policy.Chat = true
		failing, hold := true, make(chan struct{})
		inner := agent.Model
		agent.Model = holdfast.ModelFunc(func(ctx context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			if req.Iteration == 1 && failing {
				return func(yield func(holdfast.Delta, error) bool) {
					<-hold
					yield(holdfast.Delta{}, holdfast.Errorf("test_failed", "It failed."))
				}
			}
			return inner.Stream(ctx, req)
		})
		e := looptest.Start(t, memstore.New(), nil, agent)
		u1 := looptest.UserSays("u1", "pay 10")
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r1", u1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2", u1))
		close(hold)
		events := looptest.Collect(t, reply, err)
		if _, failed := looptest.LastOf(events).(agui.RunError); !failed {
			t.Fatalf("it did not attach:\n%s", looptest.Show(events))
		}
		failing = false
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", u1)))
		looptest.WantTexts(t, e, "t", "user:pay 10", "assistant:", "tool:paid 10", "assistant:paid 10, answer 1")
		if got := j.Take(); len(got) != 1 {
			t.Errorf("the tool ran: %q", got)
		}
	})
}

// TestStopAndGoOn: a new message cancels a run that lives, gives up one that has failed, and
// declines what is asked.
func TestStopAndGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := holdfast.ModelFunc(func(ctx context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				switch last := req.Messages[len(req.Messages)-1].PlainText(); last {
				case "hang":
					<-ctx.Done()
					yield(holdfast.Delta{}, ctx.Err())
				case "fail":
					yield(holdfast.Delta{}, holdfast.Errorf("test_failed", "It failed."))
				default:
					yield(holdfast.Delta{Text: "heard " + last, Finish: holdfast.FinishStop}, nil)
				}
			}
		})
		agent := holdfast.Agent{Name: "a", Model: hangs}
		e := looptest.Start(t, memstore.New(), nil, agent)
		say := func(run, id, text string) *agui.RunAgentInput {
			in := looptest.RunInput("t", run, looptest.UserSays(id, text))
			in.Chat = true
			return in
		}
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", say("r1", "u1", "hang")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		strict := say("r2", "u2", "more")
		strict.Chat = false
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", strict); looptest.Code(err) != codes.RunInProgress {
			t.Errorf("without the policy: %v", err)
		}
		looptest.Failed(t, looptest.Posted(t, e, say("r2", "u2", "fail")), "test_failed")
		strict.RunID = "r3"
		strict.Messages[0].ID = "u3"
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", strict); looptest.Code(err) != codes.MidExecution {
			t.Errorf("without the policy: %v", err)
		}
		looptest.Succeeded(t, looptest.Posted(t, e, say("r3", "u3", "more")))
		looptest.WantTexts(t, e, "t", "user:hang", "user:fail", "user:more", "assistant:heard more")
	})
}

// TestBranchSurvives: the owner of a run on a new branch dies; the next one still knows what
// the old branch has done.
func TestBranchSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, j := memstore.New(), &looptest.Notebook{}
		first := &looptest.Mortal{Store: shared}
		hang := false
		agent := func(mortal bool) holdfast.Agent {
			a := spender(j)
			inner := a.Model
			a.Model = holdfast.ModelFunc(func(ctx context.Context,
				req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				if mortal && hang {
					<-ctx.Done()
				}
				return inner.Stream(ctx, req)
			})
			return a
		}
		one := looptest.Start(t, first, nil, agent(true))
		u1 := looptest.UserSays("u1", "pay 10")
		looptest.Succeeded(t, looptest.Posted(t, one, looptest.RunInput("t", "r1", u1)))
		hang = true
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2", u1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		first.Dead.Store(true)
		two := looptest.Start(t, shared, nil, agent(false))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		looptest.WantTexts(t, two, "t", "user:pay 10", "assistant:", "tool:paid 10", "assistant:paid 10, answer 1")
		open := looptest.OpenOf(t, looptest.Posted(t, two,
			looptest.RunInput("t", "r3", looptest.UserSays("u1", "pay 11"))))
		if !strings.Contains(open[0].Message, "paid 10") {
			t.Errorf("asked %+v", open)
		}
		if got := j.Take(); len(got) != 1 {
			t.Errorf("the tool ran: %q", got)
		}
		sound(t, shared, "t")
	})
}

// TestBackToBranch: a page with a branch picker goes on from an answer, and from a message,
// that the thread has left.
func TestBackToBranch(t *testing.T) {
	j, store := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, store, nil, spender(j))
	shown := func() (list []agui.Message) {
		for _, raw := range looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t) {
			list = append(list, looptest.Must(agui.DecodeMessage(raw))(t))
		}
		return list
	}
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 10"))))
	first := shown()
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "hello"))))
	looptest.Succeeded(t, looptest.Posted(t, e,
		looptest.RunInput("t", "r3", append(first[:1:1], looptest.UserSays("u3", "edited"))...)))
	looptest.WantTexts(t, e, "t", "user:pay 10", "user:edited", "assistant:edited, answer 3")
	events := looptest.Posted(t, e, looptest.RunInput("t", "r4",
		append(first[:len(first):len(first)], looptest.UserSays("u4", "go on"))...))
	looptest.Succeeded(t, events)
	branched(t, events)
	looptest.WantTexts(t, e, "t", "user:pay 10", "assistant:", "tool:paid 10", "assistant:paid 10, answer 1",
		"user:go on", "assistant:go on, answer 4")
	sound(t, store, "t")
	// A client that shows the call of a branch, but not its result, stays on this one.
	looptest.Succeeded(t, looptest.Posted(t, e,
		looptest.RunInput("t", "r5", append(first[:1:1], looptest.UserSays("u5", "again"))...)))
	looptest.Succeeded(t, looptest.Posted(t, e,
		looptest.RunInput("t", "r6", append(first[:2:2], looptest.UserSays("u6", "and?"))...)))
	if got := looptest.Texts(t, e, "t"); strings.Contains(strings.Join(got, "|"), "assistant:|user") {
		t.Errorf("a call without a result: %q", got)
	}
	sound(t, store, "t")
}

// TestEditOfTheFirst: a list that is all there is, with nothing of the history, is the first
// message edited, and not one more.
func TestEditOfTheFirst(t *testing.T) {
	j, store := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, store, nil, spender(j))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 10"))))
	in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "pay 10"))
	in.ForwardedProps = json.RawMessage(`{"holdfast":{"whole":true}}`)
	events := looptest.Posted(t, e, in)
	looptest.Succeeded(t, events)
	branched(t, events)
	if got := j.Take(); len(got) != 1 {
		t.Errorf("the tool ran: %q", got)
	}
}
