package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// Calls that are finished from outside: a service gets them, with a token, and sends results,
// the same or others, to any server.

// maxResults is how often a result is sent for a call.
const maxResults = 4

// task begins a request that is no client's, under a name of its own.
func (s *server) task(f func(ctx context.Context, name string)) {
	w := s.world
	w.tasks++
	name := fmt.Sprintf("k%d", w.tasks)
	w.ended.Go(func() { f(as(s.clients, name), name) })
}

// finish sends a result to a server, as the service does, or as the user.
func (s *server) finish(h *handed, result json.RawMessage, fails, byUser bool) {
	w := s.world
	h.sent++
	r := &request{method: "POST", path: "/calls", query: url.Values{"token": {h.token}}}
	if byUser {
		r.path, r.query = "/threads/"+h.thread+"/calls/"+h.id+"/result", nil
	}
	r.body = map[string]any{"result": result}
	if fails {
		r.body = map[string]any{"error": result}
	}
	s.task(func(ctx context.Context, name string) {
		code := s.ask(ctx, r, nil)
		w.fact("%s finishes %s of %s: %s", name, h.id, h.thread, code)
		if code == "ok" {
			w.finishedOutside(h, result, fails)
		}
	})
}

// finishedOutside takes in that a server has taken a result.
func (w *World) finishedOutside(h *handed, result json.RawMessage, failed bool) {
	hash := thread.ResultHash(result, failed)
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.taken != "" && h.taken != hash && !w.truth.of(h.thread).rewound {
		w.violated("a call is finished once", "%s of %s has got two results", h.id, h.thread)
	}
	h.taken = hash
	if w.truth.handed[h.thread+" "+h.id] != h {
		return // the thread was deleted meanwhile
	}
	if !failed && json.Unmarshal(result, &h.text) != nil {
		h.text = string(result)
	}
	read := thread.Reader{Store: w.base}
	end, err := read.OutsideEnd(context.Background(), keyOf(h.thread), h.id)
	if err == nil && end != nil && end.Hash == hash {
		return
	}
	t, err := read.Head(context.Background(), keyOf(h.thread))
	if err == nil {
		if call := t.State.Call(h.id); call != nil && call.Finished() != nil && call.Finished().Hash == hash {
			return
		}
	}
	w.violated("nothing acknowledged is lost", "the result of %s of %s is (%v)", h.id, h.thread, err)
}

// lookAfter goes on with a thread whose calls have all ended, as upkeep does.
func (s *server) lookAfter(id string) {
	w := s.world
	s.task(func(ctx context.Context, name string) {
		w.fact("%s has looked after %s: %s", name, id, codeOf(s.engine.GoOn(ctx, keyOf(id))))
	})
}

// nextFor returns a server that would go on with a thread; nil if there is none, or if the thread
// waits for something else.
func (w *World) nextFor(st *thread.State) *server {
	for _, s := range w.servers {
		if s.serves() && !s.variant.without && goesOn(st, s.stamp().Time()) {
			return s
		}
	}
	return nil
}

// goOn has upkeep look after each thread that can go on, unless the servers do so by themselves.
func (w *World) goOn() {
	if w.plan.extras.keepers {
		return
	}
	w.mu.Lock()
	all := w.heads.read(w.base, w.truth.threads, w.changes.Load())
	w.mu.Unlock()
	for _, h := range all {
		if h.err != nil {
			continue
		}
		if s := w.nextFor(h.st); s != nil {
			s.lookAfter(h.id)
		}
	}
}

// goesOn reports whether a thread that rests waits for nothing any more but a run: each of its calls
// from outside has its result, or its time is over. The server's own answer is not asked.
func goesOn(st *thread.State, now time.Time) bool {
	waited := false
	for i := range st.Calls {
		c := &st.Calls[i]
		switch {
		case c.Frontend || c.Waits():
			return false
		case c.Outside == nil:
		case c.Outside.Waits && c.Outside.Result == nil &&
			(c.Outside.ExpiresAt.IsZero() || now.Before(c.Outside.ExpiresAt)):
			return false
		default:
			waited = true
		}
	}
	return waited && st.Status() == threads.StatusIdle && !st.Question.Waits()
}
