package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/secret"
	"github.com/holdfast-agents/holdfast/store"
)

// breach breaks a promise in a world in which "s1" owns the thread t1, a call has started and
// ended there, and a client has seen the first of three records.
type breach struct {
	promise string
	how     func(w *World, c *client)
}

// breaches are at least one for each promise that is checked at the moment at which it is broken.
var breaches = []breach{
	{"one owner writes", func(w *World, _ *client) { w.commits(&store.Commit{ID: "x", Fence: first, Process: "s1"}) }},
	{"one owner writes", func(w *World, _ *client) { w.follows(&store.Commit{Fence: first, Process: "s2"}) }},
	{"fences rise", func(w *World, _ *client) {
		w.follows(&store.Commit{Fence: store.Fence{Epoch: 1, Nonce: "another"}, Process: "s2"})
	}},
	{"a call has one result", func(w *World, _ *client) {
		w.follows(&store.Commit{Fence: first, Process: "s1", Messages: []store.Message{result("m9", "m2")}})
	}},
	{"one owner starts tools", func(w *World, _ *client) { w.started(w.servers[1], callOf("look", "new")) }},
	{"a finished tool never runs again", func(w *World, _ *client) {
		w.started(w.servers[0], callOf("look", "ended"))
	}},
	{"the intent is stored first", func(w *World, _ *client) { w.started(w.servers[0], callOf("pay", "new")) }},
	{"once at most once", func(w *World, _ *client) { w.started(w.servers[0], callOf("pay", "begun")) }},
	{"once at most once", func(w *World, _ *client) { w.started(w.servers[0], callOf("order", "asked")) }},
	{"a key belongs to one call", func(w *World, _ *client) { w.started(w.servers[0], callOf("save", "begun")) }},
	{"one owner asks models", func(w *World, _ *client) { w.modelAsked(w.servers[1], asks()) }},
	{"histories are well formed", func(w *World, _ *client) { w.modelAsked(w.servers[0], asks(assistant("m1"))) }},
	{"histories are well formed", func(w *World, _ *client) {
		tool := holdfast.Message{ID: "m2", Role: holdfast.RoleTool, CallID: "ended"}
		w.modelAsked(w.servers[0], asks(assistant("m1"), tool, tool))
	}},
	{"histories are well formed", func(w *World, _ *client) {
		tool := holdfast.Message{ID: "m2", Role: holdfast.RoleTool, CallID: "ended"}
		w.modelAsked(w.servers[0], asks(assistant("m1"), tool, assistant("m1"), tool))
	}},
	{"histories are well formed", func(w *World, _ *client) { // m2 does not come after itself
		w.modelAsked(w.servers[0], asks(holdfast.Message{ID: "m2", Role: holdfast.RoleUser},
			holdfast.Message{ID: "m1", Role: holdfast.RoleUser}))
	}},
	{"what a model is asked is durable", func(w *World, _ *client) {
		w.modelAsked(w.servers[0], asks(holdfast.Message{ID: "m7", Role: holdfast.RoleUser}))
	}},
	{"a side run is stored nowhere", func(w *World, _ *client) {
		w.landed(w.servers[0], &store.Commit{
			ID: "x", Key: keyOf(aside + "a1"), Expect: store.Position{Next: 1}, Fence: first,
		})
	}},
	{"one owner starts tools", func(w *World, _ *client) { w.delivered(w.servers[1], outside("new")) }},
	{"a finished tool never runs again", func(w *World, _ *client) {
		w.delivered(w.servers[0], outside("new"))
		w.truth.handed["t1 new"].taken = "x"
		w.delivered(w.servers[0], outside("new"))
	}},
	{"a call is finished once", func(w *World, _ *client) {
		w.finishedOutside(&handed{thread: "t1", id: "new", taken: "x"}, []byte(`{}`), false)
	}},
	{"nothing acknowledged is lost", func(w *World, _ *client) {
		w.delivered(w.servers[0], outside("new"))
		w.finishedOutside(w.truth.handed["t1 new"], []byte(`{}`), false)
	}},
	{"nothing acknowledged is lost", func(w *World, _ *client) {
		w.truth.handed["t1 ended"] = &handed{thread: "t1", id: "ended", text: "done"}
		w.modelAsked(w.servers[0], asks(assistant("m1"), holdfast.Message{
			ID: "m2", Role: holdfast.RoleTool, CallID: "ended", Text: "something else",
		}))
	}},
	{"nothing acknowledged is lost", func(w *World, _ *client) { w.describedAs(&title{thread: "t1"}, "x", true, nil) }},
	{"what was refused is not done", func(w *World, _ *client) {
		w.truth.titles["x"] = &title{thread: "t1", stored: true}
		w.describedAs(w.truth.titles["x"], "x", false, nil)
		w.checkEnd()
	}},
	{"agents that were replaced are let go", func(w *World, _ *client) {
		w.servers[0].unused = append(w.servers[0].unused, make(chan struct{}))
		w.checkEnd()
	}},
	{"the index lists every thread", func(w *World, _ *client) {
		c := &store.Commit{ID: "e2", Key: keyOf("t1"), Expect: w.truth.of("t1").position, Fence: first, Process: "s1"}
		thread.Save(c, thread.New())
		if err := w.commit(context.Background(), w.servers[0], c); err != nil {
			panic(err)
		}
		w.base = forgetful{w.base}
		w.checkEnd()
	}},
	{"durable before visible", func(w *World, _ *client) { w.logged("t1", &agui.Frame{ID: "4-n"}) }},
	{"the ledger adds up", func(w *World, _ *client) { w.truth.spent++; w.lookAtLedger() }},
	{"nothing acknowledged is lost", func(w *World, _ *client) { w.truth.begun["r1"] = "t1"; w.lookAt() }},
	{"both dialects are legal", func(_ *World, c *client) { c.see(&agui.Frame{Data: []byte(`{`)}) }},
	{"a result is what is stored", func(_ *World, c *client) { c.resulted([]byte(`{`)) }},
	{"a result is what is stored", func(_ *World, c *client) { c.resulted([]byte(`{"threadId":"t1","runId":"r1"}`)) }},
	{"a result is what is stored", func(w *World, c *client) {
		k := w.truth.of("t1")
		k.records = append(k.records, store.Record{Data: agui.Append(nil, agui.RunFinished{RunID: "r1"})})
		c.resulted([]byte(`{"threadId":"t1","runId":"r1","messages":[{"id":"lost","role":"user"}]}`))
	}},
	{"both dialects are legal", func(_ *World, c *client) { sees(c, "", agui.TextMessageEnd{MessageID: "m2"}) }},
	{"cursors can be read", func(_ *World, c *client) { sees(c, "?", opened) }},
	{"durable before visible", func(_ *World, c *client) { sees(c, "4-n", opened) }},
	{"durable before visible", func(_ *World, c *client) { sees(c, "2-o", opened) }},
	{"a watcher sees the log", func(_ *World, c *client) { sees(c, "2-n", agui.RunFinished{RunID: "r1"}) }},
	{"a watcher sees the log", func(_ *World, c *client) { sees(c, "1-n", started) }},
	{"a watcher sees the log", func(_ *World, c *client) { sees(c, "3-n", said("Hello")) }},
	{"a watcher sees the log", func(_ *World, c *client) { sees(c, "2-n", opened); sees(c, "3-n", said("Hell")) }},
	{"a state fits its schema", func(w *World, _ *client) {
		w.truth.of("t1").docs.state = json.RawMessage(`{"a":1}`)
		w.commits(&store.Commit{ID: "x", Expect: w.truth.of("t1").position, Fence: first, Process: "s1"})
	}},
	{"nothing acknowledged is lost", func(w *World, _ *client) {
		w.truth.of("t1").docs.marks["a"] = true
		w.commits(&store.Commit{ID: "x", Expect: w.truth.of("t1").position, Fence: first, Process: "s1"})
	}},
	{"nothing acknowledged is lost", func(w *World, _ *client) {
		w.truth.of("t1").docs.done["a"] = true
		w.follows(&store.Commit{Fence: first, Process: "s1", Records: [][]byte{agui.Append(nil, agui.RunFinished{})}})
	}},
	{"watchers have what is stored", func(_ *World, c *client) {
		sees(c, "", agui.StateSnapshot{Snapshot: json.RawMessage("{}")})
		c.same("state", c.page.shown.state, json.RawMessage(`{"a":true}`))
	}},
}

// TestBreaches: each promise is found broken when it is, and none is before.
func TestBreaches(t *testing.T) {
	t.Parallel()
	for i, b := range breaches {
		t.Run(fmt.Sprintf("%s %d", b.promise, i), func(t *testing.T) {
			w, c := newTruth(t)
			if w.lookAt(); w.violation() != nil {
				t.Fatalf("before: %v", w.violation())
			}
			b.how(w, c)
			for _, v := range w.broken {
				if v.Promise == b.promise {
					return
				}
			}
			t.Errorf("it is not found broken: %v", w.broken)
		})
	}
}

// TestEveryPromiseHasABreach: no promise is checked that nothing is known to break. Two are
// checked at the end of whole schedules; mutants break them.
func TestEveryPromiseHasABreach(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"an accepted run ends": true, "places add up": true}
	for _, b := range breaches {
		known[b.promise] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\.violated?\("([^"]+)"`).FindAllSubmatch(text, -1) {
			if found++; !known[string(m[1])] {
				t.Errorf("%s checks %q, which nothing breaks", file, m[1])
			}
		}
	}
	if found < len(known) {
		t.Errorf("%d checks of %d promises", found, len(known))
	}
}

// forgetful is a store whose index has lost everything.
type forgetful struct{ store.Store }

func (forgetful) Find(context.Context, store.Query) ([]store.Found, error) { return nil, nil }

// first is the fence under which the thread was written.
var first = store.Fence{Epoch: 1, Nonce: "n"}

// started and opened are the first and the second record.
var (
	started = agui.RunStarted{ThreadID: "t1", RunID: "r1"}
	opened  = agui.TextMessageStart{MessageID: "m2", Role: "assistant"}
)

// said is the third, if the text is "Hello".
func said(text string) agui.Event { return agui.TextMessageContent{MessageID: "m2", Delta: text} }

// newTruth returns a world in which what breach says has happened.
func newTruth(t *testing.T) (*World, *client) {
	t.Helper()
	w := &World{plan: planOf(1), base: memstore.New()}
	w.plan.extras.states = true
	w.truth.init()
	for _, name := range []string{"s1", "s2"} {
		w.servers = append(w.servers, &server{world: w, name: name, process: name})
	}
	c := &client{world: w, name: "c1", thread: "t1"}
	begun := &store.Commit{
		ID:      "e1",
		Expect:  store.Position{Next: 1},
		Fence:   first,
		Process: "s1",
		Records: [][]byte{
			agui.Append(nil, started),
			agui.Append(nil, opened),
			agui.Append(nil, said("Hello")),
		},
		Messages: []store.Message{{ID: "m1", Data: []byte(`{"id":"m1","role":"assistant"}`)}, result("m2", "m1")},
		Put: []store.Value{
			{Kind: store.KindIntent, ID: "begun", Data: []byte("{}")},
			{Kind: store.KindIntent, ID: "asked", Data: []byte("{}")},
		},
	}
	begun.Key = keyOf("t1")
	if err := w.commit(context.Background(), w.servers[0], begun); err != nil {
		t.Fatal(err)
	}
	w.started(w.servers[0], callOf("pay", "begun"))
	w.started(w.servers[0], callOf("order", "asked"))
	sees(c, "1-n", started)
	return w, c
}

// commits takes in a commit to the thread as if the store had accepted it.
func (w *World) commits(c *store.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.Key = keyOf("t1")
	w.landed(w.servers[0], c)
}

// follows is commits for one that follows what the thread has.
func (w *World) follows(c *store.Commit) {
	c.ID, c.Expect = "e2", w.truth.of("t1").position
	w.commits(c)
}

// sees shows the client a frame.
func sees(c *client, id string, ev agui.Event) {
	c.see(&agui.Frame{ID: id, Data: agui.Append(nil, ev)})
}

// callOf returns a call. Its key is that of its id.
func callOf(name, id string) *holdfast.ToolCall {
	return &holdfast.ToolCall{Thread: "t1", ID: id, Name: name, Key: "key of " + id}
}

// outside returns a call that is handed out.
func outside(id string) *holdfast.OutsideCall {
	return &holdfast.OutsideCall{Call: holdfast.ToolCall{Thread: "t1", ID: id, Name: "hand"}, URL: secret.New("x")}
}

// result returns a message with the result of the call that has ended.
func result(id, parent string) store.Message {
	return store.Message{ID: id, Parent: parent,
		Data: fmt.Appendf(nil, `{"id":%q,"role":"tool","toolCallId":"ended","content":""}`, id)}
}

// asks returns what a model is asked.
func asks(messages ...holdfast.Message) *holdfast.ModelRequest {
	return &holdfast.ModelRequest{Thread: "t1", Messages: messages}
}

// assistant returns a message that calls.
func assistant(id string) holdfast.Message {
	return holdfast.Message{
		ID: id, Role: holdfast.RoleAssistant, Calls: []holdfast.ToolCall{{ID: "ended", Name: "look"}},
	}
}
