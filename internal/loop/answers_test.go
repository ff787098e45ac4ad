package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/threads"
)

// noted writes into a notebook.
type noted struct{ *looptest.Notebook }

func (n noted) Write(b []byte) (int, error) {
	n.Note(string(b))
	return len(b), nil
}

// shownCalls returns the arguments of the calls in the last snapshot of a stream, by tool.
func shownCalls(events []agui.Event) map[string]string {
	var args map[string]string
	for _, ev := range events {
		if s, ok := ev.(agui.MessagesSnapshot); ok {
			args = map[string]string{}
			for _, m := range s.Messages {
				for _, c := range m.ToolCalls {
					args[c.Function.Name] = c.Function.Arguments
				}
			}
		}
	}
	return args
}

// TestEditedCall: a call runs with the arguments that a person has chosen, and history and
// stream show them. The result that another call of the answer has had stays.
func TestEditedCall(t *testing.T) {
	j, store := &looptest.Notebook{}, memstore.New()
	pay := holdfast.NewTool("pay", "pay", func(_ context.Context, args struct {
		N int `json:"n,omitempty"`
	}) (string, error) {
		j.Note(fmt.Sprintf("paid %d", args.N))
		return fmt.Sprintf("paid %d", args.N), nil
	}, holdfast.WithEffect(holdfast.EffectOnce))
	look := looptest.Tool("look", holdfast.EffectOnce, func(context.Context) (string, error) {
		j.Note("looked")
		return "seen", nil
	})
	log := &looptest.Notebook{}
	e := looptest.Start(t, store, func(c *looptest.Config) { c.Log = slog.New(slog.NewTextHandler(noted{log}, nil)) },
		holdfast.Agent{
			Name:       "a",
			Model:      looptest.TwoCalls("look", "pay"),
			Tools:      []holdfast.Tool{look, pay},
			Middleware: []holdfast.Middleware{looptest.AsksLeave(time.Time{}, "pay")},
		})
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	for payload, wrong := range map[string]string{`{"approved":true,"editedArgs":{"n":"7"}}`: "editedArgs: /n",
		`{"approved":7}`: "/approved"} {
		_, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.Answers("t", "r2", payload, open...))
		if looptest.Code(err) != codes.InvalidAnswer || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", payload, err)
		}
	}
	page := looptest.Answers("t", "r2", `{"approved":"a secret"}`, open...)
	page.Chat = true
	if again := looptest.OpenOf(t, looptest.Posted(t, e, page)); again[0].ID != open[0].ID {
		t.Errorf("a frontend's page is asked %+v", again)
	}
	if said := strings.Join(log.Take(), ""); !strings.Contains(said, "resume ignored") ||
		strings.Contains(said, "secret") {
		t.Errorf("the log says %s", said)
	}
	if still := looptest.OpenOf(t, looptest.Resumed(t, e, "t", "r9")); still[0].ID != open[0].ID {
		t.Errorf("the question has changed: %+v", still)
	}
	events := looptest.Posted(t, e, looptest.Answers("t", "r2", `{"approved":true,"editedArgs":{"n":7}}`, open...))
	looptest.Succeeded(t, events)
	if got := shownCalls(events); got["pay"] != `{"n":7}` || got["look"] != `{}` {
		t.Errorf("the stream shows the calls %v", got)
	}
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:seen", "tool:paid 7", "assistant:done")
	made := looptest.Must(agui.DecodeMessage(looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)[1]))(t)
	if made.ToolCalls[1].Function.Arguments != `{"n":7}` || string(made.Metadata) != `{"holdfast":{"edited":true}}` {
		t.Errorf("the history has %s", made.AppendJSON(nil))
	}
	if got := strings.Join(j.Take(), ", "); got != "looked, paid 7" {
		t.Errorf("the tools did %q", got)
	}
	sound(t, store, "t")
	looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", looptest.UserSays("u2", "once more"))))
	sound(t, store, "t")
}

// carefulPayer pays after a person has allowed it, and notes the keys of its calls by what they pay.
func carefulPayer(keys map[string][]string) holdfast.Agent {
	pay := holdfast.NewTool("pay", "pay", func(ctx context.Context, args struct {
		N int `json:"n,omitempty"`
	}) (string, error) {
		paid := fmt.Sprintf("paid %d", args.N)
		keys[paid] = append(keys[paid], holdfast.CallFrom(ctx).Key)
		return paid, nil
	})
	return holdfast.Agent{
		Name:       "a",
		Model:      looptest.Say(looptest.Calls("pay", `{"n":1}`), holdfast.Delta{Text: "done"}),
		Tools:      []holdfast.Tool{pay},
		Middleware: []holdfast.Middleware{looptest.AsksLeave(time.Time{}, "pay")},
	}
}

// TestEditedCallHasAKeyOfItsOwn: a call that was carried out, and whose question is answered
// again with other arguments, is another call to the services that it uses; with the same
// arguments it is the same one. So it is in a fork.
func TestEditedCallHasAKeyOfItsOwn(t *testing.T) {
	keys := map[string][]string{}
	e := looptest.Start(t, memstore.New(), nil, carefulPayer(keys))
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	all := looptest.Checkpoints(t, e, "t")
	asked := all[slices.IndexFunc(all, func(c threads.Checkpoint) bool {
		return c.Status == threads.StatusInterrupted
	})].ID
	plain, seven, eight := `{"approved":true}`, `{"approved":true,"editedArgs":{"n":7}}`,
		`{"approved":true,"editedArgs":{"n":8}}`
	for i, payload := range []string{plain, seven, `{"approved":true,"editedArgs":{ "n": 7 }}`, eight,
		`{"approved":true,"editedArgs":{"n":1}}`, seven} {
		if i > 0 {
			looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: asked}))(t)
			open = looptest.OpenOf(t, looptest.Resumed(t, e, "t", fmt.Sprint("asked", i)))
		}
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", fmt.Sprint("again", i), payload, open...)))
	}
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: asked}))(t)
	fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t).Thread.ID
	open = looptest.OpenOf(t, looptest.Resumed(t, e, fork, "asked"))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers(fork, "f1", eight, open...)))
	of := map[string]string{}
	for paid, times := range map[string]int{"paid 1": 2, "paid 7": 3, "paid 8": 2} {
		all := keys[paid]
		if len(all) != times || len(slices.Compact(slices.Clone(all))) != 1 {
			t.Fatalf("%s has the keys %q", paid, all)
		}
		if other := of[all[0]]; other != "" {
			t.Errorf("%s and %s have the same key", paid, other)
		}
		of[all[0]] = paid
	}
}

// TestAnswerUnderUsedID: answers under the run id of the run that asked begin a run of their
// own, which is shown under that id; sent again, they show that run; other answers are late.
func TestAnswerUnderUsedID(t *testing.T) {
	j := &looptest.Notebook{}
	agent := spender(j, looptest.AsksLeave(time.Time{}, "pay"))
	e := looptest.Start(t, memstore.New(), nil, agent)
	open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 10"))))
	yes := looptest.Answers("t", "r1", `{"approved":true}`, open...)
	var first string
	for i := range 2 {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", yes)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = reply.RunID
		}
		if reply.RunID != first || first == "r1" || !strings.HasPrefix(first, "run-") {
			t.Errorf("run %q began, then %q", first, reply.RunID)
		}
		events := looptest.Collect(t, reply, nil)
		looptest.Succeeded(t, events)
		started, ended := events[0].(agui.RunStarted), looptest.LastOf(events).(agui.RunFinished)
		if started.RunID != "r1" || ended.RunID != "r1" || !strings.Contains(string(started.Metadata), first) {
			t.Errorf("time %d: %s ... %s", i, agui.Append(nil, started), agui.Append(nil, ended))
		}
	}
	no := looptest.Answers("t", "r1", `{"approved":false}`, open...)
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", no); looptest.Code(err) != codes.RunIDReused {
		t.Errorf("another answer, too late: %v", err)
	}
	if got := j.Take(); len(got) != 1 {
		t.Errorf("the tool ran: %q", got)
	}
}

// TestAnswerAndMessage: a new message that comes with an answer is shown from the start,
// also to who attaches while the question's call is still open.
func TestAnswerAndMessage(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), nil, spender(j, looptest.AsksLeave(time.Time{}, "pay")))
	open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 10"))))
	in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "and now?"))
	in.Resume = []agui.ResumeEntry{{InterruptID: open[0].ID, Status: agui.ResumeCancelled}}
	events := looptest.Posted(t, e, in)
	looptest.Succeeded(t, events)
	got := looptest.Reduce(events)
	if !slices.Contains(got, "user:and now?") || got[len(got)-1] != "assistant:and now?, answer 1" {
		t.Errorf("a client shows %q", got)
	}
	looptest.WantTexts(t, e, "t", "user:pay 10", "assistant:", "tool:No result: the person declined to answer.",
		"user:and now?", "assistant:and now?, answer 1")
}

// TestTooLate: what has expired can only be cancelled.
func TestTooLate(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), nil, spender(j, looptest.AsksLeave(time.Now().Add(-time.Hour), "pay")))
	open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 10"))))
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.Answers("t", "r2", `{"approved":true}`, open...)); looptest.Code(err) != codes.InterruptExpired {
		t.Errorf("a late answer: %v", err)
	}
	in := looptest.RunInput("t", "r2")
	in.Resume = []agui.ResumeEntry{
		{InterruptID: open[0].ID, Status: agui.ResumeCancelled, Payload: json.RawMessage(`{}`)},
	}
	looptest.Succeeded(t, looptest.Posted(t, e, in))
	if got := j.Take(); len(got) != 0 {
		t.Errorf("the tool ran: %q", got)
	}
}

// TestUnknownAnswers: answers to questions that the thread has not asked are refused and named; the
// page of a frontend gets the open question again.
func TestUnknownAnswers(t *testing.T) {
	done := func(context.Context) (string, error) { return "done", nil }
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name: "a", Model: looptest.TwoCalls("ask", "work"),
		Tools: []holdfast.Tool{
			looptest.Tool("ask", holdfast.EffectOnce, done), looptest.Tool("work", holdfast.EffectOnce, done),
		},
		Middleware: []holdfast.Middleware{looptest.AsksLeave(time.Time{}, "ask")},
	})
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	stranger := open[0]
	stranger.ID = "int_nobody"
	in := looptest.Answers("t", "r2", `{"approved":true}`, stranger)
	_, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
	var refused *holdfast.Error
	if !errors.As(err, &refused) || refused.Code != codes.AnswersMissing ||
		!strings.Contains(refused.Message, `["int_nobody"]`) ||
		fmt.Sprint(refused.Details["unknown"], refused.Details["missing"]) != fmt.Sprintf("[int_nobody] [%s]",
			open[0].ID) {
		t.Errorf("%v", err)
	}
	in.Chat = true
	if again := looptest.OpenOf(t, looptest.Posted(t, e, in)); len(again) != 1 || again[0].ID != open[0].ID {
		t.Errorf("a frontend's page is asked %+v", again)
	}
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r3", `{"approved":true}`, open...)))
	// On a thread that waits for nothing there is nothing to miss.
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.Answers("t", "r4", "{}", stranger)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestSomeOfTheAnswers: answers to some of the open questions are refused, with what is missing;
// the page of a frontend, which cannot show that, gets the same questions again. Nothing is
// lost: all the answers together count.
func TestSomeOfTheAnswers(t *testing.T) {
	store := memstore.New()
	tool := func(name string) holdfast.Tool {
		return looptest.Tool(name, holdfast.EffectOnce, func(context.Context) (string, error) {
			return name + " done",
				nil
		})
	}
	e := looptest.Start(t, store, nil, holdfast.Agent{
		Name: "a", Model: looptest.TwoCalls("one", "two"), Tools: []holdfast.Tool{tool("one"), tool("two")},
		Middleware: []holdfast.Middleware{looptest.AsksLeave(time.Time{}, "one", "two")},
	})
	open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
	if len(open) != 2 {
		t.Fatalf("it asks %+v", open)
	}
	_, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.Answers("t", "r2", `{"approved":true}`, open[1]))
	var refused *holdfast.Error
	if !errors.As(err, &refused) || refused.Code != codes.AnswersMissing || refused.Hint == "" {
		t.Fatalf("some of the answers: %v", err)
	}
	got := fmt.Sprint(refused.Details["interrupts"], refused.Details["answered"], refused.Details["missing"],
		refused.Details["accepted"])
	if want := fmt.Sprintf("[%s %s] [%s] [%s] []", open[0].ID, open[1].ID, open[1].ID, open[0].ID); got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
	page := looptest.Answers("t", "r2", `{"approved":true}`, open[1])
	page.Chat = true
	if again := looptest.OpenOf(t, looptest.Posted(t, e, page)); len(again) != 2 || again[0].ID != open[0].ID ||
		again[1].ID != open[1].ID {
		t.Errorf("a frontend's page is asked %+v", again)
	}
	if again := looptest.OpenOf(t, looptest.Resumed(t, e, "t", "r3")); len(again) != 2 {
		t.Errorf("afterwards it asks %+v", again)
	}
	page = looptest.Answers("t", "r2", `{"approved":true}`, open[1])
	page.Chat, page.Messages = true, []agui.Message{looptest.UserSays("u2", "and this")}
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", page); looptest.Code(err) != codes.Interrupted {
		t.Errorf("a message with some of the answers, which would be lost: %v", err)
	}
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", `{"approved":true}`, open...)))
	texts := looptest.Texts(t, e, "t")
	slices.Sort(texts) // the tools run at the same time
	if want := []string{
		"assistant:",
		"assistant:done",
		"tool:one done",
		"tool:two done",
		"user:go",
	}; !slices.Equal(texts, want) {
		t.Errorf("the thread has %q", texts)
	}
	sound(t, store, "t")
}
