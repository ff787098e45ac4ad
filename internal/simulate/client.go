package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// A client of one thread: it posts, watches, loses its connection and comes back, cancels, and
// answers questions. All that it is shown is checked against what has really happened.

// client is one client. Only one of its goroutines runs at a time.
type client struct {
	world   *World
	name    string
	thread  string
	dialect agui.Dialect
	posts   int // how many messages it has sent
	sent    int // how many requests
	cancels int
	page    page
	stop    context.CancelFunc // of the stream that it reads; nil if none is open
	server  *server            // that it reads from
	last    *agui.RunAgentInput
	full    bool // there must be room for its run
}

func newClient(w *World, i int) *client {
	c := &client{world: w, name: fmt.Sprintf("c%d", i+1), thread: fmt.Sprintf("t%d", 1+i%w.plan.threads)}
	if w.plan.legacy[i] {
		c.dialect = agui.DialectLegacy
	}
	return c
}

// input returns the next request, with a message of the user unless that is empty.
func (c *client) input(text string) *agui.RunAgentInput {
	c.sent++
	in := &agui.RunAgentInput{ThreadID: c.thread, RunID: fmt.Sprintf("%s-r%d", c.name, c.sent)}
	in.Messages = []agui.Message{} // there must be a list
	if c.dialect == agui.DialectV1 {
		in.ProtocolVersion = agui.ProtocolVersion
	}
	if c.world.plan.extras.page {
		in.Tools = []agui.Tool{{Name: "page", Description: "of the page"}}
	}
	if text != "" {
		c.posts++
		in.Messages = []agui.Message{agui.FromDomain(holdfast.Message{
			ID: fmt.Sprintf("%s-u%d", c.name, c.posts), Role: holdfast.RoleUser, Text: text,
		})}
	}
	return in
}

// say posts a message, with a policy for a thread that is not ready.
func (c *client) say(s *server, policy string) {
	in := c.input(c.world.plan.texts[(c.posts+len(c.name)+int(c.name[1]))%len(c.world.plan.texts)])
	if policy != "" {
		in.ForwardedProps = json.RawMessage(`{"holdfast":{` + policy + `}}`)
	}
	c.post(s, in)
}

// answer answers the open questions.
func (c *client) answer(s *server, approved bool) {
	c.answerWith(s, fmt.Sprintf(`{"approved":%t}`, approved), func(string) string { return "happened" })
}

// differ answers the open questions with other arguments, or has a call run again if it has not
// even started.
func (c *client) differ(s *server) {
	c.answerWith(s, `{"approved":true,"editedArgs":{"n":1000}}`, func(call string) string {
		c.world.mu.Lock()
		defer c.world.mu.Unlock()
		for _, d := range c.world.truth.calls {
			if d.id == call {
				return "happened"
			}
		}
		return "run_again"
	})
}

// answerWith answers what asks for leave with one payload, and says of each call in doubt what
// became of it.
func (c *client) answerWith(s *server, payload string, became func(call string) string) {
	in := c.input("")
	for _, q := range c.page.open {
		payload := payload
		if bytes.Contains(q.ResponseSchema, []byte(`"outcome"`)) {
			payload = fmt.Sprintf(`{"outcome":%q}`, became(q.ToolCallID))
		}
		in.Resume = append(in.Resume, agui.ResumeEntry{
			InterruptID: q.ID, Status: agui.ResumeResolved, Payload: json.RawMessage(payload),
		})
	}
	c.page.open = nil
	c.post(s, in)
}

// post sends a request.
func (c *client) post(s *server, in *agui.RunAgentInput) {
	c.last = in
	c.read(s, "post "+in.RunID, true, &request{method: "POST", path: "/agents/a/runs", body: in})
}

// repost sends its last request again, and says what it has of the run.
func (c *client) repost(s *server) {
	c.read(s, "post again "+c.last.RunID, false, &request{
		method: "POST", path: "/agents/a/runs", after: c.page.cursor, body: c.last,
	})
}

// attach looks at the thread as a fresh page.
func (c *client) attach(s *server) {
	c.read(s, "attach", true, c.get("/threads/"+c.thread+"/stream"))
}

// goOn reads on in the thread, whatever its run is.
func (c *client) goOn(s *server) {
	r := c.get("/threads/" + c.thread + "/stream")
	r.after = c.page.cursor
	c.read(s, "go on", false, r)
}

// resume reads on after the last record that it has seen.
func (c *client) resume(s *server) {
	r := c.get("/threads/" + c.thread + "/runs/" + c.page.run + "/events")
	r.after = c.page.cursor
	c.read(s, "resume", false, r)
}

// get returns a request for a stream.
func (c *client) get(path string) *request {
	r := &request{method: "GET", path: path}
	if c.dialect == agui.DialectLegacy {
		r.query = url.Values{"protocolVersion": {"none"}}
	}
	return r
}

// cancel cancels the run that it watches.
func (c *client) cancel(s *server) {
	run := c.page.run
	c.cancels++
	ctx := as(s.clients, fmt.Sprintf("%s-x%d", c.name, c.cancels)) // it may read meanwhile
	c.world.ended.Go(func() {
		r := &request{method: "POST", path: "/threads/" + c.thread + "/runs/" + run + "/cancel"}
		c.world.fact("%s has cancelled %s: %s", c.name, run, s.ask(ctx, r, nil))
	})
}

// leave breaks the client's connection.
func (c *client) leave() {
	c.world.mu.Lock()
	stop := c.stop
	c.world.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// reads reports whether the client reads a stream.
func (c *client) reads() bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.stop != nil
}

// read asks for a stream and reads it to its end. fresh means that it begins with nothing.
func (c *client) read(s *server, what string, fresh bool, r *request) {
	ctx, stop := context.WithCancel(as(s.clients, c.name))
	c.stop, c.server = stop, s
	c.world.ended.Go(func() {
		defer func() {
			c.world.mu.Lock()
			defer c.world.mu.Unlock()
			stop()
			c.stop = nil
		}()
		if r.result {
			c.page = page{}
		}
		w := &response{ctx: ctx, dead: s.isDead}
		w.begun = func(header http.Header) {
			c.world.fact("%s %s: ok", c.name, what)
			run := cmp.Or(header.Get("Holdfast-Run"), header.Get("Holdfast-Side-Run"))
			if fresh || run != c.page.run { // a page that was in another run begins again
				c.page = page{run: run}
				if in, posts := r.body.(*agui.RunAgentInput); posts {
					c.page.asked = in.RunID
				}
			}
		}
		w.see = func(f *agui.Frame) {
			if !c.see(f) {
				stop() // such a stream may never end
			}
		}
		switch code := s.serve(r, w); {
		case w.streams() && code != "ok":
			c.world.fact("%s's stream ends: %s", c.name, code)
		case !w.streams():
			c.world.fact("%s %s: %s", c.name, what, code)
			if code == "ok" {
				c.resulted(w.buf)
			}
			if c.full && (code == codes.TooManyRuns || code == codes.LimitExceeded) {
				c.world.violate("places add up", "%s has no room for %s, and runs nothing", s.name, c.name)
			}
		}
	})
}

// call posts a message and waits for the run's end.
func (c *client) call(s *server) {
	in := c.input(c.world.plan.texts[c.posts%len(c.world.plan.texts)])
	c.last = in
	c.read(s, "call "+in.RunID, true, &request{method: "POST", path: "/agents/a/runs", body: in, result: true})
}

// resulted checks a result: its run has ended, and all that it says is stored.
func (c *client) resulted(data []byte) {
	if len(data) == 0 {
		return // the client has left
	}
	var r runResult
	if err := json.Unmarshal(data, &r); err != nil {
		c.world.violate("a result is what is stored", "%s cannot read %s: %v", c.name, data, err)
		return
	}
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.page = page{over: true, open: r.Interrupts, pending: r.PendingToolCallIDs}
	if wrong := c.world.truth.wrongIn(&r); wrong != "" {
		c.world.violated("a result is what is stored", "%s was told %s", c.name, wrong)
	}
}

// see takes in a frame. It reports whether that keeps every promise.
func (c *client) see(f *agui.Frame) bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	before := len(c.world.broken)
	c.frame(f)
	return len(c.world.broken) == before
}

// frame takes in a frame. The caller holds the lock.
func (c *client) frame(f *agui.Frame) {
	ev, err := agui.DecodeEvent(f.Data)
	if err != nil {
		c.world.violated("both dialects are legal", "%s cannot read %s: %v", c.name, f.Data, err)
		return
	}
	if f.ID != "" {
		c.recorded(f, ev)
	}
	if _, ok := ev.(agui.RunStarted); ok && f.ID == "" { // a prelude begins the page again
		c.page.seq, c.page.cursor, c.page.over = agui.Sequencer{}, store.Cursor{}, false
	}
	if _, is := ev.(agui.RunError); is && f.ID == "" {
		return // a notice, which may end a stream at any point
	}
	if before, err := c.page.seq.Next(c.echoed(ev)); err != nil || len(before) > 0 {
		c.world.violated("both dialects are legal", "%s, as %s sees it: %s, missing %d: %v", c.thread, c.name,
			describe(f.Data), len(before), err)
	}
	if c.world.plan.extras.states {
		c.shows(f, ev)
	}
	switch e := ev.(type) {
	case agui.RunFinished:
		c.page.over = true
		if e.Outcome != nil {
			c.page.open, c.page.pending = e.Outcome.Interrupts, e.Outcome.PendingToolCallIDs
		}
	case agui.RunError:
		c.page.over = true
	}
}

// echoed returns an event of the client's run with the id under which the client knows it: when it
// comes back, the run has its own.
func (c *client) echoed(ev agui.Event) agui.Event {
	switch e := ev.(type) {
	case agui.RunStarted:
		c.page.echo = e.RunID
	case agui.RunFinished:
		if e.RunID == c.page.run {
			e.RunID = c.page.echo
		}
		return e
	}
	return ev
}

// recorded checks a frame that shows a record of the log. The caller holds the lock.
func (c *client) recorded(f *agui.Frame, ev agui.Event) {
	cursor, err := store.ParseCursor(f.ID)
	if err != nil {
		c.world.violated("cursors can be read", "%q: %v", f.ID, err)
		return
	}
	records, of := c.world.truth.recordsTo(c.thread, cursor)
	if records == nil {
		c.world.violated("durable before visible", "%s was shown %s, which %s has not", c.name, f.ID, c.thread)
		return
	}
	if of != c.page.of && c.page.cursor.Number > 0 { // the thread was deleted, and its run begins again
		c.page = page{run: c.page.run, asked: c.page.asked}
	}
	c.page.of = of
	rec := records[cursor.Number-1].Data
	if agui.TypeOf(rec) != agui.TypeOf(f.Data) {
		c.world.violated("a watcher sees the log", "%s was shown %s at %s, which is %s", c.name, agui.TypeOf(f.Data),
			f.ID, agui.TypeOf(rec))
	}
	if last := c.page.cursor; last.Number > 0 && cursor.Number <= last.Number {
		c.world.violated("a watcher sees the log", "%s was shown %s after %s", c.name, f.ID, last)
	} else if last.Number > 0 {
		c.without(records[last.Number:], f, ev)
	}
	if text, is := deltaOf(ev); is {
		if want := textUpTo(records, c.page.cursor.Number, ev); !slices.Contains(want, text) {
			c.world.violated("a watcher sees the log", "%s was shown %q at %s, which is %q", c.name, text, f.ID, want)
		}
	}
	c.page.cursor = cursor
	if started, ok := ev.(agui.RunStarted); ok {
		c.began(started.RunID)
	}
}

// without checks what a client was not shown: records, the last of which it was.
func (c *client) without(records []store.Record, f *agui.Frame, ev agui.Event) {
	for _, left := range records[:len(records)-1] {
		if _, keep := c.dialect.Event(left.Data); !keep || optional(left.Data) {
			continue
		}
		if of, err := agui.DecodeEvent(left.Data); err == nil && partOf(of) != "" && partOf(of) == partOf(ev) {
			continue // the log of a run that was archived has each text in one piece
		}
		c.world.violated("a watcher sees the log", "%s was shown %s after %s, without %s", c.name, f.ID, c.page.cursor,
			describe(left.Data))
	}
}

// began notes that the client was told of its run's beginning.
func (c *client) began(run string) {
	if c.last != nil && c.last.RunID == run && len(c.last.Messages) > 0 {
		if k := c.world.truth.of(c.thread); k.has(c.last.Messages[len(c.last.Messages)-1].ID) {
			c.world.truth.begun[run] = c.thread
			c.world.changes.Add(1)
		}
	}
}

// shows takes in what a frame says of a document, and compares the page's with those that are stored at
// the end of a run. The caller holds the lock.
func (c *client) shows(f *agui.Frame, ev agui.Event) {
	at := uint64(0)
	if f.ID != "" {
		at = c.page.cursor.Number
	}
	if err := c.page.shown.take(at, ev); err != nil {
		c.world.violated("watchers have what is stored", "%s cannot apply %s: %v", c.name, describe(f.Data), err)
	}
	switch ev.(type) {
	case agui.RunFinished, agui.RunError:
		k := c.world.truth.of(c.thread)
		if at+1 != k.position.Next || c.page.of != len(c.world.truth.former[c.thread]) {
			return // the thread has gone on
		}
		if last := c.page.shown.last; last == k.docs.last && last > 0 {
			c.same("state", c.page.shown.state, k.docs.told)
		}
		c.sameActivities(k)
	}
}

// sameActivities compares the activities of a page with those that are stored. The caller holds the lock.
func (c *client) sameActivities(k *known) {
	if c.world.plan.extras.keepers {
		return // their content may have been pruned
	}
	for _, id := range slices.Sorted(maps.Keys(c.page.shown.shows)) {
		if one := k.docs.shows[id]; one != nil {
			c.same("activity "+id, c.page.shown.shows[id], one.content)
		}
	}
}

// same compares a document of a page with the one that is stored. The caller holds the lock.
func (c *client) same(what string, has, stored json.RawMessage) {
	if !alike(has, stored) {
		c.world.violated("watchers have what is stored", "%s has the %s of %s as %s, and it is %s", c.name, what,
			c.thread, has, stored)
	}
}
