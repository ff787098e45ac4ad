package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Clients that say where they stand, with forwardedProps.holdfast.since, are sent what they
// lack.

// pace gives ids that are the same in each run of a test.
func pace(c *looptest.Config) {
	var mu sync.Mutex
	n := 0
	c.NewID = func(prefix string) string {
		mu.Lock()
		defer mu.Unlock()
		switch prefix {
		case "":
			return "fence0"
		case "p":
			return "process0"
		case "c":
			return prefix + fmt.Sprint(looptest.Serial.Add(1))
		}
		n++
		return fmt.Sprintf("%s_%d", prefix, n)
	}
}

// echoes is an agent that says what it was told, and looks or asks first if that is what it was
// told.
func echoes() holdfast.Agent {
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			last := req.Messages[len(req.Messages)-1]
			switch said := last.PlainText(); {
			case said == "look", said == "ask":
				yield(looptest.Calls(said, "{}"), nil)
			default:
				yield(holdfast.Delta{Text: "You: " + said, Finish: holdfast.FinishStop}, nil)
			}
		}
	})
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{
		looptest.Tool("look", holdfast.EffectPure, func(context.Context) (string, error) { return "seen", nil }),
		looptest.Tool("ask", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			if a := holdfast.CallFrom(ctx).Answer; a != nil {
				return "they said " + string(a.Payload), nil
			}
			return "", &holdfast.Interrupt{Message: "Which one?"}
		}),
	}}
}

// standing is an input of a client that says where it stands.
func standing(id, run, since, more string, messages ...agui.Message) *agui.RunAgentInput {
	in := looptest.RunInput(id, run, messages...)
	in.ForwardedProps = json.RawMessage(fmt.Sprintf(`{"holdfast":{"since":%q%s}}`, since, more))
	return in
}

// leaf returns the id of the last message of a thread.
func leaf(t *testing.T, e *looptest.Engine, id string) string {
	t.Helper()
	all := looptest.Must(e.Messages(t.Context(), looptest.Alice, id))(t)
	return looptest.Must(agui.DecodeMessage(all[len(all)-1]))(t).ID
}

// snapshots counts the snapshots of messages in a stream that are not empty.
func snapshots(events []agui.Event) (n int) {
	for _, ev := range events {
		if s, is := ev.(agui.MessagesSnapshot); is && len(s.Messages) > 0 {
			n++
		}
	}
	return n
}

// TestGoldenSince: what goes over the wire to clients of both dialects that say where they
// stand.
func TestGoldenSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), pace, echoes())
		var out []byte
		say := func(what string, in *agui.RunAgentInput) {
			t.Helper()
			for _, dialect := range []string{"1.0", ""} {
				again := *in
				if again.ProtocolVersion = dialect; dialect == "" {
					again.ThreadID = "old"
				}
				out = fmt.Appendf(out, "# %s, dialect %q\n", what, dialect)
				reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", &again)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				for frames, err := range reply.Whole() {
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					for _, f := range frames {
						out = fmt.Appendf(out, "%s\n", f.Data)
					}
				}
				synctest.Wait()
			}
		}
		// The ids of both threads are the client's own, so that both say the same.
		history := func(n int) (list []agui.Message) {
			for i := range n {
				role := []holdfast.Role{holdfast.RoleUser, holdfast.RoleAssistant}[i%2]
				list = append(list, agui.FromDomain(holdfast.Message{ID: fmt.Sprint("m", i), Role: role,
					Text: fmt.Sprint("text ", i)}))
			}
			return list
		}
		say("a history is brought", looptest.RunInput("t", "r1", history(5)...))
		say("nothing new, and it has all but the last answer", standing("t", "h1", "m4", ""))
		say("it has less", standing("t", "h2", "m2", ""))
		say("a new message, and it lacks an answer", standing("t", "r2", "m4", "", looptest.UserSays("u2", "look")))
		say("an id that nobody knows", standing("t", "r3", "nobody", "", looptest.UserSays("u3", "more")))
		say("nothing new, an id that nobody knows", standing("t", "h3", "nobody", ""))
		say("it has calls left to be told of", standing("t", "h4", "u2", ""))
		path := filepath.Join("testdata", "since.golden")
		if *update {
			if err := os.WriteFile(path, out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := looptest.Must(os.ReadFile(path))(t); string(want) != string(out) {
			t.Errorf("what goes over the wire has changed; rewrite %s with -update if that is meant. Got:\n%s", path,
				out)
		}
	})
}

// TestSince: a client that has everything is sent no history, whatever it sends itself; one
// that is wrong about it is sent all of it.
func TestSince(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, echoes())
	post := func(in *agui.RunAgentInput) []agui.Event {
		t.Helper()
		events := looptest.Posted(t, e, in)
		if _, failed := looptest.LastOf(events).(agui.RunError); failed {
			t.Fatal(looptest.Show(events))
		}
		return events
	}
	want := func(what string, events []agui.Event, n int) {
		t.Helper()
		if got := snapshots(events); got != n {
			t.Errorf("%s: %d snapshots, want %d\n%s", what, got, n, looptest.Show(events))
		}
	}
	n := 0
	says := func(text string) agui.Message { n++; return looptest.UserSays(fmt.Sprint("u", n), text) }
	cut := standing("lost", "r1", "a1", "", looptest.UserSays("u", "x"),
		agui.FromDomain(holdfast.Message{ID: "a1", Role: holdfast.RoleAssistant, Text: "y"}),
		looptest.UserSays("v", "z"))
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", cut); looptest.Code(err) != codes.HistoryDiverged {
		t.Errorf("a part of a list, in a thread that is not there: %v", err)
	}
	want("a new thread", post(standing("t", "r1", "", "", says("one"))), 0)
	first := leaf(t, e, "t")
	want("only what is new", post(standing("t", "r2", first, "", says("look"))), 0)
	want("the last turn and what is new",
		post(standing("t", "r3", leaf(t, e, "t"), "", looptest.UserSays("u2", "look"), says("three"))), 0)
	want("an earlier message", post(standing("t", "r4", first, "", says("four"))), 1)
	want("an id that is not there", post(standing("t", "r5", "ghost", "", says("five"))), 1)
	want("no id", post(looptest.RunInput("t", "r6", says("six"))), 1)

	asked := post(standing("t", "r7", leaf(t, e, "t"), "", says("ask")))
	want("a run that asks", asked, 0)
	question := looptest.LastOf(asked).(agui.RunFinished).Outcome.Interrupts[0].ID
	answer := standing("t", "r8", leaf(t, e, "t"), "")
	answer.Resume = []agui.ResumeEntry{
		{InterruptID: question, Status: "resolved", Payload: json.RawMessage(`"tea"`)},
	}
	want("the answer", post(answer), 0)

	// The history goes back; what the client shows is on another branch then.
	left := leaf(t, e, "t")
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: first}))(t)
	want("after a rewind", post(standing("t", "r9", left, "", says("nine"))), 1)
	fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Message: first}))(t)
	want("in a fork", post(standing(fork.Thread.ID, "f1", leaf(t, e, "t"), "", says("fork"))), 1)
	want("in a fork, and it knows", post(standing(fork.Thread.ID, "f2", leaf(t, e, fork.Thread.ID), "", says("go"))), 0)

	// A branch: the list means what it would mean with all that comes before it.
	edited := looptest.UserSays("u1", "edited")
	want("an edit", post(standing("t", "r10", leaf(t, e, "t"), `,"branch":true`, edited)), 1)
	looptest.WantTexts(t, e, "t", "user:edited", "assistant:You: edited")
	stale := leaf(t, e, "t")
	want("somebody else", post(looptest.RunInput("t", "r11", says("eleven"))), 1)
	looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, true))(t)
	want("after pruning, left", post(standing("t", "r12", left, "", says("twelve"))), 1)
	want("after pruning, stale", post(standing("t", "r13", stale, "", says("thirteen"))), 1)
	want("after pruning", post(standing("t", "r14", leaf(t, e, "t"), "", says("fourteen"))), 0)
}

// TestSinceJoins: a list that begins in the middle means what the whole list means.
func TestSinceJoins(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, echoes())
	shown := func() (list []agui.Message) {
		for _, raw := range looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t) {
			list = append(list, looptest.Must(agui.DecodeMessage(raw))(t))
		}
		return list
	}
	for i, text := range []string{"one", "two", "three"} {
		looptest.Posted(t, e, looptest.RunInput("t", fmt.Sprint("r", i), looptest.UserSays(fmt.Sprint("u", i), text)))
	}
	old := shown()
	tail := func(run, more string, message agui.Message) *agui.RunAgentInput {
		return standing("t", run, old[5].ID, more, append(old[4:6:6], message)...)
	}
	looptest.Posted(t, e, looptest.RunInput("t", "r3", looptest.UserSays("u3", "four")))
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		tail("r4", "", looptest.UserSays("u4", "stale"))); err == nil ||
		holdfast.AsError(err).Details["lastCommonMessageId"] != old[5].ID {
		t.Fatalf("a stale list: %+v", holdfast.AsError(err))
	}
	looptest.Posted(t, e, tail("r5", `,"branch":true`, looptest.UserSays("u5", "branch")))
	looptest.WantTexts(t, e, "t", "user:one", "assistant:You: one", "user:two", "assistant:You: two", "user:three",
		"assistant:You: three", "user:branch", "assistant:You: branch")
	in := looptest.RunInput("t", "r7", append(old[:2:2], looptest.UserSays("u7", "two again"))...)
	in.ForwardedProps = json.RawMessage(`{"holdfast":{"branch":true}}`)
	looptest.Posted(t, e, in)
	looptest.WantTexts(t, e, "t", "user:one", "assistant:You: one", "user:two again", "assistant:You: two again")
	// The client is on the branch that was left, and goes on there.
	looptest.Posted(t, e, tail("r8", `,"branch":true`, looptest.UserSays("u8", "back")))
	looptest.WantTexts(t, e, "t", "user:one", "assistant:You: one", "user:two", "assistant:You: two", "user:three",
		"assistant:You: three", "user:back", "assistant:You: back")
}

// reads counts how often messages are read from a store, and how many.
type reads struct {
	store.Store
	trees, pieces atomic.Int64
}

func (r *reads) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	r.trees.Add(1)
	return r.Store.Messages(ctx, key)
}

func (r *reads) MessagesOf(ctx context.Context, key store.ThreadKey, ids []string) ([]store.Message, error) {
	r.pieces.Add(1)
	return r.Store.MessagesOf(ctx, key, ids)
}

// TestHistoryIsReadOnce: a POST to a process that has not run the thread reads the history to
// decide what it means, and what is sent of it comes from there.
func TestHistoryIsReadOnce(t *testing.T) {
	db := &reads{Store: memstore.New()}
	e := looptest.Start(t, db, nil, echoes())
	var history []agui.Message
	for i := range 1000 {
		role := []holdfast.Role{holdfast.RoleUser, holdfast.RoleAssistant}[i%2]
		history = append(history, agui.FromDomain(holdfast.Message{ID: fmt.Sprint("m", i), Role: role,
			Text: strings.Repeat("text ", 40)}))
	}
	looptest.Posted(t, e, looptest.RunInput("t", "r0", append(history, looptest.UserSays("u0", "go"))...))
	for name, in := range map[string]*agui.RunAgentInput{
		"only what is new":   looptest.RunInput("t", "r1", looptest.UserSays("u1", "x")),
		"it says where":      standing("t", "r2", "m999", "", looptest.UserSays("u2", "x")),
		"nothing new":        looptest.RunInput("t", "r3"),
		"nothing new, where": standing("t", "r4", "m999", ""),
	} {
		e := looptest.Start(t, db, nil, echoes())
		db.trees.Store(0)
		db.pieces.Store(0)
		looptest.Posted(t, e, in)
		if trees, pieces := db.trees.Load(), db.pieces.Load(); trees != 1 || pieces != 0 {
			t.Errorf("%s: the tree is read %d times, and %d pieces of it", name, trees, pieces)
		}
	}
}

// TestSinceIsOfOneClient: that a client has what came before is not in the log of its run. So
// anybody else who comes, during the run or after it, is shown all of it, and so is a client whose
// run another process goes on with.
func TestSinceIsOfOneClient(t *testing.T) {
	for _, dialect := range []string{"1.0", ""} {
		db, entered, leave := memstore.New(), make(chan struct{}, 2), make(chan struct{})
		agent := echoes()
		agent.Tools[1] = looptest.Tool("ask", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			if holdfast.CallFrom(ctx).Answer == nil {
				return "", &holdfast.Interrupt{Message: "Which one?"}
			}
			entered <- struct{}{}
			<-leave
			return "they said", nil
		})
		e := looptest.Start(t, db, nil, agent)
		post := func(in *agui.RunAgentInput) []agui.Event {
			in.ProtocolVersion = dialect
			return looptest.Posted(t, e, in)
		}
		post(looptest.RunInput("t", "r1", looptest.UserSays("u1", "one")))
		asked := post(standing("t", "r2", leaf(t, e, "t"), "", looptest.UserSays("u2", "ask")))
		answer := looptest.Answers("t", "r3", `"tea"`, looptest.OpenOf(t, asked)...)
		answer.ForwardedProps = standing("t", "r3", leaf(t, e, "t"), "").ForwardedProps
		answer.ProtocolVersion = dialect
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", answer)
		if err != nil {
			t.Fatal(err)
		}
		own := make(chan []agui.Event, 1)
		go func() { own <- looptest.Collect(t, reply, nil) }()
		<-entered
		v := agui.DialectOf(dialect)
		others := map[string]*agui.Reply{
			"a reload": looptest.Must(e.Owner.Attach(t.Context(), looptest.Alice, "t", v))(t),
			"one who says": looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
				standing("t", "h1", "u2", "")))(t),
			"one who does not": looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "h2")))(t),
		}
		close(leave)
		if got := snapshots(<-own); got != 0 {
			t.Errorf("dialect %q: the client is sent what it has", dialect)
		}
		for who, reply := range others {
			if got := snapshots(looptest.Collect(t, reply, nil)); got != 1 {
				t.Errorf("dialect %q, %s: %d snapshots", dialect, who, got)
			}
		}
		reply = looptest.Must(e.Owner.Attach(t.Context(), looptest.Alice, "t", v))(t)
		if got := shownIn(looptest.Collect(t, reply, nil)); got != 6 {
			t.Errorf("dialect %q: after the run, %d messages are shown", dialect, got)
		}
	}
}

// shownIn returns how many messages the last snapshot of a stream has.
func shownIn(events []agui.Event) (n int) {
	for _, ev := range events {
		if s, is := ev.(agui.MessagesSnapshot); is {
			n = len(s.Messages)
		}
	}
	return n
}

// TestSinceIsWrong: no id makes a client be told less than it lacks.
func TestSinceIsWrong(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, echoes())
	looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "look")))
	bob := holdfast.Principal{Tenant: "other", User: "bob"}
	theirs := looptest.RunInput("t", "r1", looptest.UserSays("theirs", "one"))
	looptest.Collect(t, looptest.Must(e.Owner.Post(t.Context(), bob, "", theirs))(t), nil)
	for name, id := range map[string]string{
		"of another tenant": "theirs",
		"a megabyte":        strings.Repeat("x", 1<<20),
		"not of a message":  "r1",
	} {
		if got := shownIn(looptest.Posted(t, e, standing("t", "h"+name, id, ""))); got != 4 {
			t.Errorf("%s: %d messages are shown", name, got)
		}
	}
	for name, since := range map[string]string{"a number": "5", "a list": `["u1"]`, "an object": `{"id":"u1"}`} {
		in := looptest.RunInput("t", "x"+name)
		in.ForwardedProps = json.RawMessage(`{"holdfast":{"since":` + since + `}}`)
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", in); looptest.Code(err) != codes.InvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSinceAndAnotherAnswer: a client that shows the answer that the thread gives up is told that it
// is not there any more; one that has taken it away already is not.
func TestSinceAndAnotherAnswer(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, echoes())
	one := looptest.UserSays("u1", "one")
	looptest.Posted(t, e, looptest.RunInput("t", "r1", one))
	again := looptest.Posted(t, e, standing("t", "r2", leaf(t, e, "t"), `,"branch":true`, one))
	if got := shownIn(again); got != 1 {
		t.Errorf("another answer: %d messages are shown\n%s", got, looptest.Show(again))
	}
	looptest.WantTexts(t, e, "t", "user:one", "assistant:You: one")
}

// TestSinceLacksMuch: what takes much memory to be told in events is shown in a snapshot, which
// is made while it is sent.
func TestSinceLacksMuch(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, echoes())
	for i, size := range []int{1 << 20, 1 << 10} {
		said := looptest.UserSays(fmt.Sprint("u", i), strings.Repeat("x", size))
		looptest.Posted(t, e, looptest.RunInput("t", fmt.Sprint("r", i), said))
		reply := looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "", standing("t", "h", said.ID, "")))(t)
		held := reply.Held
		if got, want := snapshots(looptest.Collect(t, reply, nil)), []int{1, 0}[i]; got != want {
			t.Errorf("%d bytes: %d snapshots; %d bytes are held", size, got, held)
		}
	}
}
